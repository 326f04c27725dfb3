/* Runs the suites of a single Redis, of its login and of Sentinels with REDIS_CLIENT=ioredis. */

import { describe } from '@jest/globals';
import { useRedisClient } from '../../support/redis/redis-client.js';

useRedisClient('ioredis');

describe.each([
  'redis-outages',
  'waiting-for-redis',
  'redis-errors',
  'redis-replies',
  'redis-login',
  'redis-credentials',
  'redis-sentinel',
  'redis-sentinel-connections',
  'redis-clock',
  'server-redis-outages',
  'shared-secret',
  'sharding-proxy',
])('%s', (suite) => {
  require(`../${suite}.test.js`);
});
