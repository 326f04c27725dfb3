import { Redis } from '../../../../ioredis.js';
import { BackOff } from '../../../../runtime/back-off.js';
import { ignore } from '../../../../runtime/ignore.js';
import { logIn, QueryClients, queryClientOptions } from '../client/query-client.js';
import type { PreparedTls } from '../dial.js';
import { endpointName } from '../redis-address.js';
import type { RedisLogin } from '../redis-login.js';

/** Pauses before reconnecting to an unreachable Sentinel, in milliseconds. */
const PAUSES = { initialMs: 100, maxMs: 2000 };
/** Time after which a subscription counts as stable, in milliseconds. */
const STABLE_MS = 5000;
/**
 * Event that a Sentinel publishes as soon as there is a new master. `+switch-master` follows when the replicas have
 * switched (Redis documentation, "Sentinel Pub/Sub messages").
 */
const PROMOTED = '+promoted-slave';
const SWITCHED = '+switch-master';
/** Maximum number of master names in an error. */
const MAX_NAMES = 5;

/** Settings of a {@link Sentinel}. */
export interface SentinelOptions {
  readonly host: string;
  readonly port: number;
  readonly masterName: string;
  /** Login of the Sentinel itself (REDIS_SENTINEL_AUTH). */
  readonly login: RedisLogin;
  readonly tls: PreparedTls | undefined;
  /** Names of the variables with the Sentinels and with their login, for errors. */
  readonly variables: { readonly url: string; readonly auth: string };
}

/** The master that a Sentinel announces. */
export interface AnnouncedMaster {
  readonly host: string;
  readonly port: number;
  /** Configuration epoch, which rises with each failover. The reply with the largest epoch is the newest. */
  readonly epoch: number;
}

/**
 * One Redis Sentinel. Returns the master that it reports, and announces changes. Each query has its own connection,
 * because a subscribed connection cannot send queries.
 */
export class Sentinel {
  readonly name: string;
  readonly #options: SentinelOptions;
  readonly #listener: Redis;
  readonly #pauses = new BackOff(PAUSES);
  /** Start of the subscription on the current connection; Infinity without a subscription. */
  #subscribedSinceMs = Infinity;
  readonly #asking = new QueryClients();

  /**
   * Subscribes to announcements. `onNews` is called when another master is announced, and after each reconnection,
   * because an announcement may have been missed.
   */
  constructor(options: SentinelOptions, onNews: () => void) {
    this.#options = options;
    this.name = endpointName(options);
    this.#listener = new Redis({
      ...queryClientOptions(options, options.tls),
      maxRetriesPerRequest: null,
      // Each connection has to log in first.
      ...{ autoResubscribe: false, autoResendUnfulfilledCommands: false, enableOfflineQueue: false },
      retryStrategy: () => this.#pause(),
    });
    // Callers of `master` receive the error.
    this.#listener.on('error', ignore);
    this.#listener.on('message', (channel: string, text: string) => {
      const { masterName } = options;
      const isOurs = text.startsWith(`${masterName} `) || text.includes(` @ ${masterName} `);
      if (isOurs && (channel === SWITCHED || channel === PROMOTED)) onNews();
    });
    this.#listener.on('ready', () => {
      this.#listen().then(onNews, () => this.#listener.disconnect(true));
    });
    this.#listener.connect().catch(ignore);
  }

  async #listen(): Promise<void> {
    await logIn(this.#listener, this.#options.login);
    await this.#listener.subscribe(SWITCHED, PROMOTED);
    this.#subscribedSinceMs = performance.now();
  }

  /** Returns the pause before the next subscription, in milliseconds. */
  #pause(): number {
    if (performance.now() - this.#subscribedSinceMs >= STABLE_MS) this.#pauses.reset();
    this.#subscribedSinceMs = Infinity;
    return this.#pauses.next();
  }

  /** Returns the announced master. Rejects with an Error for the log, after 1 or 2 s at most. */
  async master(): Promise<AnnouncedMaster> {
    const { masterName } = this.#options;
    return this.#asking.ask(
      { endpoint: this.#options, tls: this.#options.tls, login: this.#options.login },
      async (client) => {
        const [fields, address] = await Promise.all([
          client.call('SENTINEL', 'MASTER', masterName),
          // During a failover, this command returns the new master before the fields do.
          client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName),
        ]);
        const [host, port] = Array.isArray(address) ? address : [];
        if (typeof host !== 'string' || host === '' || !/^\d{1,5}$/.test(String(port))) {
          throw new Error('the reply has an unknown format');
        }
        return { host, port: Number(port), epoch: Number(pairs(fields).get('config-epoch') ?? 0) };
      },
      (client, said) => this.#sentence(client, said),
    );
  }

  /** Closes all connections. */
  close(): void {
    this.#listener.disconnect();
    this.#asking.close();
  }

  /** Returns the problem and the remedy. */
  async #sentence(client: Redis, said: string): Promise<string> {
    const { masterName, variables } = this.#options;
    if (/No such master/i.test(said)) {
      return (
        `Sentinel ${this.name} does not know a master named ` +
        `${JSON.stringify(masterName)}${await knownMasters(client)}; correct the name at the beginning of ` +
        `${variables.url}`
      );
    }
    if (/unknown command '?`?sentinel/i.test(said)) {
      return (
        `Sentinel address ${this.name} belongs to a Redis server, not to a Sentinel; use the Sentinel's ` +
        `port in ${variables.url} (usually 26379), or, for a single Redis, set the type to SINGLE`
      );
    }
    if (/NOAUTH|WRONGPASS|NOPERM|unknown command '?`?auth/i.test(said)) {
      return `Sentinel ${this.name} refuses the login: correct ${variables.auth} (${said})`;
    }
    return `${this.name}: ${said}`;
  }
}

/** Returns the names of some masters, to compare with a mistyped name. */
async function knownMasters(client: Redis): Promise<string> {
  const masters = await client.call('SENTINEL', 'MASTERS').catch(ignore);
  if (!Array.isArray(masters) || masters.length === 0) return ', and knows no other masters';
  const names = masters.slice(0, MAX_NAMES).map((master) => JSON.stringify(pairs(master).get('name')));
  return `, but knows ${names.join(', ')}${masters.length > MAX_NAMES ? ' and others' : ''}`;
}

/** Converts a list of alternating names and values. */
function pairs(reply: unknown): Map<string, string> {
  const fields = new Map<string, string>();
  if (Array.isArray(reply)) {
    for (let i = 0; i + 1 < reply.length; i += 2) fields.set(String(reply[i]), String(reply[i + 1]));
  }
  return fields;
}
