import { test } from '@jest/globals';
import type { RedisClient } from '../../../src/storage/redis/connection/connection-options.js';
import { redisClient } from './redis-client.js';

/** Defines a test of behaviour that only one client has. `why` states the reason. */
export function testOnlyWith(client: RedisClient, _why: string, ...defined: Parameters<typeof test>): void {
  if (redisClient() === client) test(...defined);
}
