import { describe, expect, test } from '@jest/globals';
import { readSettings } from '../../../../src/server/settings/read-settings.js';
import { SETTINGS } from '../../../../src/server/settings/settings-table.js';

type Environment = Readonly<Record<string, string>>;

const REDIS = { REDIS_URL: 'redis:6379' };
const REDIS_TLS = { REDIS_URL: 'rediss://redis:6379' };
const PER_SECOND = { ...REDIS, REDIS_PERSECOND: 'true', REDIS_PERSECOND_URL: 'other:6379' };
const XDS = { CONFIG_TYPE: 'GRPC_XDS_SOTW' };
const XDS_TLS = { ...XDS, CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true' };
const STATSD = { USE_STATSD: 'true' };
const PROMETHEUS = { USE_PROMETHEUS: 'true' };
const TLS = { GRPC_SERVER_USE_TLS: 'true' };

const TRACING = { TRACING_ENABLED: 'true' };

/** A value of a setting, the settings that it needs to have an effect, and environments in which it has none. */
type Case = readonly [value: string, ...Effect];
type Effect = readonly [effective?: Environment, ...idle: readonly Idle[]];
/** An environment in which a setting has no effect, with the remedy in the log. */
type Idle = readonly [surroundings: Environment, remedy: string];

const NO_REDIS: Idle = [{}, 'set REDIS_URL'];
const OF_FILES: Effect = [{}, [XDS, 'CONFIG_TYPE']];
const OF_XDS: Effect = [XDS, [{}, 'CONFIG_TYPE=GRPC_XDS_SOTW']];
const OF_XDS_TLS: Effect = [XDS_TLS, [XDS, 'CONFIG_GRPC_XDS_SERVER_USE_TLS=true'], [{}, 'CONFIG_TYPE']];
const OF_TLS: Effect = [TLS, [{}, 'GRPC_SERVER_USE_TLS=true']];
const OF_REDIS: Effect = [REDIS, NO_REDIS];
const OF_PER_SECOND: Effect = [PER_SECOND, [REDIS, 'REDIS_PERSECOND=true'], NO_REDIS];
const OF_RESPONSE_HEADERS: Effect = [
  { LIMIT_RESPONSE_HEADERS_ENABLED: '1' },
  [{}, 'LIMIT_RESPONSE_HEADERS_ENABLED=true'],
];
const OF_REQUEST_HEADERS: Effect = [
  { LIMIT_REQUEST_HEADERS_ENABLED: '1' },
  [{}, 'LIMIT_REQUEST_HEADERS_ENABLED=true'],
];
const OF_STATS: Effect = [{}, [{ DISABLE_STATS: 'true' }, 'DISABLE_STATS']];
const OF_PROMETHEUS: Effect = [PROMETHEUS, [{}, 'USE_PROMETHEUS=true']];
const OF_TRACING: Effect = [TRACING, [{}, 'TRACING_ENABLED=true']];

/** Every setting. A setting without environments always has an effect. */
const CASES: Readonly<Record<string, Case>> = {
  CONFIG_PATH: ['/p', ...OF_FILES],
  CONFIG_TYPE: ['FILE'],
  RUNTIME_ROOT: ['/r', ...OF_FILES],
  RUNTIME_SUBDIRECTORY: ['s', ...OF_FILES],
  RUNTIME_APPDIRECTORY: ['a', ...OF_FILES],
  RUNTIME_WATCH_ROOT: ['false', { RUNTIME_ROOT: '/r' }, [{}, 'set RUNTIME_ROOT'], [XDS, 'CONFIG_TYPE']],
  RUNTIME_IGNOREDOTFILES: ['true', { RUNTIME_APPDIRECTORY: 'a' }, [{}, 'RUNTIME_ROOT'], [XDS, 'CONFIG_TYPE']],
  MERGE_DOMAIN_CONFIG: ['true'],
  PLANS_POLL_INTERVAL: ['1s', ...OF_FILES],
  PLANS_TOKEN_PATH: ['/t', ...OF_FILES],
  DEFAULT_ALGORITHM: ['token_bucket'],
  HOLD_ENTRY: ['lease'],
  HOLD_METADATA_KEY: ['lease'],
  FORCE_START_WITHOUT_INITIAL_CONFIG: ['true'],
  HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: ['true'],
  CONFIG_GRPC_XDS_NODE_ID: ['n', ...OF_XDS],
  CONFIG_GRPC_XDS_NODE_METADATA: ['a=b', ...OF_XDS],
  CONFIG_GRPC_XDS_SERVER_URL: ['h:1', ...OF_XDS],
  CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: ['1s', ...OF_XDS],
  CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: ['a:b', ...OF_XDS],
  CONFIG_GRPC_XDS_SERVER_USE_TLS: ['true', ...OF_XDS],
  CONFIG_GRPC_XDS_CLIENT_TLS_CERT: ['c', ...OF_XDS_TLS],
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY: ['k', ...OF_XDS_TLS],
  CONFIG_GRPC_XDS_SERVER_TLS_CACERT: ['c', ...OF_XDS_TLS],
  CONFIG_GRPC_XDS_SERVER_TLS_SAN: ['s', ...OF_XDS_TLS],
  XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: ['1s', ...OF_XDS],
  XDS_CLIENT_BACKOFF_MAX_INTERVAL: ['9s', ...OF_XDS],
  XDS_CLIENT_BACKOFF_RANDOM_FACTOR: [
    '0.1',
    XDS,
    [{ ...XDS, XDS_CLIENT_BACKOFF_JITTER: 'false' }, 'XDS_CLIENT_BACKOFF_JITTER'],
    [{}, 'CONFIG_TYPE=GRPC_XDS_SOTW'],
  ],
  XDS_CLIENT_BACKOFF_JITTER: ['false', ...OF_XDS],
  XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: ['1000', ...OF_XDS],
  GRPC_HOST: ['::1', {}, [{ GRPC_UDS: '/s' }, 'GRPC_UDS']],
  GRPC_PORT: ['9081', {}, [{ GRPC_UDS: '/s' }, 'GRPC_UDS']],
  GRPC_UDS: ['/s'],
  HOST: ['::1'],
  PORT: ['9080'],
  DEBUG_HOST: ['::1'],
  DEBUG_PORT: ['9070'],
  DEBUG_SERVER_TLS_CERT: ['c', { DEBUG_SERVER_TLS_KEY: 'k' }],
  DEBUG_SERVER_TLS_KEY: ['k', { DEBUG_SERVER_TLS_CERT: 'c' }],
  ADMIN_TOKENS_FILE: ['/etc/weir/admin-tokens'],
  GRPC_MAX_MESSAGE_BYTES: ['1000000'],
  GRPC_MAX_BUFFERED_BYTES: ['99999999', {}, [{ GRPC_TRANSPORT: 'grpc-js' }, 'GRPC_TRANSPORT=h2']],
  GRPC_MAX_CONNECTIONS: ['10'],
  GRPC_MAX_CONCURRENT_STREAMS: ['10'],
  GRPC_MAX_HEADER_BYTES: ['9000', {}, [{ GRPC_TRANSPORT: 'grpc-js' }, 'GRPC_TRANSPORT=h2']],
  GRPC_MAX_CONNECTION_AGE: ['1h'],
  GRPC_MAX_CONNECTION_AGE_GRACE: ['1m', {}, [{ GRPC_MAX_CONNECTION_AGE: '0s' }, 'GRPC_MAX_CONNECTION_AGE']],
  GRPC_KEEP_ALIVE_INTERVAL: ['1h'],
  GRPC_KEEP_ALIVE_TIMEOUT: ['1m', {}, [{ GRPC_KEEP_ALIVE_INTERVAL: '0s' }, 'GRPC_KEEP_ALIVE_INTERVAL']],
  GRPC_SERVER_USE_TLS: ['true'],
  GRPC_SERVER_TLS_CERT: ['c', ...OF_TLS],
  GRPC_SERVER_TLS_KEY: ['k', ...OF_TLS],
  GRPC_CLIENT_TLS_CACERT: ['c', ...OF_TLS],
  GRPC_CLIENT_TLS_SAN: ['s', ...OF_TLS],
  GRPC_TRANSPORT: ['grpc-js'],
  // Without REDIS_URL, several workers are an error.
  WORKERS: ['2', REDIS],
  WORKER_SCHEDULING: [
    'kernel',
    { ...REDIS, WORKERS: '2' },
    [{}, 'set WORKERS to a value above 1'],
    [{ WORKERS: '1' }, 'set WORKERS to a value above 1'],
  ],
  SHUTDOWN_DRAIN_DELAY: ['1s'],
  SHUTDOWN_GRACE: ['1s'],
  BACKEND_TYPE: ['redis', REDIS],
  REDIS_URL: ['redis:6379'],
  // Without REDIS_URL, REDIS_AUTH and REDIS_PERSECOND are errors.
  REDIS_AUTH: ['a', REDIS],
  REDIS_AUTH_FILE: ['f', REDIS],
  REDIS_SENTINEL_AUTH: [
    'a',
    { REDIS_TYPE: 'SENTINEL', REDIS_URL: 'mymaster,a' },
    NO_REDIS,
    [REDIS, 'set REDIS_TYPE=SENTINEL'],
  ],
  REDIS_SOCKET_TYPE: ['tcp', REDIS],
  REDIS_TLS: ['true', REDIS],
  REDIS_PERSECOND: ['true', PER_SECOND],
  REDIS_TYPE: ['SINGLE', ...OF_REDIS],
  REDIS_TIMEOUT: ['1s', ...OF_REDIS],
  REDIS_TLS_CACERT: ['c', REDIS_TLS, [REDIS, 'REDIS_TLS=true'], NO_REDIS],
  REDIS_TLS_CLIENT_CERT: ['c', { ...REDIS, REDIS_TLS: '1' }, [REDIS, 'REDIS_TLS=true'], NO_REDIS],
  REDIS_TLS_CLIENT_KEY: [
    'k',
    { ...PER_SECOND, REDIS_PERSECOND_TLS: 'true' },
    [PER_SECOND, 'REDIS_TLS=true'],
    NO_REDIS,
  ],
  REDIS_TLS_SKIP_HOSTNAME_VERIFICATION: ['true', REDIS_TLS, [REDIS, 'REDIS_TLS=true'], NO_REDIS],
  REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: ['true', ...OF_REDIS],
  REDIS_STARTUP_INITIAL_INTERVAL: ['1s', ...OF_REDIS],
  REDIS_STARTUP_MAX_INTERVAL: ['1s', ...OF_REDIS],
  REDIS_STARTUP_MAX_ELAPSED_TIME: ['1s', ...OF_REDIS],
  REDIS_MAX_IN_FLIGHT: ['10', ...OF_REDIS],
  REDIS_BATCH_KEYS: ['10', ...OF_REDIS],
  CACHE_KEY_PREFIX: ['a', ...OF_REDIS],
  LOCAL_CACHE_SIZE_IN_BYTES: ['1000', ...OF_REDIS],
  DENY_CACHE_MAX_AGE: ['2s', ...OF_REDIS],
  DENY_CACHE_MAX_ENTRIES: ['10', ...OF_REDIS],
  LEASE_FOR: ['50ms', ...OF_REDIS],
  LEASE_MAX: ['10', { ...REDIS, LEASE_FOR: '50ms' }, [REDIS, 'LEASE_FOR']],
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: ['true'],
  MEMORY_MAX_BUCKETS: ['10'],
  MEMORY_MAX_BYTES: ['1000'],
  REDIS_PERSECOND_URL: ['other:1', ...OF_PER_SECOND],
  REDIS_PERSECOND_AUTH: ['a', ...OF_PER_SECOND],
  REDIS_PERSECOND_SENTINEL_AUTH: [
    'a',
    { ...PER_SECOND, REDIS_PERSECOND_TYPE: 'SENTINEL', REDIS_PERSECOND_URL: 'mymaster,a' },
    [PER_SECOND, 'set REDIS_PERSECOND_TYPE=SENTINEL'],
    [REDIS, 'REDIS_PERSECOND=true'],
    NO_REDIS,
  ],
  REDIS_PERSECOND_AUTH_FILE: ['f', ...OF_PER_SECOND],
  REDIS_PERSECOND_TIMEOUT: ['1s', ...OF_PER_SECOND],
  REDIS_PERSECOND_SOCKET_TYPE: ['tcp', ...OF_PER_SECOND],
  REDIS_PERSECOND_TYPE: ['SINGLE', ...OF_PER_SECOND],
  REDIS_PERSECOND_TLS: ['true', ...OF_PER_SECOND],
  SHADOW_MODE: ['true'],
  QUOTA_MODE: ['true'],
  RESPONSE_DYNAMIC_METADATA: ['true'],
  DECISION_METADATA: ['true'],
  LIMIT_RESPONSE_HEADERS_ENABLED: ['true'],
  LIMIT_LIMIT_HEADER: ['l', ...OF_RESPONSE_HEADERS],
  LIMIT_REMAINING_HEADER: ['m', ...OF_RESPONSE_HEADERS],
  LIMIT_RESET_HEADER: ['r', ...OF_RESPONSE_HEADERS],
  LIMIT_REQUEST_HEADERS_ENABLED: ['true'],
  LIMIT_REQUEST_LIMIT_HEADER: ['l', ...OF_REQUEST_HEADERS],
  LIMIT_REQUEST_REMAINING_HEADER: ['m', ...OF_REQUEST_HEADERS],
  LIMIT_REQUEST_RESET_HEADER: ['r', ...OF_REQUEST_HEADERS],
  ENVOY_ADDS_HEADERS: ['retry-after'],
  NEAR_LIMIT_RATIO: ['0.5'],
  MAX_REQUEST_BYTES: ['10000'],
  MAX_DESCRIPTORS: ['10'],
  MAX_ENTRIES: ['10'],
  MAX_LIMITS: ['10'],
  MAX_REGEX_VALUE_BYTES: ['10'],
  MAX_MATCH_WORK: ['10'],
  LOG_LEVEL: ['warn'],
  LOG_FORMAT: ['json'],
  DECISION_LOG_SAMPLE: ['denied=1'],
  DECISION_LOG_FILE: ['/f', { DECISION_LOG_SAMPLE: 'ok=0.5' }, [{}, 'set DECISION_LOG_SAMPLE']],
  METRICS_MAX_SERIES: ['10'],
  TOP_BUCKETS: ['10'],
  HISTORY_RULES: ['10'],
  BUCKET_USED_RATIO_TOP: ['5', {}, [{ TOP_BUCKETS: '0' }, 'set TOP_BUCKETS to a value above 0']],
  USE_STATSD: ['true', ...OF_STATS],
  USE_DOG_STATSD: ['true', ...OF_STATS],
  USE_PROMETHEUS: ['true', ...OF_STATS],
  USE_DOG_STATSD_MOGRIFIERS: [
    'm',
    { USE_DOG_STATSD: '1', DOG_STATSD_MOGRIFIER_M_PATTERN: 'a', DOG_STATSD_MOGRIFIER_M_NAME: 'b' },
    [STATSD, 'USE_DOG_STATSD=true'],
    [{ DISABLE_STATS: 'true' }, 'DISABLE_STATS'],
  ],
  STATSD_HOST: [
    'h',
    STATSD,
    [{}, 'USE_STATSD=true'],
    [{ USE_STATSD: 'false' }, 'USE_STATSD=true'],
    [PROMETHEUS, 'USE_DOG_STATSD=true'],
  ],
  STATSD_PORT: [
    '1',
    { USE_DOG_STATSD: 'true' },
    [{}, 'USE_STATSD=true'],
    [{ DISABLE_STATS: 'true' }, 'DISABLE_STATS'],
  ],
  EXTRA_TAGS: ['a:b', PROMETHEUS, [{}, 'USE_PROMETHEUS=true'], [{ DISABLE_STATS: 'true' }, 'DISABLE_STATS']],
  STATS_FLUSH_INTERVAL: ['1s', STATSD, [{}, 'USE_STATSD=true'], [PROMETHEUS, 'USE_DOG_STATSD=true']],
  DISABLE_STATS: ['true'],
  PROMETHEUS_ADDR: [
    ':9090',
    PROMETHEUS,
    [{}, 'USE_PROMETHEUS=true'],
    [{ DISABLE_STATS: 'true' }, 'DISABLE_STATS'],
  ],
  PROMETHEUS_PATH: ['/m', ...OF_PROMETHEUS],
  PROMETHEUS_MAPPER_YAML: ['f', ...OF_PROMETHEUS],
  PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS: [
    'true',
    PROMETHEUS,
    [{ ...PROMETHEUS, PROMETHEUS_MAPPER_YAML: 'f' }, 'PROMETHEUS_MAPPER_YAML'],
    [{}, 'USE_PROMETHEUS=true'],
  ],
  TRACING_EXPORTER_PROTOCOL: ['grpc', ...OF_TRACING],
  TRACING_SERVICE_NAME: ['n', ...OF_TRACING],
  TRACING_SERVICE_NAMESPACE: ['s', ...OF_TRACING],
  TRACING_SERVICE_INSTANCE_ID: ['i', ...OF_TRACING],
  TRACING_SAMPLING_RATE: ['0.5', ...OF_TRACING],
  TRACING_ENABLED: ['false'],
};

/** Returns the notes of a start about one variable. */
function notesAbout(name: string, environment: Environment): readonly string[] {
  const read = readSettings(environment);
  if (!read.ok) throw new Error(read.errors.join('\n'));
  return read.notes.filter((note) => note.startsWith(`${name} `));
}

test('a share above 1 is reported to mean 1', () => {
  expect(notesAbout('TRACING_SAMPLING_RATE=50', { ...TRACING, TRACING_SAMPLING_RATE: '50' })).toEqual([
    'TRACING_SAMPLING_RATE=50 counts as 1 (all traces), as in envoyproxy/ratelimit; set a fraction from 0 to 1.',
  ]);
});

test('every setting has a test case', () => {
  expect(Object.keys(CASES).sort()).toEqual(SETTINGS.map(({ name }) => name).sort());
});

describe.each(Object.entries(CASES))('%s', (name, [value, effective = {}, ...idle]) => {
  test('is not reported if it has an effect', () => {
    expect(notesAbout(name, { ...effective, [name]: value })).toEqual([]);
  });

  for (const [surroundings, remedy] of idle) {
    test(`is told of beside ${JSON.stringify(surroundings)}`, () => {
      const [line, ...more] = notesAbout(name, { ...surroundings, [name]: value });
      expect(more).toEqual([]);
      expect(line).toMatch(new RegExp(`^${name} has no effect: .*[.]$`));
      expect(line).toContain(remedy);
      expect(notesAbout(name, surroundings)).toEqual([]);
    });
  }
});

test('a switch that is off is not reported', () => {
  const off = {
    REDIS_TLS: 'false',
    REDIS_PERSECOND_TLS: '0',
    USE_STATSD: 'false',
    RUNTIME_WATCH_ROOT: 'true',
    DISABLE_STATS: 'true',
  };
  expect(readSettings(off)).toMatchObject({ ok: true, notes: [] });
});

describe('a variable that is similar to a setting', () => {
  test.each([
    ['CONFIG_PTH', 'CONFIG_PATH'],
    ['CONFIGPATH', 'CONFIG_PATH'],
    ['config_path', 'CONFIG_PATH'],
    ['WEIR_CONFIG_PATH', 'CONFIG_PATH'],
    ['CONFIG_FILE', 'CONFIG_PATH'],
    ['WEIR_POLICY_DIR', 'CONFIG_PATH'],
    ['REDIS_URI', 'REDIS_URL'],
    ['REDIS_PASSWORD', 'REDIS_AUTH'],
    ['LOGLEVEL', 'LOG_LEVEL'],
    ['LIMIT_RESPONSE_HEADER_ENABLED', 'LIMIT_RESPONSE_HEADERS_ENABLED'],
    ['WORKER', 'WORKERS'],
    ['MEMCACHE_HOSTPORT', 'MEMCACHE_HOST_PORT'],
  ])('%s', (name, near) => {
    expect(readSettings({ [name]: 'secret' })).toMatchObject({
      ok: true,
      notes: [`${name} is not a weir setting, so it has no effect. Did you mean ${near}?`],
    });
    // An empty value counts as unset.
    expect(readSettings({ [name]: '' })).toMatchObject({ notes: [] });
  });

  test('is reported even if the similar setting is also set, if they differ in one place', () => {
    expect(readSettings({ GRPC_PORTT: '1', GRPC_PORT: '8081' })).toMatchObject({
      notes: ['GRPC_PORTT is not a weir setting, so it has no effect. Did you mean GRPC_PORT?'],
    });
    expect(readSettings({ CONFIG_PTHH: 'x', CONFIG_PATH: 'x' })).toMatchObject({ notes: [] });
    expect(readSettings({ REDIS_URI: 'x', REDIS_URL: 'redis:6379' })).toMatchObject({ notes: [] });
  });

  test.each([
    'PATH',
    'HOME',
    'HOSTNAME',
    'HOSTTYPE',
    'PWD',
    'SHELL',
    'PORTS',
    'NODE_OPTIONS',
    'LOGNAME',
    'REDIS_PORT',
    'REDIS_SERVICE_HOST',
    'REDIS_PORT_6379_TCP_ADDR',
    'KUBERNETES_SERVICE_HOST',
    'STATSD_SERVICE_PORT',
    'DOG_STATSD_MOGRIFIER_M_NAME',
    'HTTP_PROXY',
    'npm_config_port',
    'x'.repeat(100_000),
  ])('is not reported: %.40s', (name) => {
    expect(readSettings({ [name]: 'x' })).toMatchObject({ ok: true, notes: [] });
  });

  test('is quoted for a shell, for at most twenty variables', () => {
    const many = Object.fromEntries(
      Array.from({ length: 1000 }, (_, i) => [`config${'_'.repeat(i)}path`, 'x']),
    );
    const read = readSettings({ 'CONFIG PATH': 'x', ...many });
    expect(read.ok && read.notes.length).toBe(20);
    expect(read.ok && read.notes[0]).toMatch(/^'CONFIG PATH' is not a weir setting/);
  });
});
