import { LEASE_MAX } from '../../policy/leases.js';
import { own, shared, when } from './settings-values.js';

export const STORE_SETTINGS = {
  backendType: shared('BACKEND_TYPE', 'backend_type', '', {
    help: '`redis` requires REDIS_URL. `memcache` is not supported.',
    theirs: 'redis',
    differs: 'If unset, weir uses Redis if REDIS_URL is set, and memory otherwise.',
  }),
  ...when('REDIS_URL', {
    redisUrl: shared('REDIS_URL', 'string', '', {
      secret: true,
      help:
        'Address of the Redis that keeps the buckets: `host:port`, a socket path, or a URL with ' +
        '`redis://`, `rediss://` (TLS) or `unix://`. If unset, weir keeps buckets in memory.',
      theirs: '/var/run/nutcracker/ratelimit.sock',
      differs: 'If unset, weir keeps buckets in memory.',
    }),
    redisAuth: shared('REDIS_AUTH', 'string', '', {
      secret: true,
      help: 'Redis password, or `user:password`. Overrides a login in REDIS_URL.',
    }),
    redisAuthFile: own('REDIS_AUTH_FILE', 'string', '', {
      help:
        'File that contains the value of REDIS_AUTH. weir reads the file before each connection and ' +
        'whenever the file changes, so a password change requires no restart.',
    }),
    ...when('REDIS_TYPE=SENTINEL', {
      redisSentinelAuth: shared('REDIS_SENTINEL_AUTH', 'string', '', {
        secret: true,
        help: 'Password of the Sentinels, or `user:password`.',
      }),
    }),
    redisSocketType: shared('REDIS_SOCKET_TYPE', 'redis_socket_type', '', {
      help:
        '`tcp`: REDIS_URL is `host:port`. `unix`: REDIS_URL is a path, which may be relative. If unset, ' +
        'weir detects the type.',
      theirs: 'unix',
    }),
    redisType: shared('REDIS_TYPE', 'redis_type', 'SINGLE', {
      help:
        '`SINGLE`: one server. `SENTINEL`: the URL lists the name of the master and its Sentinels, such ' +
        'as `mymaster,host1:26379,host2:26379`. `CLUSTER`: the URL lists some nodes, such as ' +
        '`host1:6379,host2:6379`.',
    }),
    redisTls: shared('REDIS_TLS', 'boolean', 'false', {
      help: 'Connect over TLS, as with a `rediss://` URL.',
    }),
    ...when('REDIS_TLS=true', {
      redisTlsCaCert: shared('REDIS_TLS_CACERT', 'string', '', {
        help: 'File with CA certificates for Redis (PEM), in addition to the CAs that Node.js trusts.',
      }),
      redisTlsClientCert: shared('REDIS_TLS_CLIENT_CERT', 'string', '', {
        help: 'File with the client certificate for Redis (PEM).',
      }),
      redisTlsClientKey: shared('REDIS_TLS_CLIENT_KEY', 'string', '', {
        help: 'File with the private key of the certificate in REDIS_TLS_CLIENT_CERT (PEM).',
      }),
      redisTlsSkipHostname: shared('REDIS_TLS_SKIP_HOSTNAME_VERIFICATION', 'boolean', 'false', {
        help:
          'Accept a Redis certificate even if it is for another host name. weir still verifies the ' +
          "certificate's issuer.",
      }),
    }),
    redisTimeout: shared('REDIS_TIMEOUT', 'timeout', '2s', {
      help:
        "Maximum time that a request waits for Redis. If the caller's `grpc-timeout` is shorter, it " +
        'takes precedence.',
      theirs: '10s',
      differs:
        "In weir, the timeout includes the wait for Redis's reply; in envoyproxy/ratelimit, the timeout " +
        'applies only to connecting.',
    }),
    redisHealthFollows: shared('REDIS_HEALTH_CHECK_ACTIVE_CONNECTION', 'boolean', 'false', {
      help:
        'Report NOT_SERVING while Redis is unavailable. If false, weir continues to report SERVING ' +
        'after the first connection to Redis, and `on_store_failure` decides during outages.',
    }),
    redisStartupInitial: shared('REDIS_STARTUP_INITIAL_INTERVAL', 'optional_duration', '', {
      help:
        'First pause between connection attempts until weir reaches Redis for the first time. The pause ' +
        'doubles after each attempt. The default is 50ms. It does not apply to later reconnections.',
      theirs: '1s',
    }),
    redisStartupMax: shared('REDIS_STARTUP_MAX_INTERVAL', 'optional_duration', '', {
      help:
        'Maximum pause between connection attempts until weir reaches Redis for the first time. It does ' +
        'not apply to later reconnections. The default is 500ms, or REDIS_STARTUP_INITIAL_INTERVAL if ' +
        'that is longer.',
      theirs: '30s',
    }),
    redisStartupMaxElapsed: shared('REDIS_STARTUP_MAX_ELAPSED_TIME', 'duration', '0s', {
      help: 'Exit with code 1 if weir cannot reach Redis within this time after the start. 0: never.',
    }),
    redisMaxInFlight: own('REDIS_MAX_IN_FLIGHT', 'count', '20000', {
      max: 1_000_000,
      help:
        'Maximum number of limits that may wait for Redis in each process, or for each master of a ' +
        'Redis Cluster. Each limit that a request matches counts. Beyond this number, requests that a ' +
        'rule could deny get OVER_LIMIT; if Redis has stopped answering, `on_store_failure` decides. ' +
        'Requests with more than 16 limits may use half of it.',
    }),
    redisBatchKeys: own('REDIS_BATCH_KEYS', 'count', '256', {
      max: 1_000,
      help:
        'Maximum number of buckets in one call to Redis. 256 buckets block Redis for about a ' +
        'millisecond. A request is never split.',
    }),
    cacheKeyPrefix: shared('CACHE_KEY_PREFIX', 'string', '', {
      help: 'Prefix of every key in Redis. Must not contain `{`.',
    }),
    localCacheBytes: shared('LOCAL_CACHE_SIZE_IN_BYTES', 'optional_integer', '', {
      help:
        'Memory for denials that weir repeats without asking Redis: denials of windows until the window ' +
        'ends, and denials of token buckets for DENY_CACHE_MAX_AGE. 0: off. If unset, weir caches only ' +
        'denials of token buckets.',
      theirs: '0',
    }),
    denyCacheMaxAge: own('DENY_CACHE_MAX_AGE', 'duration', '1s', {
      help:
        "Maximum time for which weir repeats a token bucket's denial without asking Redis. weir repeats " +
        'the denial only while the bucket cannot have refilled. 0s: always ask Redis.',
    }),
    denyCacheMaxEntries: own('DENY_CACHE_MAX_ENTRIES', 'count', '100000', {
      max: 10_000_000,
      help:
        'Maximum number of cached denials of token buckets. Beyond this number, weir evicts the oldest ' +
        'denial.',
    }),
    leaseFor: own('LEASE_FOR', 'optional_duration', '', {
      help:
        'Default `lease` of policy files: the time for which a process may spend tokens that it has taken from ' +
        'a busy bucket in advance, from 5ms to 10s. All replicas must have the same value, because it lowers ' +
        'the capacity of token buckets. If unset, only files and limits with `lease` use leases.',
    }),
    ...when('LEASE_FOR', {
      leaseMax: own('LEASE_MAX', 'count', String(LEASE_MAX.default), {
        max: LEASE_MAX.max,
        help: 'Maximum number of tokens of a lease of LEASE_FOR, at least 2.',
      }),
    }),
  }),
  stopIncrementWhenOver: shared('STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', 'boolean', 'false', {
    help: 'Do not count denied requests in fixed windows. Token buckets never count them.',
    differs:
      'weir checks and counts in one step; envoyproxy/ratelimit checks first and counts later. weir ' +
      'does not count a denied request in any window, including the window that denied the request.',
  }),
  memoryMaxBuckets: own('MEMORY_MAX_BUCKETS', 'count', '2000000', {
    max: 16_000_000,
    help:
      'Maximum number of buckets in memory. Beyond this number, weir evicts the bucket that will be ' +
      'full soonest.',
  }),
  memoryMaxBytes: own('MEMORY_MAX_BYTES', 'count', '536870912', {
    help:
      'Maximum estimated memory for buckets, in bytes. Beyond this size, weir evicts the bucket that ' +
      'will be full soonest.',
  }),
} as const;

/** Settings of the second Redis, for windows of one second. */
export const PER_SECOND_SETTINGS = {
  ...when('REDIS_URL', {
    perSecond: shared('REDIS_PERSECOND', 'boolean', 'false', {
      help:
        'Keep one-second windows in a separate Redis, at REDIS_PERSECOND_URL. Token buckets stay in the ' +
        'Redis at REDIS_URL. Other REDIS_* settings apply to both Redis servers.',
    }),
    ...when('REDIS_PERSECOND=true', {
      perSecondUrl: shared('REDIS_PERSECOND_URL', 'string', '/var/run/nutcracker/ratelimitpersecond.sock', {
        secret: true,
        help: 'Address of the Redis for one-second windows, in the same form as REDIS_URL.',
      }),
      perSecondAuth: shared('REDIS_PERSECOND_AUTH', 'string', '', {
        secret: true,
        help: 'Password for the Redis at REDIS_PERSECOND_URL, or `user:password`.',
      }),
      perSecondAuthFile: own('REDIS_PERSECOND_AUTH_FILE', 'string', '', {
        help: 'File that contains the value of REDIS_PERSECOND_AUTH. See REDIS_AUTH_FILE.',
      }),
      ...when('REDIS_PERSECOND_TYPE=SENTINEL', {
        perSecondSentinelAuth: shared('REDIS_PERSECOND_SENTINEL_AUTH', 'string', '', {
          secret: true,
          help: 'Password of the Sentinels, or `user:password`.',
        }),
      }),
      perSecondTimeout: shared('REDIS_PERSECOND_TIMEOUT', 'optional_timeout', '', {
        help: 'Maximum time that a request waits for the Redis at REDIS_PERSECOND_URL. If unset: REDIS_TIMEOUT.',
        theirs: '10s',
        differs: 'If unset, weir uses REDIS_TIMEOUT.',
      }),
      perSecondSocketType: shared('REDIS_PERSECOND_SOCKET_TYPE', 'redis_socket_type', '', {
        help: '`tcp` or `unix`. See REDIS_SOCKET_TYPE.',
        theirs: 'unix',
      }),
      perSecondType: shared('REDIS_PERSECOND_TYPE', 'redis_type', 'SINGLE', {
        help:
          '`SINGLE`: one server. `SENTINEL`: the URL lists the name of the master and its Sentinels, ' +
          'such as `mymaster,host1:26379,host2:26379`. `CLUSTER`: the URL lists some nodes, such as ' +
          '`host1:6379,host2:6379`.',
      }),
      perSecondTls: shared('REDIS_PERSECOND_TLS', 'boolean', 'false', {
        help: 'Connect over TLS, as with a `rediss://` URL.',
      }),
    }),
  }),
} as const;
