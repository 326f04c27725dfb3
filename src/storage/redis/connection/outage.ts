import { connect, type NetConnectOpts } from 'node:net';
import { certificateFault } from '../../../certificate-fault.js';
import { firstWord, speaksTls } from '../../../speaks-tls.js';
import type { RedisAddress } from './redis-address.js';

/** How the owner of a connection names what it is made of, for sentences about it. */
export interface RedisSettingNames {
  /** Begins the names of the variables: `REDIS` of REDIS_URL, REDIS_AUTH and REDIS_TLS. */
  readonly prefix: string;
  /** Which of them the login comes from; undefined without a login. */
  readonly login: 'URL' | 'AUTH' | 'AUTH_FILE' | undefined;
}

/** How a connection ends whose sides do not both speak TLS, as node:net, node:tls and the handshake say it. */
const CUT_OFF = /ECONNRESET|EPIPE|connection closed|malformed reply: no answer to a login/;
const NO_HANDSHAKE =
  /ETIMEDOUT|no answer to the greeting|disconnected before secure|wrong version|packet length/;

/** What the user of weir needs, whatever CACHE_KEY_PREFIX is; docs/operate/redis.md says what more is of use. */
const RIGHTS = '~*weir:1:* +evalsha +eval +mget +set +del +time';

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
  look(): Promise<void> {
    this.looking ??= this.findMismatch();
    return this.looking;
  }

  /** The line for the log. `reason` is what the connection ended with: an error of Redis, or of the system. */
  sentence(reason: string): string {
    const redis = `Redis ${this.address.redactedAddress}`;
    const login = this.loginSentence(reason);
    if (login !== undefined) return `${redis} ${login}; weir keeps trying`;
    const why = (this.isDoubtful(reason) ? this.mismatch : undefined) ?? this.remedy(reason);
    return `${redis} cannot be used, and weir keeps trying: ${why}`;
  }

  /** About who may log in, and do what. */
  private loginSentence(reason: string): string | undefined {
    const { prefix, login } = this.names;
    const place = login === 'AUTH_FILE' ? `the file of ${prefix}_AUTH_FILE` : `${prefix}_${login}`;
    if (reason.startsWith('WRONGPASS')) {
      const form = login === 'URL' ? '' : ', which is read as user:password where it holds a colon';
      return `refuses the login: correct the user or the password in ${place}${form} (${reason})`;
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

  private remedy(reason: string): string {
    const url = `${this.names.prefix}_URL`;
    if (/ECONNREFUSED|ENOENT/.test(reason)) {
      return `nothing listens there; start Redis, or correct ${url} (${reason})`;
    }
    if (/ENOTFOUND|EAI_AGAIN/.test(reason)) return `the host name is unknown; correct ${url} (${reason})`;
    if (reason.startsWith('READONLY')) {
      return `it is a replica, which takes no writes; name its primary in ${url} (${reason})`;
    }
    if (reason.startsWith('malformed reply')) {
      return `what answers there does not speak the protocol of Redis; correct ${url} (${reason})`;
    }
    if (/DB index is out of range/.test(reason)) {
      return `it has no database ${this.address.db}; name another in ${url} (${reason})`;
    }
    if (/altnames/.test(reason)) {
      return (
        `its certificate is for another name; write that name in ${url}, or set ` +
        `REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true (${reason})`
      );
    }
    if (/self[- ]signed certificate|unable to (?:verify|get)/.test(reason)) {
      const fault = certificateFault(reason);
      return `its certificate is not known; set REDIS_TLS_CACERT to the file with its issuer (${fault})`;
    }
    if (/certificate required/i.test(reason)) {
      return `it wants a client certificate; set REDIS_TLS_CLIENT_CERT and REDIS_TLS_CLIENT_KEY (${reason})`;
    }
    return reason;
  }

  private async findMismatch(): Promise<void> {
    const { tls, host, port, path } = this.address;
    const endpoint: NetConnectOpts =
      path === undefined ? { host: host as string, port: port as number } : { path };
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
async function speaksClearText(endpoint: NetConnectOpts): Promise<boolean> {
  const socket = connect(endpoint);
  const told = await firstWord<boolean>(socket, (tell) => {
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.once('data', (bytes: Buffer) =>
      tell(/^(?:\+PONG|-[A-Z]+ )/.test(bytes.toString('latin1', 0, 32))),
    );
  });
  return told === true;
}
