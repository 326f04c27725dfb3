import { isIPv4 } from 'node:net';
import { type RedisInstance, readRedisAddress, redisInstance } from './redis-address-settings.js';
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
    `${runtime} is set, too, and both say where the policies are; unset one of them`,
  );
  refuse(
    settings.backendType === 'memcache',
    'BACKEND_TYPE',
    'weir does not support memcache; unset it, and set REDIS_URL to keep buckets in Redis: without it ' +
      'they are in memory',
  );
  refuse(
    settings.grpcMaxBufferedBytes < 2 * settings.grpcMaxMessageBytes,
    'GRPC_MAX_BUFFERED_BYTES',
    `${settings.grpcMaxBufferedBytes} is less than twice GRPC_MAX_MESSAGE_BYTES ` +
      `(${settings.grpcMaxMessageBytes}), so that one large message would end its own connection; raise it, ` +
      'or lower GRPC_MAX_MESSAGE_BYTES',
  );
  refuseSharedPorts(settings, refuse);
  refuse(
    (settings.debugServerTlsCert === '') !== (settings.debugServerTlsKey === ''),
    settings.debugServerTlsCert === '' ? 'DEBUG_SERVER_TLS_KEY' : 'DEBUG_SERVER_TLS_CERT',
    'a certificate and its key make TLS of the debug port together; set both of DEBUG_SERVER_TLS_CERT and ' +
      'DEBUG_SERVER_TLS_KEY, or neither',
  );
  refuseRedis(settings, given, refuse);
  refuse(
    settings.configType === 'GRPC_XDS_SOTW' && /^https?:\/\//i.test(settings.xdsServerUrl),
    'CONFIG_GRPC_XDS_SERVER_URL',
    'it is a URL; write host:port without a scheme, and set CONFIG_GRPC_XDS_SERVER_USE_TLS=true where it is TLS',
  );
  for (const [name, header] of [...limitHeaders(settings), ...requestHeaders(settings)]) {
    refuse(
      !FIELD_NAME.test(header),
      name,
      `${JSON.stringify(header)} is not a valid header name, and Envoy would refuse the answer; use letters, digits ` +
        'and dashes',
    );
  }
  refuseDuplicateHeaders(settings, refuse);
  refuse(
    settings.statsFlushInterval === 0,
    'STATS_FLUSH_INTERVAL',
    '0 would send statistics without a pause; set how often they are sent, such as 10s, or DISABLE_STATS=true',
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
      `${other?.name} is ${port}, too, and each needs a port of its own; choose another for one of them`,
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
    `${JSON.stringify(unknown)} is nothing that Envoy's rate limit filter adds; choose from ` +
      ENVOYS_FAMILIES.join(', '),
  );
  for (const [name, header] of limitHeaders(settings)) {
    const isDoubled =
      (envoyAddsHeaders.includes('x-ratelimit') && ENVOYS_X_RATELIMIT.test(header)) ||
      (envoyAddsHeaders.includes('retry-after') && header.toLowerCase() === 'retry-after');
    refuse(
      settings.limitHeaders && isDoubled,
      name,
      `ENVOY_ADDS_HEADERS says that Envoy adds ${header} itself, so clients would get it twice; choose ` +
        'another name, or unset one of the two variables',
    );
  }
}

function refuseRedis(settings: Settings, given: GivenSettings, refuse: Refuse): void {
  const noUrl = settings.redisUrl === '';
  refuse(
    noUrl && settings.backendType === 'redis',
    'BACKEND_TYPE',
    'redis needs REDIS_URL to say where Redis is; set it, as in REDIS_URL=redis:6379',
  );
  refuse(
    noUrl && settings.perSecond,
    'REDIS_PERSECOND',
    'it needs REDIS_URL, too: that Redis keeps windows of a second only, and all other limits need one; set REDIS_URL',
  );
  for (const [name, set] of [
    ['REDIS_SOCKET_TYPE', given.has('REDIS_SOCKET_TYPE')],
    ['REDIS_AUTH', settings.redisAuth !== ''],
    ['REDIS_AUTH_FILE', settings.redisAuthFile !== ''],
    ['REDIS_AUTH_COMMAND', settings.redisAuthCommand !== undefined],
    ['REDIS_TLS', settings.redisTls],
  ] as const) {
    refuse(
      noUrl && set,
      name,
      `REDIS_URL is not set, so buckets would be kept in memory; set REDIS_URL, or unset ${name}`,
    );
  }
  const instances = REDIS_PREFIXES.map((prefix) => redisInstance(settings, prefix));
  for (const { prefix, timeout } of instances) {
    refuse(
      timeout === 0,
      `${prefix}_TIMEOUT`,
      '0 would let a decision wait for Redis for ever; set the longest time that one may wait, such as 10s',
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
    `it holds "{", which begins the part of a key that chooses the node of a Redis Cluster, and weir puts the ` +
      'tenant there, so that all its buckets are decided at once; choose a prefix without "{"',
  );
  for (const instance of instances) refuseLogins(instance, refuse);
  refuse(
    settings.redisAuthRefresh < 1e6,
    'REDIS_AUTH_REFRESH',
    'a program would be started more than once a second; set 1s or more, such as 10m',
  );
}

/** Refuses several sources of the login of one Redis. */
function refuseLogins(instance: RedisInstance, refuse: Refuse): void {
  const { prefix, auth, authFile, authCommand } = instance;
  const [first, ...others] = [
    ...(auth === '' ? [] : [`${prefix}_AUTH`]),
    ...(authFile === '' ? [] : [`${prefix}_AUTH_FILE`]),
    ...(authCommand === undefined ? [] : [`${prefix}_AUTH_COMMAND`]),
  ];
  for (const name of others) {
    refuse(true, name, `${first} is set, too, and only one of them can give the password; unset one of them`);
  }
  const address = readRedisAddress(instance);
  refuse(
    authCommand !== undefined &&
      !('sentence' in address) &&
      (address.username ?? address.password) !== undefined,
    `${prefix}_AUTH_COMMAND`,
    `${prefix}_URL holds a login, too, and only one of them can give it; leave it out of ${prefix}_URL`,
  );
}
