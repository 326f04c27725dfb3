import type { RedisAddress } from './redis-address.js';
import { type FaultPlace, faultSentence, redisFaultOf } from './redis-fault.js';

/** Names of a connection's settings, for messages. */
export interface RedisSettingNames {
  /** Prefix of the variables: `REDIS` for REDIS_URL, REDIS_AUTH and REDIS_TLS. */
  readonly prefix: string;
  /** Variable that contains the login; undefined without a login. */
  readonly login: 'URL' | 'AUTH' | 'AUTH_FILE' | undefined;
  /** Whether it is a Redis Cluster, or one of its nodes. */
  readonly cluster?: boolean;
}

/** Maximum number of different reasons that are logged during one outage. */
const MAX_REASONS = 10;

/** Errors of node:net, node:tls and the handshake on a connection where only one side uses TLS. */
const CONNECTION_CUT = /ECONNRESET|EPIPE|connection (?:is |was )?closed|malformed reply/i;
const NO_HANDSHAKE =
  /ETIMEDOUT|no answer to the greeting|disconnected before secure|wrong version|packet length/;

/**
 * The permissions that weir's user needs, for any CACHE_KEY_PREFIX. docs/operate/redis.md lists those that only limits
 * with holds need, and further useful permissions.
 */
const REQUIRED_ACL_RULES = '~*weir:1:* +evalsha +eval +mget +set +del +time';
const CLUSTER_RIGHTS = ' +cluster|slots +cluster|info +asking';

const LOGIN_PLACES = {
  URL: '',
  AUTH: '',
  AUTH_FILE: 'the file specified in ',
} as const;

/** Describes why a Redis is unavailable, and which variable to change. The description contains no password. */
export class Outage {
  private readonly address: RedisAddress;
  private readonly names: RedisSettingNames;
  /** Sentences of this outage that were logged. */
  private readonly loggedSentences = new Set<string>();
  /** Whether a connection has worked, so that the settings for TLS are right. */
  hasWorked = false;

  constructor(address: RedisAddress, names: RedisSettingNames | undefined) {
    this.address = address;
    this.names = names ?? { prefix: 'REDIS', login: address.password === undefined ? undefined : 'URL' };
  }

  /**
   * Returns the line for the log. `reason` is the error of Redis or the system that ended the connection to Redis
   * `name`.
   */
  sentence(reason: string, name: string): string {
    const login = this.loginSentence(reason);
    if (login !== undefined) return `Redis ${name} ${login}; weir keeps retrying`;
    return `Redis ${name} cannot be used, and weir keeps retrying: ${this.why(reason)}`;
  }

  /**
   * Logs {@link sentence} once per outage, up to a maximum number of different sentences. Returns whether it was
   * logged.
   */
  logOnce(reason: string, name: string, log: (level: 'error', sentence: string) => void): boolean {
    const sentence = this.sentence(reason, name);
    if (this.loggedSentences.size >= MAX_REASONS || this.loggedSentences.has(sentence)) return false;
    this.loggedSentences.add(sentence);
    log('error', sentence);
    return true;
  }

  /** Ends this outage. Later failures belong to a new one. */
  end(): void {
    this.loggedSentences.clear();
  }

  /** Returns the sentence for a caller that does not retry. */
  lastSentence(reason: string, name: string): string {
    return `Redis ${name} ${this.loginSentence(reason) ?? `cannot be used: ${this.why(reason)}`}`;
  }

  /** Returns the line for a new login that Redis `name` refused with `reason` on a connection that stays open. */
  renewalSentence(reason: string, name: string): string {
    const refusal = this.loginSentence(reason, 'the new login') ?? `refuses the new login (${reason})`;
    return `Redis ${name} ${refusal}; the connection keeps the previous login`;
  }

  private why(reason: string): string {
    const sentence = faultSentence(this.place, reason);
    const { tls } = this.address;
    const mayBeTls = CONNECTION_CUT.test(reason) || (tls && NO_HANDSHAKE.test(reason));
    return this.hasWorked || !mayBeTls ? sentence : `${sentence}; ${this.tlsHint(tls)}`;
  }

  private tlsHint(tls: boolean): string {
    const { prefix, cluster = false } = this.names;
    // A Redis Cluster has a list of nodes instead of a URL.
    return tls
      ? `if Redis does not use TLS, ${cluster ? '' : `use redis:// in ${prefix}_URL, and `}unset ${prefix}_TLS`
      : `if Redis uses TLS, ${cluster ? '' : `use rediss:// in ${prefix}_URL, or `}set ${prefix}_TLS=true`;
  }

  /** Returns a sentence about the login or its permissions. */
  private loginSentence(reason: string, what = 'the login'): string | undefined {
    const { prefix, login } = this.names;
    const place = `${LOGIN_PLACES[login ?? 'AUTH']}${prefix}_${login}`;
    if (reason.startsWith('WRONGPASS')) {
      const form = login === 'URL' ? '' : '; weir reads a value with a colon as user:password';
      return `refuses ${what}: correct the user or the password in ${place}${form} (${reason})`;
    }
    if (reason.startsWith('NOAUTH')) {
      return login === undefined
        ? `requires a login: set ${prefix}_AUTH to the password or user:password, or set ` +
            `${prefix}_AUTH_FILE to a file that contains the password or user:password (${reason})`
        : `requires a login, but ${place} contains no password; add the password (${reason})`;
    }
    if (redisFaultOf(reason).reason === 'noperm') {
      const user = login === undefined ? 'the default user' : `the user in ${place}`;
      return (
        `does not grant ${user} the permissions that weir needs: run ACL SETUSER for this user with ` +
        `${this.rights} (${reason})`
      );
    }
    return undefined;
  }

  private get rights(): string {
    return this.names.cluster === true ? REQUIRED_ACL_RULES + CLUSTER_RIGHTS : REQUIRED_ACL_RULES;
  }

  private get place(): FaultPlace {
    const { prefix, cluster = false } = this.names;
    const { db, sentinel } = this.address;
    return { prefix, db, sentinel: sentinel !== undefined, cluster };
  }
}
