import type { Socket } from 'node:net';
import { Redis, ReplyError } from '../../runtime/ioredis.js';
import { authenticate, withoutArguments } from '../../runtime/redis-auth.js';
import { ignore } from '../../runtime/signal.js';
import { networkMessage } from '../../runtime/texts.js';
import { StallTolerantTimer } from '../../runtime/timers.js';
import type { RedisServerOptions } from './connection/connection-options.js';
import { endpointName, type HostPort, type RedisAddress } from './connection/redis-address.js';
import { RedisReplyError } from './connection/redis-error.js';
import { redisOptions } from './node/redis-options.js';

/** Maximum time for a connection, a login and all queries together, in milliseconds. */
export const QUERY_MS = 2000;

/**
 * Connects to a server for a few queries, logs in, and resolves with the result of `use`. Rejects after 2 s at most, or
 * when `signal` aborts: with a {@link RedisReplyError} if the server refused a command, otherwise with another Error
 * for the log.
 */
export async function withRedis<T>(
  options: RedisServerOptions,
  signal: AbortSignal,
  use: (redis: Redis) => Promise<T>,
): Promise<T> {
  const owner = { unreadBytes: 0, leaving: ignore, sentinelFailed: ignore };
  const redis = new Redis(redisOptions(options, owner));
  let failure = '';
  redis.on('error', (error: Error) => {
    failure ||= networkMessage(error);
  });
  const end = (reason: string): void => {
    failure ||= reason;
    redis.disconnect();
    redis.stream?.destroy();
  };
  const onAbort = (): void => end('the query was canceled');
  const deadline = new StallTolerantTimer(QUERY_MS, () => end(`no answer within ${QUERY_MS} ms`));
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    signal.throwIfAborted();
    await redis.connect();
    const { username, password } = (await options.login?.login()) ?? options.address;
    if (password !== undefined) await authenticate((args) => redis.call('AUTH', ...args), username, password);
    return await use(redis);
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof ReplyError) throw new RedisReplyError(message);
    throw new Error(withoutArguments(failure || message));
  } finally {
    signal.removeEventListener('abort', onAbort);
    deadline.stop();
    end('the query has ended');
  }
}

/** Returns the server of a connection for the log. With Sentinels, it is the current master. */
export function shownServer(
  { sentinel, redactedAddress, tls }: RedisAddress,
  stream: Redis['stream'] | undefined,
): string {
  const { remoteAddress: host, remotePort: port } = (stream ?? {}) as Partial<Socket>;
  if (sentinel === undefined || host === undefined || port === undefined) return redactedAddress;
  return `${tls ? 'rediss' : 'redis'}://${endpointName({ host, port })} (master ${sentinel.masterName})`;
}

/** Returns the options of one of the servers that REDIS_URL lists, or of a node that they announce. */
export function optionsOf<T extends RedisServerOptions>(options: T, endpoint: HostPort): T {
  const { tls, username, password } = options.address;
  const redactedAddress = `${tls ? 'rediss' : 'redis'}://${endpointName(endpoint)}`;
  return { ...options, address: { ...endpoint, tls, db: 0, username, password, redactedAddress } };
}
