import { isIP } from 'node:net';
import { Redis } from '../../ioredis.js';
import { authenticate, withoutArguments } from '../../redis-auth.js';
import {
  failureFor,
  type PlanSource,
  readToken,
  SourceError,
  type SourceFailure,
  type SourceRows,
} from './plan-source.js';

/** Longest time for a connection, in milliseconds. */
const CONNECT_MS = 10_000;
/** Time for Redis to close a connection that weir ends, in milliseconds. */
const DISCONNECT_MS = 100;
/** Matches replies of Redis to a login that it does not accept, or that may not read the hash. */
const REFUSED_LOGIN = /^(?:WRONGPASS|NOAUTH|NOPERM)/;
/** Number of fields per HSCAN, about. Other callers wait while their lines are made. */
const SCAN_COUNT = 250;

/**
 * Reads rows from a hash in Redis, at `redis://user@host:port/hash?db=0`. A field is a customer, and its value the name
 * of a plan or a JSON object. Each read has its own connection. If the key `<hash>:version` exists, the rows are read
 * only if its value has changed.
 */
export class RedisPlanSource implements PlanSource {
  readonly #url: URL;
  readonly #passwordFile: string;
  readonly #hash: string;
  /** The version of the rows that were stored last; null without a version. */
  #version: string | null = null;

  /** `passwordFile`: a file with the password, which is read for each connection; '' for none. */
  constructor(address: string, passwordFile: string) {
    this.#url = new URL(address);
    this.#passwordFile = passwordFile;
    this.#hash = decodeURIComponent(this.#url.pathname.slice(1));
  }

  async open(isStored: boolean, signal: AbortSignal): Promise<SourceRows | SourceFailure | 'unchanged'> {
    const password = this.#passwordFile === '' ? undefined : await readToken(this.#passwordFile);
    signal.throwIfAborted();
    const client = this.#client();
    let why: Error | undefined;
    client.on('error', (error: Error) => {
      why = error;
    });
    const stop = (): void => client.disconnect();
    signal.addEventListener('abort', stop, { once: true });
    const close = (): void => {
      signal.removeEventListener('abort', stop);
      client.disconnect();
    };
    try {
      await this.#logIn(client, password);
      const version = await client.get(`${this.#hash}:version`);
      if (isStored && version !== null && version === this.#version) {
        close();
        return 'unchanged';
      }
      const type = await client.type(this.#hash);
      if (type !== 'hash') {
        close();
        const message = type === 'none' ? 'the hash does not exist' : `the key is not a hash, but a ${type}`;
        return { kind: 'failed', reason: 'content', message };
      }
      const stored = (): void => {
        this.#version = version;
      };
      return { kind: 'rows', chunks: linesOf(client, this.#hash, close), stored };
    } catch (error) {
      close();
      // The event names the reason, and a rejection may only mean that the connection is closed.
      throw why ?? error;
    }
  }

  failureOf(error: unknown): SourceFailure {
    const { kind, reason, message } = failureFor(error as Error, 'connection');
    const shown = withoutArguments(message).replace(/^Connection is closed\.$/, 'the connection was closed');
    return { kind, reason: REFUSED_LOGIN.test(message) ? 'login' : reason, message: shown };
  }

  /** Returns a client that is not connected yet. */
  #client(): Redis {
    const { hostname, port, protocol } = this.#url;
    const host = hostname.replace(/^\[(.*)\]$/, '$1');
    // The name of a server in TLS cannot be an IP address.
    const tls = isIP(host) === 0 ? { servername: host } : {};
    return new Redis({
      host,
      port: Number(port || 6379),
      ...(protocol === 'rediss:' && { tls }),
      lazyConnect: true,
      protocol: 2,
      replyMapping: 'legacy',
      disableClientInfo: true,
      // Each command waits for its reply until the signal of `open` aborts, and the check would not.
      enableReadyCheck: false,
      connectTimeout: CONNECT_MS,
      disconnectTimeout: DISCONNECT_MS,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
    });
  }

  /**
   * Connects, logs in, and selects the database. The client's own options would only emit the error of a database that
   * does not exist, and then read another one.
   */
  async #logIn(client: Redis, password: string | undefined): Promise<void> {
    await client.connect();
    if (password !== undefined) {
      const user = decodeURIComponent(this.#url.username) || undefined;
      await authenticate((args) => client.call('AUTH', ...args), user, password);
    }
    const db = Number(this.#url.searchParams.get('db') ?? 0);
    if (db !== 0) await client.select(db);
  }
}

/**
 * Yields the fields of a hash as lines: a JSON array with the field and its value. HSCAN may return a field twice, and
 * names of a million fields would stop other callers, so the reader of the rows ignores repeated fields.
 */
async function* linesOf(client: Redis, hash: string, close: () => void): AsyncGenerator<Uint8Array> {
  try {
    for (let cursor = ''; cursor !== '0'; ) {
      const [next, fields] = await client.hscan(hash, cursor || '0', 'COUNT', SCAN_COUNT);
      cursor = next;
      let lines = '';
      for (let at = 0; at < fields.length; at += 2) {
        lines += `${JSON.stringify([fields[at], fields[at + 1]])}\n`;
      }
      if (lines !== '') yield Buffer.from(lines);
    }
    // The scan of a hash that is deleted meanwhile ends early, and without an error.
    if ((await client.type(hash)) !== 'hash') {
      throw new SourceError('transfer', 'the hash was deleted while weir read it');
    }
  } catch (error) {
    throw error instanceof SourceError ? error : new SourceError('transfer', (error as Error).message);
  } finally {
    close();
  }
}
