/* Runs suites of servers with Redis with REDIS_CLIENT=ioredis. */

import { describe } from '@jest/globals';
import { useRedisClient } from '../../support/redis/redis-client.js';

useRedisClient('ioredis');

describe.each([
  'two-redis',
  'local-share',
  'deny-cache',
  'several-limits',
  'ends-at-shutdown',
  'workers',
  'large-requests',
  'different-policies',
  'hanging-workers',
  'buckets/buckets',
  'buckets/redis-unavailable',
])('%s', (suite) => {
  require(`../${suite}.test.js`);
});
