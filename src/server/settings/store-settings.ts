import { DEFAULT_RETRY } from '../../storage/redis/connection/connection-options.js';
import { redisInstanceSettings } from './redis-instance-settings.js';
import type { SettingSpec } from './spec.js';

// REDIS_TIMEOUT is listed with what else bounds the wait.
const { redisTimeout, ...REDIS } = redisInstanceSettings('redis', 'REDIS', {
  url: {
    default: '',
    help:
      'Where the buckets live: `host:port`, a socket path, or a `redis://`, `rediss://` (TLS), `unix://` ' +
      'URL. Unset: in memory.',
    reference: {
      default: '/var/run/nutcracker/ratelimit.sock',
      differs: 'Where it is unset, weir keeps buckets in memory.',
    },
  },
  authHelp: 'Redis password, or `user:password`. Beats one in REDIS_URL.',
  authFileHelp:
    'File that holds what REDIS_AUTH would; read anew at each connection and when it changes, so that a rotated ' +
    'password needs no restart.',
  authCommandHelp:
    'Program that prints what REDIS_AUTH would, or JSON with `username`, `password` and `expiresAt`, with its ' +
    'arguments: words with spaces between them, or a JSON array of texts. There is no shell. It runs before each ' +
    'connection and as REDIS_AUTH_REFRESH says, for 5 s at most.',
  timeout: {
    type: 'duration',
    default: '2s',
    help: 'Longest a decision may wait for Redis; a shorter `grpc-timeout` of the caller counts instead.',
    reference: {
      default: '10s',
      differs:
        'In weir it bounds the whole wait for Redis, in envoyproxy/ratelimit only the time to connect.',
    },
  },
  socketTypeHelp:
    '`tcp`: REDIS_URL is `host:port`; `unix`: it is a path, relative ones too. Unset: what it looks like.',
});

/** Where buckets live. */
export const STORE_SETTINGS = {
  backendType: {
    name: 'BACKEND_TYPE',
    type: 'backend_type',
    default: '',
    help: '`redis`; needs REDIS_URL. `memcache` is refused.',
    reference: {
      default: 'redis',
      differs: 'Where it is unset, weir uses Redis if REDIS_URL is set, and its memory otherwise.',
    },
  },
  ...REDIS,
  redisAuthRefresh: {
    name: 'REDIS_AUTH_REFRESH',
    effectiveWhen: ['redis', 'authCommand'],
    type: 'duration',
    default: '10m',
    help:
      'Longest time that a login of REDIS_AUTH_COMMAND is used before the command runs again; sooner where the ' +
      'login runs out sooner. At least 1s.',
  },
  redisTlsCaCert: {
    name: 'REDIS_TLS_CACERT',
    effectiveWhen: ['redis', 'redisTls'],
    type: 'string',
    default: '',
    help: 'File with CA certificates for TLS to Redis, beside those that Node ships.',
    reference: { default: '' },
  },
  redisTlsClientCert: {
    name: 'REDIS_TLS_CLIENT_CERT',
    effectiveWhen: ['redis', 'redisTls'],
    type: 'string',
    default: '',
    help: 'File with the client certificate for TLS to Redis.',
    reference: { default: '' },
  },
  redisTlsClientKey: {
    name: 'REDIS_TLS_CLIENT_KEY',
    effectiveWhen: ['redis', 'redisTls'],
    type: 'string',
    default: '',
    help: 'File with the key of REDIS_TLS_CLIENT_CERT.',
    reference: { default: '' },
  },
  redisTlsSkipHostname: {
    name: 'REDIS_TLS_SKIP_HOSTNAME_VERIFICATION',
    effectiveWhen: ['redis', 'redisTls'],
    type: 'boolean',
    default: 'false',
    help: "Accept a Redis certificate that names another host. The certificate's issuer is still checked.",
    reference: { default: 'false' },
  },
  redisTimeout,
  redisClock: {
    name: 'REDIS_CLOCK',
    effectiveWhen: ['redis'],
    type: 'redis_clock',
    default: 'auto',
    help:
      'Whose clock buckets go by. `server`: the script reads the clock of Redis. `caller`: weir asks Redis for its ' +
      'time now and then and gives it to the script, for services that refuse `TIME` in scripts. `auto`: `server`, ' +
      'until Redis refuses that.',
  },
  redisHealthFollows: {
    name: 'REDIS_HEALTH_CHECK_ACTIVE_CONNECTION',
    effectiveWhen: ['redis'],
    type: 'boolean',
    default: 'false',
    help: 'Health follows Redis. Off: once Redis was reached, weir stays SERVING and `on_store_failure` answers.',
    reference: { default: 'false' },
  },
  redisStartupInitial: {
    name: 'REDIS_STARTUP_INITIAL_INTERVAL',
    effectiveWhen: ['redis'],
    type: 'optional_duration',
    default: '',
    help:
      'First pause between tries to connect, until Redis was reached once; doubled each time. ' +
      `${DEFAULT_RETRY.firstMs}ms when unset, and always later.`,
    reference: { default: '1s' },
  },
  redisStartupMax: {
    name: 'REDIS_STARTUP_MAX_INTERVAL',
    effectiveWhen: ['redis'],
    type: 'optional_duration',
    default: '',
    help: `Longest such pause; ${DEFAULT_RETRY.longestMs}ms when unset, and always later.`,
    reference: { default: '30s' },
  },
  redisStartupMaxElapsed: {
    name: 'REDIS_STARTUP_MAX_ELAPSED_TIME',
    effectiveWhen: ['redis'],
    type: 'duration',
    default: '0s',
    help: 'weir ends, with exit code 1, when Redis was not reached within this time after the start; 0 for never.',
    reference: { default: '0' },
  },
  redisMaxInFlight: {
    name: 'REDIS_MAX_IN_FLIGHT',
    effectiveWhen: ['redis'],
    type: 'count',
    default: '20000',
    max: 1_000_000,
    help:
      'Most limits that may wait for Redis at once in each process, of a Redis Cluster for each of its ' +
      'masters. A request counts once for each limit that it meets, candidates included: one that meets ' +
      'three counts as three. Beyond it OVER_LIMIT is the answer where a rule may deny, or, once Redis is ' +
      'silent, `on_store_failure`. Requests of more than 16 limits wait apart, see Bounds.',
  },
  redisBatchKeys: {
    name: 'REDIS_BATCH_KEYS',
    effectiveWhen: ['redis'],
    type: 'count',
    default: '256',
    max: 1000,
    help:
      'Most buckets in one call to Redis, which does nothing else meanwhile: 256 take about a ' +
      'millisecond. A request is never split.',
  },
  cacheKeyPrefix: {
    name: 'CACHE_KEY_PREFIX',
    effectiveWhen: ['redis'],
    type: 'string',
    default: '',
    help: 'Stands before every key in Redis; may not hold `{`.',
    reference: { default: '' },
  },
  localCacheBytes: {
    name: 'LOCAL_CACHE_SIZE_IN_BYTES',
    effectiveWhen: ['redis'],
    type: 'optional_integer',
    default: '',
    help:
      'Bytes in which denials are kept, so that they are repeated without asking Redis: of windows until ' +
      'they end, of token buckets for DENY_CACHE_MAX_AGE. 0: none are. Unset: those of token buckets ' +
      'only.',
    reference: { default: '0' },
  },
  denyCacheMaxAge: {
    name: 'DENY_CACHE_MAX_AGE',
    effectiveWhen: ['redis', 'denials'],
    type: 'duration',
    default: '1s',
    help:
      'With Redis: how long a denial is repeated without asking while its token bucket cannot have ' +
      'refilled; 0s asks every time.',
  },
  denyCacheMaxEntries: {
    name: 'DENY_CACHE_MAX_ENTRIES',
    effectiveWhen: ['redis', 'denials', 'repeatedDenials'],
    type: 'count',
    default: '100000',
    max: 10_000_000,
    help: 'Most denials kept for that; past it the oldest go.',
  },
  stopIncrementWhenOver: {
    name: 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT',
    type: 'boolean',
    default: 'false',
    help: 'Denied requests do not count in fixed windows either. Token buckets never take from a denied request.',
    reference: {
      default: 'false',
      differs:
        'weir holds it exactly, where envoyproxy/ratelimit looks first and counts later. A refused request counts ' +
        'nowhere, also where it is refused.',
    },
  },
  memoryMaxBuckets: {
    name: 'MEMORY_MAX_BUCKETS',
    type: 'count',
    default: '2000000',
    max: 16_000_000,
    help: 'Most buckets in memory; past it the one that will be full soonest goes.',
  },
  memoryMaxBytes: {
    name: 'MEMORY_MAX_BYTES',
    type: 'count',
    default: '536870912',
    help: 'Most bytes of buckets in memory, estimated; past it the one that will be full soonest goes.',
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;
