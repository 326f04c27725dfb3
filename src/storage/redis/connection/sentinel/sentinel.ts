import { BackOff } from '../../../../runtime/back-off.js';
import { ignore } from '../../../../runtime/ignore.js';
import { Redis } from '../client/ioredis.js';
import { logIn, QueryClients, queryClientOptions } from '../client/query-client.js';
import type { PreparedTls } from '../dial.js';
import { endpointName } from '../redis-address.js';
import type { RedisLogin } from '../redis-login.js';

/** Pauses before a Sentinel that cannot be reached is listened to again. */
const PAUSES = { initialMs: 100, maxMs: 2000 };
/** After so long a Sentinel that was listened to is no longer one that comes and goes. Milliseconds. */
const STABLE_MS = 5000;
/**
 * `+promoted-slave` is said as soon as there is a new master, `+switch-master` once the replicas follow it (Redis
 * documentation, "Sentinel Pub/Sub messages").
 */
const PROMOTED = '+promoted-slave';
const SWITCHED = '+switch-master';
/** Names of masters that an error lists. */
const MAX_NAMES = 5;

/** Settings of a {@link Sentinel}. */
export interface SentinelOptions {
  readonly host: string;
  readonly port: number;
  readonly masterName: string;
  /** Of the Sentinel itself (REDIS_SENTINEL_AUTH). */
  readonly login: RedisLogin;
  readonly tls: PreparedTls | undefined;
  /** The variable that names the Sentinels, and the one with their login, for errors. */
  readonly variables: { readonly url: string; readonly auth: string };
}

/** Which master a Sentinel announces. */
export interface AnnouncedMaster {
  readonly host: string;
  readonly port: number;
  /** Grows with each failover: of several answers the largest is the newest. */
  readonly epoch: number;
}

/**
 * One Redis Sentinel: who it says is the master, and when it says so of another one. Each question has a connection of
 * its own, as who listens to announcements can ask nothing else.
 */
export class Sentinel {
  readonly name: string;
  readonly #options: SentinelOptions;
  readonly #listener: Redis;
  readonly #pauses = new BackOff(PAUSES);
  /** Since when announcements are heard on the connection at hand; Infinity while they are not. */
  #subscribedSinceMs = Infinity;
  readonly #asking = new QueryClients();

  /**
   * Begins to listen. `onNews` is called when another master is announced, and when the Sentinel is heard again after
   * an announcement may have been missed.
   */
  constructor(options: SentinelOptions, onNews: () => void) {
    this.#options = options;
    this.name = endpointName(options);
    this.#listener = new Redis({
      ...queryClientOptions(options, options.tls),
      maxRetriesPerRequest: null,
      // Each connection is logged in anew first.
      ...{ autoResubscribe: false, autoResendUnfulfilledCommands: false, enableOfflineQueue: false },
      retryStrategy: () => this.#pause(),
    });
    // What is wrong is told to those who ask.
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

  /** How long to wait before the Sentinel is listened to again, milliseconds. */
  #pause(): number {
    if (performance.now() - this.#subscribedSinceMs >= STABLE_MS) this.#pauses.reset();
    this.#subscribedSinceMs = Infinity;
    return this.#pauses.next();
  }

  /** The master that it announces. Rejects with an Error for the log, after a second or two at most. */
  async master(): Promise<AnnouncedMaster> {
    const { masterName } = this.#options;
    return this.#asking.ask(
      { endpoint: this.#options, tls: this.#options.tls, login: this.#options.login },
      async (client) => {
        const [fields, address] = await Promise.all([
          client.call('SENTINEL', 'MASTER', masterName),
          // In a failover this is the new master, before that of the fields is.
          client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName),
        ]);
        const [host, port] = Array.isArray(address) ? address : [];
        if (typeof host !== 'string' || host === '' || !/^\d{1,5}$/.test(String(port))) {
          throw new Error('it answers in an unknown form');
        }
        return { host, port: Number(port), epoch: Number(pairs(fields).get('config-epoch') ?? 0) };
      },
      (client, said) => this.#sentence(client, said),
    );
  }

  /** Ends all connections. */
  close(): void {
    this.#listener.disconnect();
    this.#asking.close();
  }

  /** What is wrong, and what to do about it. */
  async #sentence(client: Redis, said: string): Promise<string> {
    const { masterName, variables } = this.#options;
    if (/No such master/i.test(said)) {
      return (
        `Sentinel ${this.name} knows no master called ${JSON.stringify(masterName)}${await knownMasters(client)}; ` +
        `correct the name that ${variables.url} begins with`
      );
    }
    if (/unknown command '?`?sentinel/i.test(said)) {
      return (
        `Sentinel ${this.name} is a Redis, and no Sentinel; name the port of its Sentinel in ${variables.url} ` +
        '(26379, usually), or, for a single Redis, leave out its type'
      );
    }
    if (/NOAUTH|WRONGPASS|NOPERM|unknown command '?`?auth/i.test(said)) {
      return `Sentinel ${this.name} refuses the login: correct ${variables.auth} (${said})`;
    }
    return `${this.name}: ${said}`;
  }
}

/** Names, to compare a mistyped one with. */
async function knownMasters(client: Redis): Promise<string> {
  const masters = await client.call('SENTINEL', 'MASTERS').catch(ignore);
  if (!Array.isArray(masters) || masters.length === 0) return ', nor any other';
  const names = masters.slice(0, MAX_NAMES).map((master) => JSON.stringify(pairs(master).get('name')));
  return `, but ${names.join(', ')}${masters.length > MAX_NAMES ? ' and others' : ''}`;
}

/** Names and values by turns. */
function pairs(reply: unknown): Map<string, string> {
  const fields = new Map<string, string>();
  if (Array.isArray(reply)) {
    for (let i = 0; i + 1 < reply.length; i += 2) fields.set(String(reply[i]), String(reply[i + 1]));
  }
  return fields;
}
