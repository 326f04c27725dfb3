import { connect } from 'node:net';
import { firstWord, speaksTls } from '../../../speaks-tls.js';
import type { RedisAddress, RedisEndpoint } from './redis-address.js';
import { type FaultPlace, faultSentence } from './redis-fault.js';

/** How the owner of a connection names what it is made of, for sentences about it. */
export interface RedisSettingNames {
  /** Begins the names of the variables: `REDIS` of REDIS_URL, REDIS_AUTH and REDIS_TLS. */
  readonly prefix: string;
  /** Which of them the login comes from; undefined without a login. */
  readonly login: 'URL' | 'AUTH' | 'AUTH_FILE' | 'AUTH_COMMAND' | undefined;
}

/** How a connection ends whose sides do not both speak TLS, as node:net, node:tls and the handshake say it. */
const CUT_OFF = /ECONNRESET|EPIPE|connection closed|malformed reply/;
const NO_HANDSHAKE =
  /ETIMEDOUT|no answer to the greeting|disconnected before secure|wrong version|packet length/;

/** What the user of weir needs, whatever CACHE_KEY_PREFIX is; docs/operate/redis.md says what more is of use. */
const RIGHTS = '~*weir:1:* +evalsha +eval +mget +set +del +time';

const LOGIN_PLACES = {
  URL: '',
  AUTH: '',
  AUTH_FILE: 'the file of ',
  AUTH_COMMAND: 'what is printed by the command of ',
} as const;

/** Puts into words why a Redis is away: what is wrong, and which variable mends it. Shows no password. */
export class Outage {
  private readonly address: RedisAddress;
  private readonly names: RedisSettingNames;
  private looking: Promise<void> | undefined;
  /** What is wrong if one side speaks TLS, and the other does not. */
  private mismatch: string | undefined;

  constructor(address: RedisAddress, names: RedisSettingNames | undefined) {
    this.address = address;
    this.names = names ?? { prefix: 'REDIS', login: address.password === undefined ? undefined : 'URL' };
  }

  /** Whether `reason` may come from TLS on one side only, which {@link look} finds out. */
  isDoubtful(reason: string): boolean {
    return CUT_OFF.test(reason) || (this.address.tls && NO_HANDSHAKE.test(reason));
  }

  /** Looks once whether Redis speaks TLS where clear text was expected, or the other way round. Never rejects. */
  look(endpoint: RedisEndpoint): Promise<void> {
    this.looking ??= this.findMismatch(endpoint);
    return this.looking;
  }

  /**
   * The line for the log. `reason` is what the connection to Redis `name` ended with: an error of Redis, or of the
   * system.
   */
  sentence(reason: string, name: string): string {
    const redis = `Redis ${name}`;
    const login = this.loginSentence(reason);
    if (login !== undefined) return `${redis} ${login}; weir keeps trying`;
    const why = (this.isDoubtful(reason) ? this.mismatch : undefined) ?? faultSentence(this.place, reason);
    return `${redis} cannot be used, and weir keeps trying: ${why}`;
  }

  /** The line about a new login that Redis `name` refused with `reason` on a connection, which goes on without. */
  renewalSentence(reason: string, name: string): string {
    const refusal = this.loginSentence(reason, 'the new login') ?? `refuses the new login (${reason})`;
    return `Redis ${name} ${refusal}; the connection goes on with the login before`;
  }

  /** About who may log in, and do what. */
  private loginSentence(reason: string, what = 'the login'): string | undefined {
    const { prefix, login } = this.names;
    const place = `${LOGIN_PLACES[login ?? 'AUTH']}${prefix}_${login}`;
    if (reason.startsWith('WRONGPASS')) {
      const form = login === 'URL' ? '' : ', which is read as user:password where it holds a colon';
      return `refuses ${what}: correct the user or the password in ${place}${form} (${reason})`;
    }
    if (reason.startsWith('NOAUTH')) {
      return login === undefined
        ? `wants a login: set ${prefix}_AUTH or ${prefix}_AUTH_FILE to its password, or to user:password (${reason})`
        : `wants a login: there is no password in ${place} (${reason})`;
    }
    if (reason.startsWith('NOPERM')) {
      const user = login === undefined ? 'the default user' : `the user in ${place}`;
      return `does not let ${user} do what weir does: run ACL SETUSER with that user and ${RIGHTS} (${reason})`;
    }
    return undefined;
  }

  private get place(): FaultPlace {
    const { prefix } = this.names;
    return { prefix, db: this.address.db, sentinel: this.address.sentinel !== undefined };
  }

  private async findMismatch(endpoint: RedisEndpoint): Promise<void> {
    const { tls } = this.address;
    const { prefix } = this.names;
    if (!tls && (await speaksTls(endpoint))) {
      this.mismatch =
        'it speaks TLS, and was asked in clear text; ' +
        `write rediss:// in ${prefix}_URL, or set ${prefix}_TLS=true`;
    }
    if (tls && (await speaksClearText(endpoint))) {
      this.mismatch =
        'it speaks clear text, and was asked over TLS; ' +
        `write redis:// in ${prefix}_URL, and do not set ${prefix}_TLS`;
    }
  }
}

/** Whether a PING is answered that is not encrypted: by PONG, or by an error such as NOAUTH. */
async function speaksClearText(endpoint: RedisEndpoint): Promise<boolean> {
  const socket = connect(endpoint);
  const told = await firstWord<boolean>(socket, (tell) => {
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.once('data', (bytes: Buffer) =>
      tell(/^(?:\+PONG|-[A-Z]+ )/.test(bytes.toString('latin1', 0, 32))),
    );
  });
  return told === true;
}
