import { Redis } from 'ioredis';

/** Longer than any pause of a loaded machine. */
const COMMAND_MS = 20_000;

/** Target of a command. */
export interface CommandTarget {
  readonly port: number;
  readonly password?: string;
  /** Timeout of the answer; default 20 s. */
  readonly patienceMs?: number;
}

/**
 * Sends one command on its own connection to a port of 127.0.0.1. Rejects with the error of Redis, or after the
 * timeout.
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
    // Some proxies close the connection at HELLO.
    protocol: 2,
    retryStrategy: () => null,
    connectTimeout: COMMAND_MS,
    commandTimeout: patienceMs,
    maxRetriesPerRequest: 0,
    // Without this option, a refused connection keeps the process alive for two seconds.
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
