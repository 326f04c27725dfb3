import { Redis } from '../../ioredis.js';
import { type PlanSource, readToken, type SourceFailure, type SourceRows } from './plan-source.js';

/** Longest time for a connection, in milliseconds. */
const CONNECT_MS = 10_000;
/** Number of fields per HSCAN, about. */
const SCAN_COUNT = 1000;

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
    const client = await this.#connect();
    const stop = (): void => client.disconnect();
    signal.addEventListener('abort', stop, { once: true });
    const close = (): void => {
      signal.removeEventListener('abort', stop);
      client.disconnect();
    };
    try {
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
      throw error;
    }
  }

  failureOf(error: unknown): SourceFailure {
    return { kind: 'failed', reason: 'connection', message: (error as Error).message };
  }

  async #connect(): Promise<Redis> {
    const { hostname, port, username, protocol, searchParams } = this.#url;
    const password = this.#passwordFile === '' ? undefined : await readToken(this.#passwordFile);
    const client = new Redis({
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: Number(port || 6379),
      db: Number(searchParams.get('db') ?? 0),
      ...(username !== '' && { username: decodeURIComponent(username) }),
      ...(password !== undefined && { password }),
      ...(protocol === 'rediss:' && { tls: { servername: hostname } }),
      lazyConnect: true,
      connectTimeout: CONNECT_MS,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
    });
    let why: Error | undefined;
    client.on('error', (error: Error) => {
      why = error;
    });
    try {
      await client.connect();
    } catch (error) {
      client.disconnect();
      // The event names the reason, and the rejection says only that the connection is closed.
      throw why ?? error;
    }
    return client;
  }
}

/** Yields the fields of a hash as lines: a JSON array with the field and its value. */
async function* linesOf(client: Redis, hash: string, close: () => void): AsyncGenerator<Uint8Array> {
  try {
    // HSCAN may return a field twice.
    const seen = new Set<string>();
    for (let cursor = ''; cursor !== '0'; ) {
      const [next, fields] = await client.hscan(hash, cursor || '0', 'COUNT', SCAN_COUNT);
      cursor = next;
      let lines = '';
      for (let at = 0; at < fields.length; at += 2) {
        const field = fields[at] as string;
        if (seen.has(field)) continue;
        seen.add(field);
        lines += `${JSON.stringify([field, fields[at + 1]])}\n`;
      }
      if (lines !== '') yield Buffer.from(lines);
    }
  } finally {
    close();
  }
}
