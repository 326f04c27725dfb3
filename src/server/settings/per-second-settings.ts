import type { SettingSpec } from './spec.js';

/** The second Redis, for windows of one second. */
export const PER_SECOND_SETTINGS = {
  perSecond: {
    name: 'REDIS_PERSECOND',
    type: 'boolean',
    default: 'false',
    help: 'Keep windows of one second in a Redis of their own; token buckets stay in REDIS_URL. Other REDIS_* settings are of both.',
    reference: { default: 'false' },
  },
  perSecondUrl: {
    name: 'REDIS_PERSECOND_URL',
    type: 'string',
    default: '/var/run/nutcracker/ratelimitpersecond.sock',
    help: 'That Redis; as REDIS_URL.',
    secret: true,
    reference: { default: '/var/run/nutcracker/ratelimitpersecond.sock' },
  },
  perSecondAuth: {
    name: 'REDIS_PERSECOND_AUTH',
    type: 'string',
    default: '',
    help: 'Its password, or `user:password`.',
    secret: true,
    reference: { default: '' },
  },
  perSecondAuthFile: {
    name: 'REDIS_PERSECOND_AUTH_FILE',
    type: 'string',
    default: '',
    help: 'File that holds what REDIS_PERSECOND_AUTH would.',
  },
  perSecondTimeout: {
    name: 'REDIS_PERSECOND_TIMEOUT',
    type: 'optional_duration',
    default: '',
    help: 'Longest a decision may wait for it; REDIS_TIMEOUT when unset.',
    reference: { default: '10s' },
  },
  perSecondSocketType: {
    name: 'REDIS_PERSECOND_SOCKET_TYPE',
    type: 'redis_socket_type',
    default: '',
    help: 'As REDIS_SOCKET_TYPE.',
    reference: { default: 'unix' },
  },
  perSecondType: {
    name: 'REDIS_PERSECOND_TYPE',
    type: 'redis_type',
    default: 'SINGLE',
    help: '`SINGLE`. `CLUSTER` and `SENTINEL` are refused for now.',
    reference: { default: 'SINGLE' },
  },
  perSecondTls: {
    name: 'REDIS_PERSECOND_TLS',
    type: 'boolean',
    default: 'false',
    help: 'Speak TLS with that Redis, as a `rediss://` URL does.',
    reference: { default: 'false' },
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;
