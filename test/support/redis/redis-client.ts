import type { RedisClient } from '../../../src/storage/redis/connection/connection-options.js';

let used: RedisClient = 'own';

/** Makes the stores and servers of this test file use a client, before the first of them is opened. */
export function useRedisClient(client: RedisClient): void {
  used = client;
}

/** The client of the stores and servers of this test file. */
export function redisClient(): RedisClient {
  return used;
}

/** Returns what a test expects of the client in use. */
export function byClient<T>(expected: Readonly<Record<RedisClient, T>>): T {
  return expected[used];
}
