import { redisInstanceSettings } from './redis-instance-settings.js';
import type { SettingSpec } from './spec.js';

/** The second Redis, for windows of one second. */
export const PER_SECOND_SETTINGS = {
  perSecond: {
    name: 'REDIS_PERSECOND',
    effectiveWhen: ['redis'],
    type: 'boolean',
    default: 'false',
    help:
      'Keep windows of one second in a Redis of their own; token buckets stay in REDIS_URL. Other ' +
      'REDIS_* settings are of both.',
    reference: { default: 'false' },
  },
  ...redisInstanceSettings('perSecond', 'REDIS_PERSECOND', {
    url: {
      default: '/var/run/nutcracker/ratelimitpersecond.sock',
      help: 'That Redis; as REDIS_URL.',
      reference: { default: '/var/run/nutcracker/ratelimitpersecond.sock' },
    },
    authHelp: 'Its password, or `user:password`.',
    authFileHelp: 'File that holds what REDIS_PERSECOND_AUTH would; as REDIS_AUTH_FILE.',
    authCommandHelp: 'Program that prints what REDIS_PERSECOND_AUTH would; as REDIS_AUTH_COMMAND.',
    timeout: {
      type: 'optional_duration',
      default: '',
      help: 'Longest a decision may wait for it; REDIS_TIMEOUT when unset.',
      reference: { default: '10s' },
    },
    socketTypeHelp: 'As REDIS_SOCKET_TYPE.',
  }),
} as const satisfies Readonly<Record<string, SettingSpec>>;
