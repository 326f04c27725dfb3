import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import { parentPort } from 'node:worker_threads';
import { Redis } from '../../runtime/ioredis.js';
import { authenticate, withoutArguments } from '../../runtime/redis-auth.js';
import { loadRegularFile, messageOf } from '../../runtime/regular-file.js';
import { certificateFault, networkMessage } from '../../runtime/texts.js';
import { MAX_PLAN_BYTES } from '../read/plans/plan-rows.js';
import { MAX_PLAN_ROWS } from '../read/policy-fields.js';
import type { PlanBytes } from '../read/read-domain.js';

/** Longest time for one answer, in milliseconds. */
const ANSWER_MS = 60_000;
/** Longest time for a connection, in milliseconds. */
const CONNECT_MS = 10_000;
/** Time for Redis to close a connection that weir ends, in milliseconds. */
const DISCONNECT_MS = 100;
/** Matches replies of Redis to a login that it does not accept, or that may not read the hash. */
const REFUSED_LOGIN = /^(?:WRONGPASS|NOAUTH|NOPERM)/;
/** Number of fields per HSCAN, about. Redis decides no requests meanwhile. */
const SCAN_COUNT = 250;
/** Size of a block of rows, about, in characters. */
const BLOCK_LENGTH = 256 * 1024;
/** Maximum size of the file with the password, in bytes. */
const MAX_PASSWORD_BYTES = 16_384;

/** Why a table of `plans` in Redis could not be read. A label of metrics. */
export type SourceFault =
  /** No connection, or an invalid response. */
  | 'connection'
  /** The password cannot be read, or Redis refuses the login. */
  | 'login'
  /** The key is not a hash. */
  | 'content'
  /** The reading ended too early, or the hash changed meanwhile. */
  | 'transfer'
  | 'timeout'
  | 'too_large';

/** A table could not be read. The message is a part of a sentence. */
export interface SourceFailure {
  readonly kind: 'failed';
  readonly reason: SourceFault;
  readonly message: string;
}

/** An error with a known reason. */
class SourceError extends Error {
  readonly reason: SourceFault;

  constructor(reason: SourceFault, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** `host:port` of the server at the address of a table. */
export function serverOf(address: string): string {
  const { hostname, port } = new URL(address);
  return `${hostname}:${port || 6379}`;
}

/** Result of {@link RedisRows.update}. */
export type UpdateResult = 'changed' | 'unchanged' | SourceFailure;

/** Identifies rows that were read. */
export interface KnownRows {
  readonly digest: string;
  /** The version of the rows; null without a version. */
  readonly version: string | null;
}

/**
 * Reads the rows of a hash in Redis, at `redis://user@host:port/hash?db=0`. A field is a customer, and its value the
 * name of a plan or a JSON object. Each read has its own connection. If the key `<hash>:version` exists, the rows are
 * read only if its value has changed. Rows are accepted only whole: if the version or the number of fields changes
 * while they are read, they are read again at the next poll. A large hash blocks the event loop, so that a server reads
 * in a thread (RowsThread).
 */
export class RedisRows {
  readonly #url: URL;
  readonly #server: string;
  readonly #passwordFile: string;
  readonly #hash: string;
  readonly #answerMs: number;
  #bytes: PlanBytes | undefined;
  #known: KnownRows | undefined;

  /**
   * `passwordFile`: a file with the password, which is read for each connection; '' for none. `known`: rows that were
   * read before, which are not read again.
   */
  constructor(address: string, passwordFile: string, answerMs = ANSWER_MS, known?: KnownRows) {
    this.#url = new URL(address);
    this.#server = serverOf(address);
    this.#passwordFile = passwordFile;
    this.#hash = decodeURIComponent(this.#url.pathname.slice(1));
    this.#answerMs = answerMs;
    this.#known = known;
  }

  get known(): KnownRows | undefined {
    return this.#known;
  }

  /** The rows that were read last, in shared memory: a JSON array with a field and its value on each line. */
  get bytes(): PlanBytes | undefined {
    return this.#bytes;
  }

  /**
   * Asks Redis once. {@link bytes} change only if the hash has other rows, which are complete. With `isOnlyServer`, no
   * table is on another server.
   */
  async update(isOnlyServer = true): Promise<UpdateResult> {
    const late = AbortSignal.timeout(this.#answerMs);
    try {
      return await this.#read(late, isOnlyServer);
    } catch (error) {
      if (!late.aborted) return failureOf(error as Error);
      const message = `the answer was not complete after ${this.#answerMs / 1000} s`;
      return { kind: 'failed', reason: 'timeout', message };
    }
  }

  async #read(signal: AbortSignal, isOnlyServer: boolean): Promise<UpdateResult> {
    const file = this.#passwordFile;
    const password = file === '' ? undefined : await readPassword(file, this.#server, isOnlyServer);
    signal.throwIfAborted();
    const client = this.#client();
    let why: Error | undefined;
    client.on('error', (error: Error) => {
      why = error;
    });
    const stop = (): void => client.disconnect();
    signal.addEventListener('abort', stop, { once: true });
    try {
      await this.#logIn(client, password);
      return await this.#readHash(client);
    } catch (error) {
      // The event names the reason, and a rejection may only mean that the connection is closed.
      throw error instanceof SourceError ? error : (why ?? error);
    } finally {
      signal.removeEventListener('abort', stop);
      client.disconnect();
    }
  }

  async #readHash(client: Redis): Promise<UpdateResult> {
    const hash = this.#hash;
    const version = await client.get(`${hash}:version`);
    if (version !== null && version === this.#known?.version) return 'unchanged';
    const type = await client.type(hash);
    if (type !== 'hash') {
      const message = type === 'none' ? 'the hash does not exist' : `the key is not a hash, but a ${type}`;
      throw new SourceError('content', message);
    }
    const fields = await client.hlen(hash);
    if (fields > MAX_PLAN_ROWS)
      throw new SourceError('too_large', `the hash has ${fields} fields, more than ${MAX_PLAN_ROWS}`);
    const { bytes, digest } = await bytesOf(client, hash);
    // A part of a changed hash could be a table without some customers.
    if ((await client.hlen(hash)) !== fields || (await client.get(`${hash}:version`)) !== version)
      throw new SourceError('transfer', 'the hash changed while weir read it');
    const isNew = digest !== this.#known?.digest;
    this.#known = { digest, version };
    if (isNew) this.#bytes = bytes;
    return isNew ? 'changed' : 'unchanged';
  }

  /** The client is not connected yet. */
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
      // Each command waits for its reply until the signal aborts, and the check would not.
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

/** Matches a line that begins with the server of its password: `host:port/password`. */
const WITH_SERVER = /^(?:\[[^\]]*\]|[^:/\s]+):\d+\//;

/**
 * Reads the password of a server from the file in PLANS_TOKEN_PATH: the line that begins with the server, or the whole
 * file if it names no server and there is only one. No server gets the password of another one. Rejects with a
 * SourceError that names the file, and does not contain a password.
 */
async function readPassword(file: string, server: string, isOnlyServer: boolean): Promise<string> {
  let text: string;
  try {
    text = (await loadRegularFile(file, MAX_PASSWORD_BYTES)).toString('utf8').trim();
  } catch (error) {
    throw new SourceError('login', `PLANS_TOKEN_PATH: ${messageOf(error, file)}`);
  }
  const lines = text.split('\n').map((line) => line.trim());
  const prefix = `${server}/`;
  const own = lines.find((line) => line.startsWith(prefix));
  if (own === undefined && !(isOnlyServer && !lines.some((line) => WITH_SERVER.test(line)))) {
    const why = isOnlyServer ? 'it has passwords of other servers' : 'the tables are on several servers';
    throw new SourceError(
      'login',
      `PLANS_TOKEN_PATH: no line of "${file}" begins with ${prefix}, and ${why}; write a line host:port/password for ` +
        'each server',
    );
  }
  const password = own === undefined ? text : own.slice(prefix.length);
  if (password !== '') return password;
  throw new SourceError('login', `PLANS_TOKEN_PATH: "${file}" is empty; write the password into it`);
}

/** Returns the failure for an error. Errors other than a SourceError concern the connection. */
function failureOf(error: Error): SourceFailure {
  const isOwn = error instanceof SourceError;
  const message = isOwn ? error.message : connectionMessage(networkMessage(error));
  const reason = REFUSED_LOGIN.test(message) ? 'login' : isOwn ? error.reason : 'connection';
  const shown = withoutArguments(message).replace(/^Connection is closed\.$/, 'the connection was closed');
  return { kind: 'failed', reason, message: shown };
}

function connectionMessage(text: string): string {
  if (/certificate/i.test(text)) {
    const fault = certificateFault(text);
    return `the certificate of the server is not accepted (${fault}); for a private CA, set NODE_EXTRA_CA_CERTS`;
  }
  // The rest of the error of OpenSSL is for its developers.
  const tls = /:SSL routines:[^:]*:([^:]*):/.exec(text)?.[1];
  return tls === undefined ? text : `the TLS handshake failed (${tls}); check that the port speaks TLS`;
}

/**
 * Reads the fields of a hash. HSCAN may return a field twice, and names of a million fields would stop other callers,
 * so the reader of the rows ignores repeated fields.
 */
async function bytesOf(client: Redis, hash: string): Promise<{ bytes: PlanBytes; digest: string }> {
  const digest = createHash('sha256');
  const blocks: Uint8Array[] = [];
  let size = 0;
  let lines = '';
  try {
    for (let cursor = ''; cursor !== '0'; ) {
      const [next, fields] = await client.hscan(hash, cursor || '0', 'COUNT', SCAN_COUNT);
      cursor = next;
      for (let at = 0; at < fields.length; at += 2) {
        lines += `${JSON.stringify([fields[at], fields[at + 1]])}\n`;
      }
      if (lines.length < BLOCK_LENGTH && cursor !== '0') continue;
      const block = shared(Buffer.from(lines));
      lines = '';
      size += block.length;
      if (size > MAX_PLAN_BYTES) {
        throw new SourceError('too_large', `the answer has more than ${MAX_PLAN_BYTES / 1024 / 1024} MiB`);
      }
      digest.update(block);
      blocks.push(block);
    }
    // The scan of a hash that is deleted meanwhile ends early, and without an error.
    if ((await client.type(hash)) === 'hash') return { bytes: blocks, digest: digest.digest('hex') };
  } catch (error) {
    throw error instanceof SourceError ? error : new SourceError('transfer', (error as Error).message);
  }
  throw new SourceError('transfer', 'the hash was deleted while weir read it');
}

/** Copies bytes to shared memory, so that the thread that reads the rows gets them without a copy. */
function shared(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}

/** What a thread that reads rows is started with. */
export interface RowsRequest {
  readonly address: string;
  readonly passwordFile: string;
  readonly known: KnownRows | undefined;
}

/** The message that asks the thread for an update. */
export interface RowsUpdate {
  /** See {@link RedisRows.update}. */
  readonly isOnlyServer: boolean;
}

/** The message with which the thread answers each message. */
export interface RowsAnswer {
  readonly result: UpdateResult;
  readonly known: KnownRows | undefined;
  /** The rows, in shared memory, if they have changed. */
  readonly bytes: PlanBytes | undefined;
}

/** Reads the rows of a hash for each message of the thread that started this one. */
export function answerUpdates({ address, passwordFile, known }: RowsRequest): void {
  const rows = new RedisRows(address, passwordFile, undefined, known);
  parentPort?.on('message', async ({ isOnlyServer }: RowsUpdate) => {
    const result = await rows.update(isOnlyServer);
    const bytes = result === 'changed' ? rows.bytes : undefined;
    parentPort?.postMessage({ result, known: rows.known, bytes } satisfies RowsAnswer);
  });
}
