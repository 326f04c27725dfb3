import { isIPv4 } from 'node:net';
import { shownAddress } from '../../runtime/shown-address.js';
import { xdsServerFaults } from '../policies/xds-servers.js';
import { readRedisAddress, redisInstance } from './redis-address-settings.js';
import type { Settings } from './settings-table.js';
import type { RefusedSetting } from './spec.js';

/** Names of variables that are set, on the command line or in the environment. */
export type GivenSettings = ReadonlySet<string>;

/** A token, RFC 9110 section 5.6.2. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/;

const ENVOYS_FAMILIES = ['x-ratelimit', 'retry-after'];
const ENVOYS_X_RATELIMIT = /^x-ratelimit-(?:limit|remaining|reset)$/i;

const REDIS_PREFIXES = ['REDIS', 'REDIS_PERSECOND'] as const;

type Refuse = (when: boolean, variables: string | readonly string[], sentence: string) => void;

/**
 * Returns errors for combinations of valid values that are impossible or not supported. They end the start, because a
 * setting that is silently ignored could change which limits apply.
 */
export function refusedSettings(settings: Settings, given: GivenSettings): readonly RefusedSetting[] {
  const refused: RefusedSetting[] = [];
  const refuse: Refuse = (when, variables, sentence) => {
    if (when) refused.push({ variables: [variables].flat(), sentence });
  };
  const runtime = ['RUNTIME_ROOT', 'RUNTIME_SUBDIRECTORY', 'RUNTIME_APPDIRECTORY'].find((name) =>
    given.has(name),
  );
  refuse(
    given.has('CONFIG_PATH') && runtime !== undefined,
    'CONFIG_PATH',
    `${runtime} is also set, and both variables select the policies; unset one of the two`,
  );
  refuse(
    settings.backendType === 'memcache',
    'BACKEND_TYPE',
    'weir does not support memcache; unset this variable, and set REDIS_URL to keep buckets in Redis instead of memory',
  );
  refuse(
    settings.grpcMaxBufferedBytes < 2 * settings.maxRequestBytes,
    'GRPC_MAX_BUFFERED_BYTES',
    `${settings.grpcMaxBufferedBytes} is less than twice MAX_REQUEST_BYTES ` +
      `(${settings.maxRequestBytes}), so weir could close a connection because of a single large ` +
      'message; raise this value, or lower MAX_REQUEST_BYTES',
  );
  refuseSharedPorts(settings, refuse);
  refuse(
    (settings.debugServerTlsCert === '') !== (settings.debugServerTlsKey === ''),
    settings.debugServerTlsCert === '' ? 'DEBUG_SERVER_TLS_KEY' : 'DEBUG_SERVER_TLS_CERT',
    'TLS on the debug port needs both a certificate and its key; set both DEBUG_SERVER_TLS_CERT and ' +
      'DEBUG_SERVER_TLS_KEY, or neither',
  );
  refuseRedis(settings, given, refuse);
  for (const [variable, why] of xdsServerFaults(settings)) {
    refuse(settings.configType === 'GRPC_XDS_SOTW', variable, why);
  }
  for (const [name, header] of [...limitHeaders(settings), ...requestHeaders(settings)]) {
    refuse(
      !FIELD_NAME.test(header),
      name,
      `${JSON.stringify(shownAddress(header))} is not a valid header name, so Envoy would reject the response; use ` +
        'letters, digits and dashes',
    );
  }
  refuseDuplicateHeaders(settings, refuse);
  refuse(
    settings.statsFlushInterval === 0,
    'STATS_FLUSH_INTERVAL',
    'with 0, weir would send statistics continuously; set an interval such as 10s, or set DISABLE_STATS=true',
  );
  return refused;
}

/** Returns whether a listener on `host` also uses the port of `other`. False if that depends on how a name resolves. */
function listensOn(host: string, other: string): boolean {
  if (host === other || host === '' || host === '::') return true;
  return host === '0.0.0.0' && isIPv4(other);
}

/** Refuses two listeners on the same address and port. */
function refuseSharedPorts(settings: Settings, refuse: Refuse): void {
  const listeners = [
    ...(settings.grpcUds === ''
      ? [{ name: 'GRPC_PORT', host: settings.grpcHost, port: settings.grpcPort }]
      : []),
    { name: 'PORT', host: settings.host, port: settings.port },
    { name: 'DEBUG_PORT', host: settings.debugHost, port: settings.debugPort },
  ];
  listeners.forEach(({ name, host, port }, i) => {
    const other = listeners
      .slice(0, i)
      .find((one) => one.port === port && (listensOn(one.host, host) || listensOn(host, one.host)));
    refuse(
      other !== undefined && port !== 0,
      name,
      `${other?.name} also uses port ${port}; choose a different port for one of the two`,
    );
  });
}

function limitHeaders(settings: Settings): readonly (readonly [variable: string, header: string])[] {
  return [
    ['LIMIT_LIMIT_HEADER', settings.limitHeader],
    ['LIMIT_REMAINING_HEADER', settings.remainingHeader],
    ['LIMIT_RESET_HEADER', settings.resetHeader],
  ];
}

function requestHeaders(settings: Settings): readonly (readonly [variable: string, header: string])[] {
  return [
    ['LIMIT_REQUEST_LIMIT_HEADER', settings.requestLimitHeader],
    ['LIMIT_REQUEST_REMAINING_HEADER', settings.requestRemainingHeader],
    ['LIMIT_REQUEST_RESET_HEADER', settings.requestResetHeader],
  ];
}

/** Refuses unknown names in ENVOY_ADDS_HEADERS, and header names that Envoy already adds. */
function refuseDuplicateHeaders(settings: Settings, refuse: Refuse): void {
  const { envoyAddsHeaders } = settings;
  const unknown = envoyAddsHeaders.find((family) => !ENVOYS_FAMILIES.includes(family));
  refuse(
    unknown !== undefined,
    'ENVOY_ADDS_HEADERS',
    `Envoy's rate limit filter does not add ${JSON.stringify(shownAddress(unknown ?? ''))}; choose from ` +
      ENVOYS_FAMILIES.join(', '),
  );
  for (const [name, header] of limitHeaders(settings)) {
    const isDoubled =
      (envoyAddsHeaders.includes('x-ratelimit') && ENVOYS_X_RATELIMIT.test(header)) ||
      (envoyAddsHeaders.includes('retry-after') && header.toLowerCase() === 'retry-after');
    refuse(
      settings.limitHeaders && isDoubled,
      name,
      `according to ENVOY_ADDS_HEADERS, Envoy adds ${header} itself, so clients would receive the ` +
        'header twice; choose another name, or unset one of the two variables',
    );
  }
}

function refuseRedis(settings: Settings, given: GivenSettings, refuse: Refuse): void {
  const noUrl = settings.redisUrl === '';
  refuse(
    noUrl && settings.backendType === 'redis',
    'BACKEND_TYPE',
    'the value redis requires REDIS_URL; set REDIS_URL to the address of Redis, such as redis:6379',
  );
  refuse(
    noUrl && settings.perSecond,
    'REDIS_PERSECOND',
    'REDIS_URL is also required, because the Redis at REDIS_PERSECOND_URL keeps only one-second ' +
      'windows; set REDIS_URL to the address of the Redis for all other limits',
  );
  for (const [name, set] of [
    ['REDIS_SOCKET_TYPE', given.has('REDIS_SOCKET_TYPE')],
    ['REDIS_AUTH', settings.redisAuth !== ''],
    ['REDIS_AUTH_FILE', settings.redisAuthFile !== ''],
    ['REDIS_TLS', settings.redisTls],
  ] as const) {
    refuse(
      noUrl && set,
      name,
      `REDIS_URL is not set, so weir would keep buckets in memory; set REDIS_URL, or unset ${name}`,
    );
  }
  const instances = REDIS_PREFIXES.map((prefix) => redisInstance(settings, prefix));
  for (const { prefix, timeout } of instances) {
    refuse(
      timeout === 0,
      `${prefix}_TIMEOUT`,
      'with 0, a decision could wait for Redis indefinitely; set a maximum time such as 10s',
    );
  }
  const inUse = instances.filter(({ prefix }) => prefix === 'REDIS' || settings.perSecond);
  for (const instance of noUrl ? [] : inUse) {
    const address = readRedisAddress(instance);
    if ('sentence' in address) refuse(true, address.variables, address.sentence);
  }
  // Redis Cluster hashes the text in the first braces of a key, which must be weir's hash tag.
  refuse(
    !noUrl && settings.cacheKeyPrefix.includes('{'),
    'CACHE_KEY_PREFIX',
    'the prefix contains "{", which begins a key\'s hash tag; choose a prefix without "{". weir uses ' +
      "the tenant as the hash tag, so that one node of a Redis Cluster keeps all of the tenant's buckets",
  );
  for (const { prefix, auth, authFile } of instances) {
    refuse(
      auth !== '' && authFile !== '',
      `${prefix}_AUTH_FILE`,
      `${prefix}_AUTH is also set, but only one variable can provide the password; unset one of the two`,
    );
  }
}
