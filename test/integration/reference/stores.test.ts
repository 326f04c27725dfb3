import { expect, test } from '@jest/globals';

import { RawClient } from '../../support/grpc/grpc-client.js';
import { redisClient } from '../../support/redis/redis-client.js';
import { LOCAL_CACHE, NEAR_RATIO, PER_SECOND, plainDecisions, STOP_INCREMENT } from './cases/stores.js';
import { describeGroup } from './runner.js';

async function keysOf({ port }: { readonly port: number }, password = ''): Promise<string[]> {
  const redis = redisClient(port, { ...(password !== '' && { password }) });
  return redis.keys('*');
}

describeGroup('LOCAL_CACHE_SIZE_IN_BYTES', {
  env: { LOCAL_CACHE_SIZE_IN_BYTES: '1000000' },
  cases: LOCAL_CACHE,
});

describeGroup('STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', {
  env: { STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' },
  cases: STOP_INCREMENT,
});

describeGroup('REDIS_PERSECOND, and NEAR_LIMIT_RATIO', {
  perSecond: true,
  env: ({ perSecond }) => ({
    REDIS_PERSECOND: 'true',
    REDIS_PERSECOND_SOCKET_TYPE: 'tcp',
    REDIS_PERSECOND_URL: `127.0.0.1:${perSecond?.port}`,
    NEAR_LIMIT_RATIO: '0.5',
  }),
  cases: [...PER_SECOND, ...NEAR_RATIO],
  more: (running) => {
    test('both Redis servers contain keys', async () => {
      const { redis, perSecond } = running();
      expect((await keysOf(redis)).length).toBeGreaterThan(0);
      expect((await keysOf(perSecond!)).length).toBeGreaterThan(0);
    });
  },
});

/** Variables that do not change decisions, some in the syntax of Go. */
const OTHER_VALUES = {
  CACHE_KEY_PREFIX: 'mine:',
  REDIS_AUTH: 'open-sesame',
  REDIS_SOCKET_TYPE: 'unix',
  EXPIRATION_JITTER_MAX_SECONDS: '0',
  REDIS_POOL_SIZE: '1',
  REDIS_PIPELINE_WINDOW: '150us',
  REDIS_PIPELINE_LIMIT: '8',
  REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: 'true',
  LIMIT_RESPONSE_HEADERS_ENABLED: 'F',
  MERGE_DOMAIN_CONFIG: '1',
  RUNTIME_WATCH_ROOT: 'FALSE',
  REDIS_TIMEOUT: '1m30s',
  GRPC_MAX_CONNECTION_AGE: '1.5h',
  NEAR_LIMIT_RATIO: '0.80',
  LOG_LEVEL: 'Error',
};
describeGroup('Unix domain sockets, a password, a key prefix, a small pool, and values in the syntax of Go', {
  redisArgs: ['--unixsocket', 'redis.sock', '--requirepass', 'open-sesame'],
  env: ({ redis, root }) => ({
    ...OTHER_VALUES,
    REDIS_URL: `${redis.folder}/redis.sock`,
    GRPC_UDS: `${root}/rls.sock`,
  }),
  cases: plainDecisions(),
  client: (_target, { root }) => new RawClient(`unix:${root}/rls.sock`),
  more: (running) => {
    test('every key begins with the prefix', async () => {
      const keys = await keysOf(running().redis, 'open-sesame');
      expect(keys.length).toBeGreaterThan(0);
      expect(keys.filter((key) => !key.startsWith('mine:'))).toEqual([]);
    });
  },
});

describeGroup('every variable set to its default', {
  env: {
    GRPC_MAX_CONNECTION_AGE: '24h',
    GRPC_MAX_CONNECTION_AGE_GRACE: '1h',
    GRPC_SERVER_USE_TLS: 'false',
    LOG_LEVEL: 'WARN',
    LOG_FORMAT: 'text',
    CONFIG_TYPE: 'FILE',
    FORCE_START_WITHOUT_INITIAL_CONFIG: 'false',
    CONFIG_GRPC_XDS_NODE_ID: 'default',
    CONFIG_GRPC_XDS_SERVER_URL: 'localhost:18000',
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '3s',
    CONFIG_GRPC_XDS_SERVER_USE_TLS: 'false',
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '10s',
    XDS_CLIENT_BACKOFF_MAX_INTERVAL: '60s',
    XDS_CLIENT_BACKOFF_RANDOM_FACTOR: '0.5',
    XDS_CLIENT_BACKOFF_JITTER: 'true',
    USE_DOG_STATSD: 'false',
    USE_STATSD: 'true',
    DISABLE_STATS: 'false',
    USE_PROMETHEUS: 'false',
    PROMETHEUS_ADDR: ':9090',
    PROMETHEUS_PATH: '/metrics',
    PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS: 'false',
    RUNTIME_APPDIRECTORY: 'config',
    RUNTIME_IGNOREDOTFILES: 'false',
    RUNTIME_WATCH_ROOT: 'true',
    EXPIRATION_JITTER_MAX_SECONDS: '300',
    LOCAL_CACHE_SIZE_IN_BYTES: '0',
    NEAR_LIMIT_RATIO: '0.8',
    BACKEND_TYPE: 'redis',
    STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'false',
    LIMIT_RESPONSE_HEADERS_ENABLED: 'false',
    LIMIT_LIMIT_HEADER: 'RateLimit-Limit',
    LIMIT_REMAINING_HEADER: 'RateLimit-Remaining',
    LIMIT_RESET_HEADER: 'RateLimit-Reset',
    HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: 'false',
    REDIS_TYPE: 'SINGLE',
    REDIS_POOL_SIZE: '10',
    REDIS_TLS: 'false',
    REDIS_TLS_SKIP_HOSTNAME_VERIFICATION: 'false',
    REDIS_PIPELINE_WINDOW: '0',
    REDIS_PIPELINE_LIMIT: '0',
    REDIS_CLUSTER_PIPELINE_PARALLELISM: '1',
    REDIS_PERSECOND: 'false',
    REDIS_PERSECOND_SOCKET_TYPE: 'unix',
    REDIS_PERSECOND_TYPE: 'SINGLE',
    REDIS_PERSECOND_URL: '/var/run/nutcracker/ratelimitpersecond.sock',
    REDIS_PERSECOND_POOL_SIZE: '10',
    REDIS_PERSECOND_TLS: 'false',
    REDIS_PERSECOND_PIPELINE_WINDOW: '0',
    REDIS_PERSECOND_PIPELINE_LIMIT: '0',
    REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM: '1',
    REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: 'false',
    REDIS_TIMEOUT: '10s',
    REDIS_PERSECOND_TIMEOUT: '10s',
    REDIS_POOL_ON_EMPTY_BEHAVIOR: 'WAIT',
    REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR: 'WAIT',
    REDIS_STARTUP_INITIAL_INTERVAL: '1s',
    REDIS_STARTUP_MAX_INTERVAL: '30s',
    REDIS_STARTUP_MAX_ELAPSED_TIME: '0',
    MEMCACHE_MAX_IDLE_CONNS: '2',
    MEMCACHE_SRV_REFRESH: '0',
    MEMCACHE_TLS: 'false',
    MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION: 'false',
    SHADOW_MODE: 'false',
    QUOTA_MODE: 'false',
    RESPONSE_DYNAMIC_METADATA: 'false',
    MERGE_DOMAIN_CONFIG: 'false',
    TRACING_ENABLED: 'false',
    TRACING_SERVICE_NAME: 'RateLimit',
    TRACING_EXPORTER_PROTOCOL: 'http',
    TRACING_SAMPLING_RATE: '1',
  },
  cases: plainDecisions(),
});
