import { DEFAULT_RETRY } from '../../storage/redis/connection/connection-options.js';
import { redisInstanceSettings } from './redis-instance-settings.js';
import type { SettingSpec } from './spec.js';

// REDIS_TIMEOUT is listed with the other settings of timeouts.
const { redisTimeout, ...REDIS } = redisInstanceSettings('redis', 'REDIS', {
  url: {
    default: '',
    help:
      'Address of the Redis that keeps the buckets: `host:port`, a socket path, or a URL with `redis://`, ' +
      '`rediss://` (TLS) or `unix://`. If unset, weir keeps buckets in memory.',
    reference: {
      default: '/var/run/nutcracker/ratelimit.sock',
      differs: 'If unset, weir keeps buckets in memory.',
    },
  },
  authHelp: 'Redis password, or `user:password`. Overrides a login in REDIS_URL.',
  authFileHelp:
    'File that contains the value of REDIS_AUTH. weir reads the file before each connection and ' +
    'whenever the file changes, so a password change requires no restart.',
  timeout: {
    type: 'duration',
    default: '2s',
    help:
      "Maximum time that a request waits for Redis. If the caller's `grpc-timeout` is shorter, it takes " +
      'precedence.',
    reference: {
      default: '10s',
      differs:
        "In weir, the timeout includes the wait for Redis's reply; in envoyproxy/ratelimit, the timeout " +
        'applies only to connecting.',
    },
  },
  socketTypeHelp:
    '`tcp`: REDIS_URL is `host:port`. `unix`: REDIS_URL is a path, which may be relative. If unset, weir ' +
    'detects the type.',
});

/** Settings of the store. */
export const STORE_SETTINGS = {
  backendType: {
    name: 'BACKEND_TYPE',
    type: 'backend_type',
    default: '',
    help: '`redis` requires REDIS_URL. `memcache` is not supported.',
    reference: {
      default: 'redis',
      differs: 'If unset, weir uses Redis if REDIS_URL is set, and memory otherwise.',
    },
  },
  ...REDIS,
  redisTlsCaCert: {
    name: 'REDIS_TLS_CACERT',
    effectiveWhen: ['redis', 'redisTls'],
    type: 'string',
    default: '',
    help: 'File with CA certificates for Redis (PEM), in addition to the CAs that Node.js trusts.',
    reference: { default: '' },
  },
  redisTlsClientCert: {
    name: 'REDIS_TLS_CLIENT_CERT',
    effectiveWhen: ['redis', 'redisTls'],
    type: 'string',
    default: '',
    help: 'File with the client certificate for Redis (PEM).',
    reference: { default: '' },
  },
  redisTlsClientKey: {
    name: 'REDIS_TLS_CLIENT_KEY',
    effectiveWhen: ['redis', 'redisTls'],
    type: 'string',
    default: '',
    help: 'File with the private key of the certificate in REDIS_TLS_CLIENT_CERT (PEM).',
    reference: { default: '' },
  },
  redisTlsSkipHostname: {
    name: 'REDIS_TLS_SKIP_HOSTNAME_VERIFICATION',
    effectiveWhen: ['redis', 'redisTls'],
    type: 'boolean',
    default: 'false',
    help:
      'Accept a Redis certificate even if it is for another host name. weir still verifies the ' +
      "certificate's issuer.",
    reference: { default: 'false' },
  },
  redisTimeout,
  redisHealthFollows: {
    name: 'REDIS_HEALTH_CHECK_ACTIVE_CONNECTION',
    effectiveWhen: ['redis'],
    type: 'boolean',
    default: 'false',
    help:
      'Report NOT_SERVING while Redis is unavailable. If false, weir continues to report SERVING after ' +
      'the first connection to Redis, and `on_store_failure` decides during outages.',
    reference: { default: 'false' },
  },
  redisStartupInitial: {
    name: 'REDIS_STARTUP_INITIAL_INTERVAL',
    effectiveWhen: ['redis'],
    type: 'optional_duration',
    default: '',
    help:
      'First pause between connection attempts until weir reaches Redis for the first time. The pause ' +
      `doubles after each attempt. The default is ${DEFAULT_RETRY.initialMs}ms. It does not apply to ` +
      'later reconnections.',
    reference: { default: '1s' },
  },
  redisStartupMax: {
    name: 'REDIS_STARTUP_MAX_INTERVAL',
    effectiveWhen: ['redis'],
    type: 'optional_duration',
    default: '',
    help:
      'Maximum pause between connection attempts until weir reaches Redis for the first time. It does ' +
      `not apply to later reconnections. The default is ${DEFAULT_RETRY.maxMs}ms, or ` +
      'REDIS_STARTUP_INITIAL_INTERVAL if that is longer.',
    reference: { default: '30s' },
  },
  redisStartupMaxElapsed: {
    name: 'REDIS_STARTUP_MAX_ELAPSED_TIME',
    effectiveWhen: ['redis'],
    type: 'duration',
    default: '0s',
    help: 'Exit with code 1 if weir cannot reach Redis within this time after the start. 0: never.',
    reference: { default: '0' },
  },
  redisMaxInFlight: {
    name: 'REDIS_MAX_IN_FLIGHT',
    effectiveWhen: ['redis'],
    type: 'count',
    default: '20000',
    max: 1_000_000,
    help:
      'Maximum number of limits that may wait for Redis in each process, or for each master of a Redis ' +
      'Cluster. Each limit that a request matches counts. Beyond this number, ' +
      'requests that a rule could deny get OVER_LIMIT; if Redis has stopped answering, `on_store_failure` ' +
      'decides. Requests with more than 16 limits may use half of it.',
  },
  redisBatchKeys: {
    name: 'REDIS_BATCH_KEYS',
    effectiveWhen: ['redis'],
    type: 'count',
    default: '256',
    max: 1000,
    help:
      'Maximum number of buckets in one call to Redis. 256 buckets block Redis for about a millisecond. A ' +
      'request is never split.',
  },
  cacheKeyPrefix: {
    name: 'CACHE_KEY_PREFIX',
    effectiveWhen: ['redis'],
    type: 'string',
    default: '',
    help: 'Prefix of every key in Redis. Must not contain `{`.',
    reference: { default: '' },
  },
  localCacheBytes: {
    name: 'LOCAL_CACHE_SIZE_IN_BYTES',
    effectiveWhen: ['redis'],
    type: 'optional_integer',
    default: '',
    help:
      'Memory for denials that weir repeats without asking Redis: denials of windows until the window ' +
      'ends, and denials of token buckets for DENY_CACHE_MAX_AGE. 0: off. If unset, weir caches only ' +
      'denials of token buckets.',
    reference: { default: '0' },
  },
  denyCacheMaxAge: {
    name: 'DENY_CACHE_MAX_AGE',
    effectiveWhen: ['redis', 'denials'],
    type: 'duration',
    default: '1s',
    help:
      "Maximum time for which weir repeats a token bucket's denial without asking Redis. weir repeats the " +
      'denial only while the bucket cannot have refilled. 0s: always ask Redis.',
  },
  denyCacheMaxEntries: {
    name: 'DENY_CACHE_MAX_ENTRIES',
    effectiveWhen: ['redis', 'denials', 'repeatedDenials'],
    type: 'count',
    default: '100000',
    max: 10_000_000,
    help: 'Maximum number of cached denials of token buckets. Beyond this number, weir evicts the oldest denial.',
  },
  stopIncrementWhenOver: {
    name: 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT',
    type: 'boolean',
    default: 'false',
    help: 'Do not count denied requests in fixed windows. Token buckets never count them.',
    reference: {
      default: 'false',
      differs:
        'weir checks and counts in one step; envoyproxy/ratelimit checks first and counts later. weir ' +
        'does not count a denied request in any window, including the window that denied the request.',
    },
  },
  memoryMaxBuckets: {
    name: 'MEMORY_MAX_BUCKETS',
    type: 'count',
    default: '2000000',
    max: 16_000_000,
    help: 'Maximum number of buckets in memory. Beyond this number, weir evicts the bucket that will be full soonest.',
  },
  memoryMaxBytes: {
    name: 'MEMORY_MAX_BYTES',
    type: 'count',
    default: '536870912',
    help:
      'Maximum estimated memory for buckets, in bytes. Beyond this size, weir evicts the bucket that will ' +
      'be full soonest.',
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;
