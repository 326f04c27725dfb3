/* Runs suites of a Redis Cluster with REDIS_CLIENT=ioredis. */

import { describe } from '@jest/globals';
import { useRedisClient } from '../../support/redis/redis-client.js';

useRedisClient('ioredis');

describe.each(['dead-nodes', 'misleading-nodes', 'moving-slots', 'server-on-cluster', 'abandoned-holds'])(
  '%s',
  (suite) => {
    require(`../cluster/${suite}.test.js`);
  },
);
