import { expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { LOCAL_CACHE, NEAR_RATIO, PER_SECOND, plainDecisions, STOP_INCREMENT } from './cases/stores.js';
import { describeGroup } from './runner.js';

async function keysOf({ port }: { readonly port: number }, password = ''): Promise<string[]> {
  const redis = new Redis(port, '127.0.0.1', { ...(password !== '' && { password }) });
  try {
    return await redis.keys('*');
  } finally {
    redis.disconnect();
  }
}

describeGroup('LOCAL_CACHE_SIZE_IN_BYTES', {
  env: { LOCAL_CACHE_SIZE_IN_BYTES: '1000000' },
  cases: LOCAL_CACHE,
});

describeGroup('STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', {
  env: { STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' },
  cases: STOP_INCREMENT,
});

describeGroup('STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT with a local cache', {
  env: { STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true', LOCAL_CACHE_SIZE_IN_BYTES: '1000000' },
  cases: STOP_INCREMENT.filter(({ stats }) => stats === undefined),
});

describeGroup('REDIS_PERSECOND', {
  env: ({ perSecond }) => ({
    REDIS_PERSECOND: 'true',
    REDIS_PERSECOND_SOCKET_TYPE: 'tcp',
    REDIS_PERSECOND_URL: `127.0.0.1:${perSecond.port}`,
  }),
  cases: [...PER_SECOND, ...plainDecisions()],
  more: (running) => {
    test('both hold keys', async () => {
      expect((await keysOf(running().redis)).length).toBeGreaterThan(0);
      expect((await keysOf(running().perSecond)).length).toBeGreaterThan(0);
    });
  },
});

describeGroup('CACHE_KEY_PREFIX and REDIS_AUTH', {
  env: { CACHE_KEY_PREFIX: 'mine:', REDIS_AUTH: 'open-sesame' },
  redisArgs: ['--requirepass', 'open-sesame'],
  cases: plainDecisions(),
  more: (running) => {
    test('every key begins with the prefix', async () => {
      const keys = await keysOf(running().redis, 'open-sesame');
      expect(keys.length).toBeGreaterThan(0);
      expect(keys.filter((key) => !key.startsWith('mine:'))).toEqual([]);
    });
  },
});

describeGroup('a Unix socket to Redis', {
  redisArgs: ['--unixsocket', 'redis.sock'],
  env: ({ redis }) => ({ REDIS_SOCKET_TYPE: 'unix', REDIS_URL: `${redis.folder}/redis.sock` }),
  cases: plainDecisions(),
});

describeGroup('NEAR_LIMIT_RATIO', { env: { NEAR_LIMIT_RATIO: '0.5' }, cases: NEAR_RATIO });

describeGroup('no jitter of expiry, a small pool, a pipeline window', {
  env: {
    EXPIRATION_JITTER_MAX_SECONDS: '0',
    REDIS_POOL_SIZE: '1',
    REDIS_PIPELINE_WINDOW: '150us',
    REDIS_PIPELINE_LIMIT: '8',
    REDIS_TIMEOUT: '5s',
    REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: 'true',
  },
  cases: plainDecisions(),
});
