import { connect } from 'node:net';
import { firstWord, speaksTls } from '../../../speaks-tls.js';
import type { RedisAddress, RedisEndpoint } from './redis-address.js';
import { IS_PROXY } from './redis-error.js';
import { type FaultPlace, faultSentence, redisFaultOf } from './redis-fault.js';

/** How the owner of a connection names what it is made of, for sentences about it. */
export interface RedisSettingNames {
  /** Begins the names of the variables: `REDIS` of REDIS_URL, REDIS_AUTH and REDIS_TLS. */
  readonly prefix: string;
  /** Which of them the login comes from; undefined without a login. */
  readonly login: 'URL' | 'AUTH' | 'AUTH_FILE' | 'AUTH_COMMAND' | undefined;
  /** Whether it is a Redis Cluster, or a node of one. */
  readonly cluster?: boolean;
}

/** Different reasons logged while Redis stays away. */
const MAX_REASONS = 10;

/** How a connection ends whose sides do not both speak TLS, as node:net, node:tls and the handshake say it. */
const CONNECTION_CUT = /ECONNRESET|EPIPE|connection (?:is )?closed|malformed reply/i;
const NO_HANDSHAKE =
  /ETIMEDOUT|no answer to the greeting|disconnected before secure|wrong version|packet length/;

/** What the user of weir needs, whatever CACHE_KEY_PREFIX is; docs/operate/redis.md says what more is of use. */
const REQUIRED_ACL_RULES =
  '~*weir:1:* +evalsha +eval +mget +set +del +time +zadd +zrem +zscore +zcard +zrangebyscore +pttl +pexpire';
const CLUSTER_RIGHTS = ' +cluster|slots +cluster|info +asking';

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
  /** What the log was told of this outage. */
  private readonly loggedSentences = new Set<string>();
  private looking: Promise<void> | undefined;
  /** What is wrong if one side speaks TLS, and the other does not, or if a proxy answers. */
  private mismatch: string | undefined;

  constructor(address: RedisAddress, names: RedisSettingNames | undefined) {
    this.address = address;
    this.names = names ?? { prefix: 'REDIS', login: address.password === undefined ? undefined : 'URL' };
  }

  /** Whether `reason` may come from TLS on one side only, or from a proxy, which {@link detectMismatch} finds out. */
  mayBeMismatch(reason: string): boolean {
    return CONNECTION_CUT.test(reason) || (this.address.tls && NO_HANDSHAKE.test(reason));
  }

  /**
   * Looks once whether Redis speaks TLS where clear text was expected, or the other way round, or whether what answers
   * is a proxy. Never rejects.
   */
  detectMismatch(endpoint: RedisEndpoint): Promise<void> {
    this.looking ??= this.findMismatch(endpoint);
    return this.looking;
  }

  /**
   * The line for the log. `reason` is what the connection to Redis `name` ended with: an error of Redis, or of the
   * system.
   */
  sentence(reason: string, name: string): string {
    const login = this.loginSentence(reason);
    if (login !== undefined) return `Redis ${name} ${login}; weir keeps trying`;
    return `Redis ${name} cannot be used, and weir keeps trying: ${this.why(reason)}`;
  }

  /** Logs {@link sentence}, each once an outage, and not too many. Returns whether it did. */
  logOnce(reason: string, name: string, log: (level: 'error', sentence: string) => void): boolean {
    const sentence = this.sentence(reason, name);
    if (this.loggedSentences.size >= MAX_REASONS || this.loggedSentences.has(sentence)) return false;
    this.loggedSentences.add(sentence);
    log('error', sentence);
    return true;
  }

  /** What follows is another outage. */
  end(): void {
    this.loggedSentences.clear();
  }

  /** The same for who does not try again. */
  lastSentence(reason: string, name: string): string {
    return `Redis ${name} ${this.loginSentence(reason) ?? `cannot be used: ${this.why(reason)}`}`;
  }

  /** The line about a new login that Redis `name` refused with `reason` on a connection, which goes on without. */
  renewalSentence(reason: string, name: string): string {
    const refusal = this.loginSentence(reason, 'the new login') ?? `refuses the new login (${reason})`;
    return `Redis ${name} ${refusal}; the connection goes on with the login before`;
  }

  private why(reason: string): string {
    return (this.mayBeMismatch(reason) ? this.mismatch : undefined) ?? faultSentence(this.place, reason);
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
    if (redisFaultOf(reason).reason === 'noperm') {
      const user = login === undefined ? 'the default user' : `the user in ${place}`;
      return `does not let ${user} do what weir does: run ACL SETUSER with that user and ${this.rights} (${reason})`;
    }
    return undefined;
  }

  private get rights(): string {
    return this.names.cluster === true ? REQUIRED_ACL_RULES + CLUSTER_RIGHTS : REQUIRED_ACL_RULES;
  }

  private get place(): FaultPlace {
    const { prefix, cluster = false } = this.names;
    const { db, sentinel, proxy = false } = this.address;
    return { prefix, db, sentinel: sentinel !== undefined, cluster, proxy };
  }

  private async findMismatch(endpoint: RedisEndpoint): Promise<void> {
    const { tls, proxy, username } = this.address;
    const { prefix, cluster = false } = this.names;
    // Where nodes are named there are no URLs.
    if (!tls && (await speaksTls(endpoint))) {
      this.mismatch =
        'it speaks TLS, and was asked in clear text; ' +
        `${cluster ? '' : `write rediss:// in ${prefix}_URL, or `}set ${prefix}_TLS=true`;
    }
    if (tls && (await speaksClearText(endpoint))) {
      this.mismatch =
        'it speaks clear text, and was asked over TLS; ' +
        `${cluster ? '' : `write redis:// in ${prefix}_URL, and `}do not set ${prefix}_TLS`;
    }
    if (tls) return;
    if (proxy === true) {
      if (username !== undefined && (await answers(endpoint, 'GET weir:1:probe')) === true) {
        this.mismatch =
          'it breaks off at a login with a user, as twemproxy does, or at what weir calls with; ' +
          `write the password of the proxy alone in ${prefix}_AUTH`;
      }
    } else if (await isKeyOnlyProxy(endpoint)) {
      this.mismatch = faultSentence(this.place, `${IS_PROXY} it breaks off at CLIENT, and not at GET`);
    }
  }
}

/** Whether it breaks off at a command that names no key, as twemproxy does; what else answers it says why. */
async function isKeyOnlyProxy(endpoint: RedisEndpoint): Promise<boolean> {
  if ((await answers(endpoint, 'GET weir:1:probe')) !== true) return false;
  return (await answers(endpoint, 'CLIENT SETNAME weir')) === false;
}

/** A command of words without spaces, as it is sent. */
function requestOf(command: string): string {
  const words = command.split(' ');
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
}

/** Whether a command is answered at all; undefined where there is no connection, or too long a silence. */
async function answers(endpoint: RedisEndpoint, command: string): Promise<boolean | undefined> {
  const socket = connect(endpoint);
  return firstWord<boolean>(socket, (tell) => {
    let connected = false;
    socket.once('connect', () => {
      connected = true;
      socket.write(requestOf(command));
    });
    socket.once('data', () => tell(true));
    socket.once('close', () => tell(connected ? false : undefined));
  });
}

/** Whether a command is answered that is not encrypted, if only by an error such as NOAUTH; also by a proxy. */
async function speaksClearText(endpoint: RedisEndpoint): Promise<boolean> {
  const socket = connect(endpoint);
  const told = await firstWord<boolean>(socket, (tell) => {
    socket.once('connect', () => socket.write(requestOf('GET weir:1:probe')));
    socket.once('data', (bytes: Buffer) => tell(/^(?:\$-?\d|-\w)/.test(bytes.toString('latin1', 0, 32))));
  });
  return told === true;
}
