import { own, shared, when } from './setting.js';

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
