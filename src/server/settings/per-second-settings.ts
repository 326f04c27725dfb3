import { redisInstanceSettings } from './redis-instance-settings.js';
import type { SettingSpec } from './spec.js';

/** Settings of the second Redis, for windows of one second. */
export const PER_SECOND_SETTINGS = {
  perSecond: {
    name: 'REDIS_PERSECOND',
    effectiveWhen: ['redis'],
    type: 'boolean',
    default: 'false',
    help:
      'Keep one-second windows in a separate Redis, at REDIS_PERSECOND_URL. Token buckets stay in the ' +
      'Redis at REDIS_URL. Other REDIS_* settings apply to both Redis servers.',
    reference: { default: 'false' },
  },
  ...redisInstanceSettings('perSecond', 'REDIS_PERSECOND', {
    url: {
      default: '/var/run/nutcracker/ratelimitpersecond.sock',
      help: 'Address of the Redis for one-second windows, in the same form as REDIS_URL.',
      reference: { default: '/var/run/nutcracker/ratelimitpersecond.sock' },
    },
    authHelp: 'Password for the Redis at REDIS_PERSECOND_URL, or `user:password`.',
    authFileHelp: 'File that contains the value of REDIS_PERSECOND_AUTH. See REDIS_AUTH_FILE.',
    timeout: {
      type: 'optional_duration',
      default: '',
      help: 'Maximum time that a request waits for the Redis at REDIS_PERSECOND_URL. If unset: REDIS_TIMEOUT.',
      reference: { default: '10s', differs: 'If unset, weir uses REDIS_TIMEOUT.' },
    },
    socketTypeHelp: '`tcp` or `unix`. See REDIS_SOCKET_TYPE.',
  }),
} as const satisfies Readonly<Record<string, SettingSpec>>;
