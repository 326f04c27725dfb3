import { Redis } from 'ioredis';

const COMMAND_MS = 2000;

/** Where a command goes. */
export interface CommandTarget {
  readonly port: number;
  readonly password?: string;
  /** How long the answer is waited for: 2 s. */
  readonly patienceMs?: number;
}

/**
 * One command on a connection of its own to a port of 127.0.0.1. Rejects with what Redis answers, or when it does not
 * in time.
 */
export async function redisCommand(
  { port, password = '', patienceMs = COMMAND_MS }: CommandTarget,
  name: string,
  ...args: readonly string[]
): Promise<unknown> {
  const redis = new Redis({
    port,
    host: '127.0.0.1',
    ...(password !== '' && { password }),
    lazyConnect: true,
    enableReadyCheck: false,
    disableClientInfo: true,
    // Some proxies break off at HELLO.
    protocol: 2,
    retryStrategy: () => null,
    connectTimeout: COMMAND_MS,
    commandTimeout: patienceMs,
    maxRetriesPerRequest: 0,
    // Without it a connection that was refused keeps the process alive for two seconds.
    disconnectTimeout: 100,
  });
  redis.on('error', () => {});
  try {
    await redis.connect();
    return await redis.call(name, ...args);
  } finally {
    redis.disconnect();
  }
}
