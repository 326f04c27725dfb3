import { connect as connectClear, type NetConnectOpts, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import { ignore } from '../../../runtime/ignore.js';
import { StallTolerantTimer } from '../../../runtime/stall-tolerant-timer.js';
import type { RedisTlsOptions } from './connection-options.js';
import type { RedisEndpoint } from './redis-address.js';
import { RedisReplyError } from './redis-error.js';
import type { RedisLogin } from './redis-login.js';
import { SHORT_TEXT } from './reply-bound.js';
import { RespPipe } from './resp-pipe.js';
import { sharedLookup } from './shared-lookup.js';

/** TLS of connections that are made again and again: reading a hundred certificates takes milliseconds. */
export interface PreparedTls {
  readonly options: RedisTlsOptions;
  readonly context: SecureContext;
}

/** Reads the certificates once; undefined where no TLS is spoken. Throws an Error when they cannot be used. */
export function prepareTls(usesTls: boolean, options: RedisTlsOptions = {}): PreparedTls | undefined {
  return usesTls ? { options, context: createSecureContext({ ...options }) } : undefined;
}

/** What {@link dial} needs to know. */
export interface DialOptions {
  readonly endpoint: RedisEndpoint;
  /** Undefined: clear text. */
  readonly tls: PreparedTls | undefined;
  readonly login: RedisLogin;
  readonly db: number;
  /** Whether a proxy that shards answers, which breaks off at what names no key. */
  readonly proxied: boolean;
  /** Longest time for the connection, its TLS handshake included, milliseconds. */
  readonly connectTimeoutMs: number;
  /** Longest time until Redis has answered the greeting from then on, milliseconds. */
  readonly greetingTimeoutMs: number;
}

/** A connection that is logged in. `stream` ends with an error where Redis breaks off, or sends what is no reply. */
export interface DialedRedis {
  readonly stream: Socket;
  readonly pipe: RespPipe;
}

const KEEP_ALIVE_MS = 30_000;

/**
 * Connects to a Redis and logs in. Rejects with an Error whose message is for the log: that of the system, of TLS, or
 * of Redis (a {@link RedisReplyError}). When `signal` is aborted the connection is closed, and the promise rejects.
 */
export async function dial(options: DialOptions, signal: AbortSignal): Promise<DialedRedis> {
  const stream = openStream(options);
  // Without a listener an error ends the process. What matters of it is told by those who wait.
  stream.on('error', ignore);
  const abort = (): void => {
    stream.destroy();
  };
  signal.addEventListener('abort', abort, { once: true });
  try {
    const opened = options.tls === undefined ? 'connect' : 'secureConnect';
    await withinTime(stream, options.connectTimeoutMs, 'connect ETIMEDOUT', (resolve) => {
      stream.once(opened, () => resolve(undefined));
    });
    stream.setNoDelay(true);
    stream.setKeepAlive(true, KEEP_ALIVE_MS);
    const pipe = new RespPipe(stream, (error) => stream.destroy(error));
    await withinTime(stream, options.greetingTimeoutMs, 'no answer to the greeting', (resolve) => {
      greet(pipe, options).then(resolve, resolve);
    });
    return { stream, pipe };
  } catch (error) {
    stream.destroy();
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Begins to connect. Of a TLS connection `secureConnect` tells that it is made. */
export function openStream({ endpoint, tls }: Pick<DialOptions, 'endpoint' | 'tls'>): Socket {
  const target: NetConnectOpts = 'path' in endpoint ? endpoint : { ...endpoint, lookup: sharedLookup };
  if (tls === undefined) return connectClear(target);
  return connectTls({ ...tls.options, ...target, secureContext: tls.context });
}

/**
 * Resolves when `listen` resolves with undefined, rejects with the Error that it resolves with, with what `stream` ends
 * with, or after `ms` with `late`.
 */
function withinTime(
  stream: Socket,
  ms: number,
  late: string,
  listen: (resolve: (error: Error | undefined) => void) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let timer: StallTolerantTimer | undefined;
    const onClose = (): void => settle(new Error(closeReasonOf(stream)));
    const settle = (error: Error | undefined): void => {
      timer?.stop();
      stream.off('close', onClose);
      if (error === undefined) resolve();
      else reject(error);
    };
    timer = new StallTolerantTimer(ms, () => settle(new Error(late)));
    stream.on('close', onClose);
    if (stream.destroyed) onClose();
    else listen(settle);
  });
}

/**
 * Why a stream ended, for the log. A host with several addresses fails with an error for each of them, and without
 * words of its own.
 */
export function closeReasonOf({ errored }: Socket): string {
  if (errored === null) return 'connection closed';
  if (errored.message !== '') return errored.message;
  const errors = (errored as Partial<AggregateError>).errors ?? [];
  return errors.map(({ message }: Error) => message).join(', ') || errored.name;
}

/**
 * Logs in, names the connection and chooses the database. Resolves with what is wrong with the login, if anything is.
 * The name is what Redis is greeted with where there is no login; who may not set it, or not choose the database, is
 * found out by the probe.
 */
async function greet(pipe: RespPipe, { login, db, proxied }: DialOptions): Promise<Error | undefined> {
  const answers: Promise<unknown>[] = login.password === undefined ? [] : [sendLogin(pipe, login)];
  // After the login: who is not logged in may not set it.
  if (!proxied) answers.push(pipe.send('client', ['SETNAME', 'weir'], SHORT_TEXT));
  if (db !== 0) answers.push(pipe.send('select', [String(db)], SHORT_TEXT));
  const [first, ...rest] = await Promise.allSettled(answers);
  const isBroken = (answer: PromiseSettledResult<unknown> | undefined): answer is PromiseRejectedResult =>
    answer?.status === 'rejected' && !(answer.reason instanceof RedisReplyError);
  for (const answer of [first, ...rest]) if (isBroken(answer)) return answer.reason as Error;
  if (login.password === undefined || first?.status !== 'rejected') return undefined;
  return first.reason as Error;
}

/**
 * Sends AUTH. Rejects with Redis's error; a password that Redis does not ask for is none, as with other clients.
 */
export async function sendLogin(pipe: RespPipe, { username, password = '' }: RedisLogin): Promise<void> {
  try {
    await pipe.send('auth', username === undefined ? [password] : [username, password], SHORT_TEXT);
  } catch (error) {
    if (!needsNoPassword(error as Error)) throw error;
  }
}

/** Whether `error`, which answers AUTH, says that Redis takes everybody without a password. */
export function needsNoPassword({ message }: Error): boolean {
  return /without any password configured|no password is set/.test(message);
}
