import { connect as connectClear, type NetConnectOpts, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import { networkMessage } from '../../../network-message.js';
import { authenticate } from '../../../redis-auth.js';
import { ignore } from '../../../runtime/ignore.js';
import { StallTolerantTimer } from '../../../runtime/stall-tolerant-timer.js';
import type { RedisTlsOptions } from './connection-options.js';
import type { RedisEndpoint } from './redis-address.js';
import { RedisReplyError } from './redis-error.js';
import type { RedisLogin } from './redis-login.js';
import { SHORT_TEXT } from './reply-bound.js';
import { RespPipe } from './resp-pipe.js';
import { sharedLookup } from './shared-lookup.js';

/**
 * TLS settings with parsed certificates, because parsing a hundred certificates for each connection would take
 * milliseconds.
 */
export interface PreparedTls {
  readonly options: RedisTlsOptions;
  readonly context: SecureContext;
}

/** Parses the certificates once; returns undefined without TLS. Throws an Error if they are invalid. */
export function prepareTls(usesTls: boolean, options: RedisTlsOptions = {}): PreparedTls | undefined {
  return usesTls ? { options, context: createSecureContext({ ...options }) } : undefined;
}

/** Options of {@link dial}. */
export interface DialOptions {
  readonly endpoint: RedisEndpoint;
  /** Undefined for clear text. */
  readonly tls: PreparedTls | undefined;
  readonly login: RedisLogin;
  /** Maximum time for the connection and its TLS handshake, in milliseconds. */
  readonly connectTimeoutMs: number;
  /** Maximum time for the reply to the greeting after that, in milliseconds. */
  readonly greetingTimeoutMs: number;
}

/** A connection after login. `stream` ends with an error if Redis closes it or sends a malformed reply. */
export interface DialedRedis {
  readonly stream: Socket;
  readonly pipe: RespPipe;
}

const KEEP_ALIVE_MS = 30_000;

/**
 * Connects to Redis and logs in. Rejects with an Error for the log: from the system, from TLS, or from Redis (a
 * {@link RedisReplyError}). Aborting `signal` closes the connection and rejects the promise.
 */
export async function dial(options: DialOptions, signal: AbortSignal): Promise<DialedRedis> {
  const stream = openStream(options);
  // An error event without a listener would end the process. Waiting callers receive the error.
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
      greet(pipe, options).then(() => resolve(undefined), resolve);
    });
    return { stream, pipe };
  } catch (error) {
    stream.destroy();
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Starts a connection. For TLS, `secureConnect` signals that it is ready. */
export function openStream({ endpoint, tls }: Pick<DialOptions, 'endpoint' | 'tls'>): Socket {
  const target: NetConnectOpts = 'path' in endpoint ? endpoint : { ...endpoint, lookup: sharedLookup };
  if (tls === undefined) return connectClear(target);
  return connectTls({ ...tls.options, ...target, secureContext: tls.context });
}

/**
 * Resolves when `listen` resolves with undefined. Rejects with the Error that `listen` resolves with, with the error of
 * `stream`, or with `late` after `ms`.
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

/** Returns why a stream ended, for the log. */
export function closeReasonOf({ errored }: Socket): string {
  return errored === null ? 'the connection was closed' : networkMessage(errored);
}

/** Logs in. Without a login, sends PING, whose error does not matter, because the probe detects its cause. */
async function greet(pipe: RespPipe, { login }: DialOptions): Promise<void> {
  if (login.password !== undefined) return sendLogin(pipe, login);
  try {
    await pipe.send('ping', [], SHORT_TEXT);
  } catch (error) {
    if (!(error instanceof RedisReplyError)) throw error;
  }
}

/** Sends AUTH, see {@link authenticate}. */
export function sendLogin(pipe: RespPipe, { username, password = '' }: RedisLogin): Promise<void> {
  return authenticate((args) => pipe.send('auth', args, SHORT_TEXT), username, password);
}
