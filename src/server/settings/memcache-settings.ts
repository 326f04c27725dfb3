import type { SettingSpec } from './spec.js';

/** What the reference reads for a store that weir does not have. */
export const MEMCACHE_SETTINGS = {
  memcacheHostPort: {
    name: 'MEMCACHE_HOST_PORT',
    type: 'string',
    default: '',
    help: 'Servers.',
    reference: { default: '', inert: 'it is about BACKEND_TYPE=memcache, which weir does not have.' },
  },
  memcacheMaxIdleConns: {
    name: 'MEMCACHE_MAX_IDLE_CONNS',
    type: 'string',
    default: '',
    help: 'Connections.',
    reference: { default: '2', inert: 'it is about BACKEND_TYPE=memcache, which weir does not have.' },
  },
  memcacheSrv: {
    name: 'MEMCACHE_SRV',
    type: 'string',
    default: '',
    help: 'SRV record.',
    reference: { default: '', inert: 'it is about BACKEND_TYPE=memcache, which weir does not have.' },
  },
  memcacheSrvRefresh: {
    name: 'MEMCACHE_SRV_REFRESH',
    type: 'string',
    default: '',
    help: 'How often it is asked.',
    reference: { default: '0', inert: 'it is about BACKEND_TYPE=memcache, which weir does not have.' },
  },
  memcacheTls: {
    name: 'MEMCACHE_TLS',
    type: 'string',
    default: '',
    help: 'TLS.',
    reference: { default: 'false', inert: 'it is about BACKEND_TYPE=memcache, which weir does not have.' },
  },
  memcacheTlsClientCert: {
    name: 'MEMCACHE_TLS_CLIENT_CERT',
    type: 'string',
    default: '',
    help: 'Certificate.',
    reference: { default: '', inert: 'it is about BACKEND_TYPE=memcache, which weir does not have.' },
  },
  memcacheTlsClientKey: {
    name: 'MEMCACHE_TLS_CLIENT_KEY',
    type: 'string',
    default: '',
    help: 'Key.',
    reference: { default: '', inert: 'it is about BACKEND_TYPE=memcache, which weir does not have.' },
  },
  memcacheTlsCaCert: {
    name: 'MEMCACHE_TLS_CACERT',
    type: 'string',
    default: '',
    help: 'Issuers.',
    reference: { default: '', inert: 'it is about BACKEND_TYPE=memcache, which weir does not have.' },
  },
  memcacheTlsSkipHostname: {
    name: 'MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION',
    type: 'string',
    default: '',
    help: 'Names.',
    reference: { default: 'false', inert: 'it is about BACKEND_TYPE=memcache, which weir does not have.' },
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;
