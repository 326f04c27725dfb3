/* Runs the contract of the store with REDIS_CLIENT=ioredis. */

import { describe } from '@jest/globals';
import { useRedisClient } from '../support/redis/redis-client.js';

useRedisClient('ioredis');

describe.each([
  'bucket-store-redis',
  'bucket-store',
  'holds',
  'hold-book',
  'oldest-holds',
  'freed-holds',
  'two-redis',
  'two-redis-races',
  'take-vectors',
  'announcements',
])('%s', (suite) => {
  require(`./${suite}.test.js`);
});
