import { expect, test } from '@jest/globals';
import { readSettings } from '../../../../src/server/settings/read-settings.js';
import { VARIABLES } from '../../../../src/server/settings/settings-table.js';
import { cases } from '../../../support/assert/cases.js';

/** Returns the errors of settings that are valid individually. */
function errorsOf(environment: Record<string, string>): readonly string[] {
  const read = readSettings(environment);
  return read.ok ? [] : read.errors;
}

const REDIS = { REDIS_URL: 'redis:6379' };

/** Variables in the form `NAME=value | OTHER=value`. */
const environmentOf = (text: string): Record<string, string> =>
  Object.fromEntries(text.split(' | ').map((one) => one.split(/=(.*)/, 2) as [string, string]));

// The beginning of each error is a regular expression.
test.each(cases`
  Redis without address => BACKEND_TYPE=redis => BACKEND_TYPE: the value redis requires REDIS_URL
  a socket type alone => REDIS_SOCKET_TYPE=tcp => REDIS_SOCKET_TYPE: REDIS_URL is not set
  a file of a password alone => REDIS_AUTH_FILE=/f => REDIS_AUTH_FILE: REDIS_URL is not set
  TLS alone => REDIS_TLS=true => REDIS_TLS: REDIS_URL is not set
  no time for Redis
    REDIS_URL=redis:6379 | REDIS_TIMEOUT=0
    REDIS_TIMEOUT: "0" is not a duration above 0 such as 150ms
  no time for the second
    REDIS_URL=redis:6379 | REDIS_PERSECOND_TIMEOUT=0s
    REDIS_PERSECOND_TIMEOUT: "0s" is not a duration above 0
  statistics all the time => STATS_FLUSH_INTERVAL=0 => STATS_FLUSH_INTERVAL: "0" is not a duration above 0
  no address => REDIS_URL=redis:port | REDIS_AUTH=geheim => REDIS_URL: Redis address: the address is invalid;
  a password that a URL cannot hold as it is
    REDIS_URL=redis:6379 | REDIS_PERSECOND=true | REDIS_PERSECOND_URL=redis://:geheim#@h:1
    REDIS_PERSECOND_URL: .*percent-encode this character .* set REDIS_PERSECOND_AUTH
  a second one
    REDIS_URL=redis:6379 | REDIS_PERSECOND=true | REDIS_PERSECOND_URL=a,b | REDIS_PERSECOND_SOCKET_TYPE=tcp
    REDIS_PERSECOND_URL, REDIS_PERSECOND_SOCKET_TYPE: Redis address: the value contains several addresses
  a hash tag => REDIS_URL=redis:6379 | CACHE_KEY_PREFIX={a} => CACHE_KEY_PREFIX: the prefix contains "{"
  a short lease => REDIS_URL=redis:6379 | LEASE_FOR=4ms => LEASE_FOR: leases last 5ms to 10s
  a long lease => REDIS_URL=redis:6379 | LEASE_FOR=11s => LEASE_FOR: leases last 5ms to 10s
  a lease of one token
    REDIS_URL=redis:6379 | LEASE_FOR=50ms | LEASE_MAX=1
    LEASE_MAX: a lease has at least 2 tokens
  two management servers with three nodes
    CONFIG_TYPE=GRPC_XDS_SOTW | CONFIG_GRPC_XDS_SERVER_URL=a:1, b:2 | CONFIG_GRPC_XDS_NODE_ID=a,b,c
    CONFIG_GRPC_XDS_NODE_ID: there are 3 values, but CONFIG_GRPC_XDS_SERVER_URL contains 2; write one value for all
  an empty address of a management server
    CONFIG_TYPE=GRPC_XDS_SOTW | CONFIG_GRPC_XDS_SERVER_URL=a:1,
    CONFIG_GRPC_XDS_SERVER_URL: an address is empty
  a management server twice
    CONFIG_TYPE=GRPC_XDS_SOTW | CONFIG_GRPC_XDS_SERVER_URL=a:1,b:1,a:1
    CONFIG_GRPC_XDS_SERVER_URL: the address a:1 occurs twice
  a certificate without a key
    DEBUG_SERVER_TLS_CERT=/c
    DEBUG_SERVER_TLS_CERT: .*; set both DEBUG_SERVER_TLS_CERT and DEBUG_SERVER_TLS_KEY, or neither$
  a key without a certificate
    DEBUG_SERVER_TLS_KEY=/k
    DEBUG_SERVER_TLS_KEY: .* needs both a certificate and its key
  no header name => LIMIT_RESET_HEADER=Reset: at => LIMIT_RESET_HEADER: "Reset: at" is not a valid header name
  what Envoy does not add
    ENVOY_ADDS_HEADERS=retry-after,ratelimit
    ENVOY_ADDS_HEADERS: .* does not add "ratelimit"; choose from x-ratelimit, retry-after$
  a cluster with a URL
    REDIS_URL=redis://a:geheim@b:6379 | REDIS_TYPE=cluster
    REDIS_URL, REDIS_TYPE: .* set REDIS_AUTH to the login; for TLS, set REDIS_TLS=true$
  sentinels without the name of their master
    REDIS_URL=a:26379,b:26379 | REDIS_TYPE=sentinel
    REDIS_URL, REDIS_TYPE: .* must begin with the name of the master; write <name of the master>,
  sentinels without a type
    REDIS_URL=mymaster,a:26379
    REDIS_URL: .*set the type to SENTINEL, and begin the value with the name of the master
  a cluster for seconds at a socket
    REDIS_URL=redis:6379 | REDIS_PERSECOND=true | REDIS_PERSECOND_TYPE=CLUSTER
    REDIS_PERSECOND_URL, REDIS_PERSECOND_TYPE: .* node number 1, is not a valid address; write host:port
  seconds alone => REDIS_PERSECOND=true => REDIS_PERSECOND: REDIS_URL is also required
  overflowing pools
    REDIS_URL=redis:6379 | REDIS_POOL_ON_EMPTY_BEHAVIOR=create
    REDIS_POOL_ON_EMPTY_BEHAVIOR
  the same for seconds
    REDIS_URL=redis:6379 | REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR=ERROR
    REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR
  tokens of AWS for seconds
    REDIS_URL=redis:6379 | REDIS_PERSECOND_AWS_IAM_AUTH=1
    REDIS_PERSECOND_AWS_IAM_AUTH: .* set REDIS_PERSECOND_AUTH_FILE to a file that contains
  two passwords for seconds
    REDIS_URL=redis:6379 | REDIS_PERSECOND_AUTH=geheim | REDIS_PERSECOND_AUTH_FILE=/f
    REDIS_PERSECOND_AUTH_FILE:
`)('%s: refused, with the variable, the reason and the remedy', (_name, environment, line) => {
  const errors = errorsOf(environmentOf(environment));
  expect(errors).toHaveLength(1);
  expect(errors[0]).toMatch(new RegExp(`^${line}`));
  expect(errors[0]).not.toContain('geheim');
});

test.each<[Record<string, string>]>([
  [{ CONFIG_PATH: '/a' }],
  [{ RUNTIME_ROOT: '/a', RUNTIME_SUBDIRECTORY: 'b', RUNTIME_APPDIRECTORY: 'c' }],
  [{ ...REDIS, BACKEND_TYPE: 'redis', REDIS_SOCKET_TYPE: 'tcp', REDIS_TYPE: 'single', REDIS_PERSECOND: '1' }],
  [{ ...REDIS, REDIS_POOL_ON_EMPTY_BEHAVIOR: 'WAIT', REDIS_PERSECOND_TYPE: 'CLUSTER' }],
  [{ CONFIG_PATH: '/a', RUNTIME_ROOT: '' }],
  [{ ...REDIS, REDIS_AWS_IAM_AUTH: 'false', REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR: 'true' }],
  [{ USE_STATSD: 'true', USE_PROMETHEUS: 'true', USE_DOG_STATSD: 'true' }],
])('%j is accepted', (environment) => {
  expect(errorsOf(environment)).toEqual([]);
});

/** Returns the notes of valid settings. */
function notesOf(environment: Record<string, string>): readonly string[] {
  const read = readSettings(environment);
  return read.ok ? read.notes : read.errors;
}

test('a variable without effect is reported with the reason', () => {
  expect(notesOf({ ...REDIS, REDIS_POOL_SIZE: '20', MEMCACHE_SRV: 'x', LOG_LEVEL: 'warn' })).toEqual([
    'REDIS_POOL_SIZE has no effect: weir uses one connection instead of a pool.',
    'MEMCACHE_SRV has no effect: weir does not support BACKEND_TYPE=memcache.',
  ]);
  expect(notesOf({})).toEqual([]);
});

test('a removed setting is accepted with any value, and reported', () => {
  const notes = ['RLS_CODEC: weir always uses its own codec; unset this variable'];
  for (const value of ['fast', 'reference', 'slow'])
    expect(readSettings({ RLS_CODEC: value })).toMatchObject({ ok: true, notes });
});

test.each<[flags: Record<string, string>, line: RegExp]>([
  [{ REDIS_POOL_SIZE: 'many' }, /^--redis-pool-size: "many" is not a whole number/],
  [{ BACKEND_TYPE: 'memcache' }, /^--backend-type: weir does not support memcache/],
  [
    { REDIS_URL: 'redis:port', REDIS_TLS: '1' },
    /^--redis-url, --redis-tls: Redis address: the address is invalid/,
  ],
  [
    { REDIS_POOL_ON_EMPTY_BEHAVIOR: 'ERROR' },
    /^--redis-pool-on-empty-behavior: with ERROR, envoyproxy\/ratelimit does not start either/,
  ],
])(
  'a flag with a bad value is named as it was written, and the command line is to blame: %j',
  (flags, line) => {
    expect(readSettings({}, flags)).toEqual({
      ok: false,
      byFlag: true,
      errors: [expect.stringMatching(line)],
    });
    // The same value in the environment is not an error of a flag.
    expect(readSettings(flags)).toMatchObject({ ok: false, byFlag: false });
    expect(readSettings({ ...flags, LOG_LEVEL: 'loud' }, { PORT: '1' })).toMatchObject({ byFlag: false });
  },
);

test('a flag is reported like its variable', () => {
  const read = readSettings(REDIS, { REDIS_PERSECOND_PIPELINE_LIMIT: '8' });
  expect(read).toMatchObject({
    ok: true,
    notes: [
      'REDIS_PERSECOND_PIPELINE_LIMIT has no effect: weir always combines all decisions in the same ' +
        'event-loop turn into one call.',
    ],
  });
});

test.each([
  ['REDIS_POOL_SIZE', 'many', 'a whole number of at least 0'],
  ['EXPIRATION_JITTER_MAX_SECONDS', '-1', 'a whole number of at least 0'],
  ['REDIS_PERSECOND_PIPELINE_WINDOW', '5', 'a duration such as 150ms, 2s or 1h30m; write 5s'],
  ['REDIS_POOL_ON_EMPTY_BEHAVIOR', 'PANIC', 'one of WAIT, CREATE, ERROR'],
])(
  '%s=%s, which the reference cannot read, ends the start although it would change nothing',
  (name, text, expected) => {
    expect(errorsOf({ ...REDIS, [name]: text })).toEqual([`${name}: "${text}" is not ${expected}`]);
  },
);

test("a port that holds Kubernetes' link to a Service of that name counts as unset, and is told of", () => {
  const read = readSettings({
    DEBUG_PORT: 'tcp://10.96.0.7:80',
    GRPC_PORT: 'tcp://[fd00::7]:80',
    STATSD_PORT: 'udp://10.96.0.8:8125',
    PORT: '80',
  });
  expect(read).toMatchObject({
    ok: true,
    settings: { debugPort: 6070, grpcPort: 8081, statsdPort: 8125, port: 80 },
    given: new Set(['PORT']),
    notes: [
      expect.stringMatching(/^weir ignores GRPC_PORT and uses the default 8081, .* for the Service grpc; /),
      expect.stringMatching(/^weir ignores DEBUG_PORT and .* enableServiceLinks: false$/),
      expect.stringContaining('the Service statsd;'),
    ],
  });
  // Kubernetes does not set this value.
  expect(errorsOf({ DEBUG_PORT: '10.96.0.7:80' })).toHaveLength(1);
});

test(
  'HOST and GRPC_HOST set to nothing mean all addresses, as in the reference; other variables count as ' +
    'unset then',
  () => {
    expect(readSettings({ HOST: '', GRPC_HOST: '', DEBUG_HOST: '', LOG_LEVEL: '', PORT: '' })).toMatchObject({
      ok: true,
      settings: { host: '', grpcHost: '', debugHost: '127.0.0.1', logLevel: 'info', port: 8080 },
      given: new Set(['HOST', 'GRPC_HOST']),
    });
  },
);

test.each([
  ['0x1F90', 8080],
  ['0o17', 15],
  ['017', 15],
  ['0b101', 5],
  ['1_000', 1000],
  ['0x_ff', 255],
  ['+7', 7],
  ['-0', 0],
])('a whole number is parsed as in Go: %s', (text, value) => {
  expect(readSettings({ PORT: text })).toMatchObject({ ok: true, settings: { port: value } });
});

test.each(['08080', '0x', '1__0', '_1', '1_', '1e3', '8080.0', ' 8080', '0o8'])(
  'what Go takes for no whole number is none: %j',
  (text) => expect(errorsOf({ PORT: text })).toHaveLength(1),
);

test(
  'pairs: tags and headers are parted by ":", node metadata by "=", as in the reference; the other where ' +
    'it is missing',
  () => {
    const read = readSettings({
      EXTRA_TAGS: 'a=b:c,d=e',
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'authorization:Basic YTpi==',
      CONFIG_GRPC_XDS_NODE_METADATA: 'k:8s=v,url=http://x?y=z,old:style',
    });
    expect(read.ok && read.settings).toMatchObject({
      extraTags: new Map([
        ['a=b', 'c'],
        ['d', 'e'],
      ]),
      xdsHeaders: ['authorization:Basic YTpi=='],
      xdsNodeMetadata: new Map([
        ['k:8s', 'v'],
        ['url', 'http://x?y=z'],
        ['old', 'style'],
      ]),
    });
    for (const text of [':c', 'a:b,', ' :c']) expect(errorsOf({ EXTRA_TAGS: text })).toHaveLength(1);
  },
);

test('no message repeats the headers for the management server, which may contain a token', () => {
  const env = { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: 'one:1' };
  const headers = 'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS';
  expect(errorsOf({ ...env, [headers]: 'authorization Bearer geheim' })).toEqual([
    `${headers}: the value is not a list such as name:value,name:value`,
  ]);
  const two = { ...env, CONFIG_GRPC_XDS_SERVER_URL: 'one:1,two:22' };
  expect(errorsOf({ ...two, [headers]: 'two:22/authorization Bearer geheim' })).toEqual([
    `${headers}: the value is not a list such as host:port/name:value`,
  ]);
  for (const text of ['authorization:Bearer geheim', 'one:1/a:b,two:2/authorization:geheim', 'one:1/a:b,']) {
    expect(errorsOf({ ...two, [headers]: text })).toEqual([
      `${headers}: CONFIG_GRPC_XDS_SERVER_URL contains 2 management servers, and an item does not begin with the ` +
        'address of one of them; write each item as host:port/name:value, so that no other server gets the header',
    ]);
  }
});

test.each<[environment: Record<string, string>, name: string | undefined, other: string]>([
  [{ GRPC_PORT: '8080' }, 'PORT', 'GRPC_PORT'],
  [{ DEBUG_PORT: '8080', DEBUG_HOST: '' }, 'DEBUG_PORT', 'PORT'],
  [{ GRPC_PORT: '8080', GRPC_HOST: '0.0.0.0' }, 'PORT', 'GRPC_PORT'],
  [{ GRPC_PORT: '8080', GRPC_HOST: '::1', HOST: '::' }, 'PORT', 'GRPC_PORT'],
  [{ GRPC_PORT: '8080', GRPC_HOST: '127.0.0.2' }, undefined, ''],
  [{ GRPC_PORT: '8080', GRPC_HOST: '0.0.0.0', HOST: '::1' }, undefined, ''],
  [{ GRPC_PORT: '8080', GRPC_UDS: '/run/weir.sock' }, undefined, ''],
  [{ GRPC_PORT: '0', PORT: '0', DEBUG_PORT: '0' }, undefined, ''],
  [{ USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: ':8080' }, 'PROMETHEUS_ADDR', 'PORT'],
  [{ USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: '127.0.0.2:8080' }, undefined, ''],
  [{ PROMETHEUS_ADDR: ':8080' }, undefined, ''],
])('two listeners with one port: %j', (environment, name, other) => {
  const error = `${name}: ${other} also uses port 8080; choose a different port for one of the two`;
  expect(errorsOf(environment)).toEqual(name === undefined ? [] : [error]);
});

test.each([
  ['USE_STATSD', 'Off', 'true or false; write false'],
  ['USE_STATSD', 'maybe', 'true or false'],
  ['MEMORY_MAX_BYTES', '1 GiB', 'a whole number of at least 1; write 1073741824'],
  ['LOCAL_CACHE_SIZE_IN_BYTES', '64k', 'a whole number of at least 0; write 65536'],
  ['MEMORY_MAX_BYTES', 'much', 'a whole number of at least 1'],
])('%s=%s causes an error with a valid example', (name, value, expected) => {
  expect(errorsOf({ [name]: value })).toEqual([`${name}: ${JSON.stringify(value)} is not ${expected}`]);
});

test('names, flags and keys are unique, and every default can be read', () => {
  for (const of of [VARIABLES.map(({ name }) => name), VARIABLES.map(({ flag }) => flag)]) {
    expect(new Set(of).size).toBe(VARIABLES.length);
  }
  expect(readSettings({})).toMatchObject({ ok: true, given: new Set() });
});

test('the types of new settings', () => {
  const read = readSettings({
    ...REDIS,
    EXTRA_TAGS: 'zone:eu, team=edge,url:http://x',
    USE_DOG_STATSD_MOGRIFIERS: 'TAG, OTHER',
    LOCAL_CACHE_SIZE_IN_BYTES: '0',
    NEAR_LIMIT_RATIO: '7.5e-1',
    REDIS_STARTUP_MAX_INTERVAL: '90s',
  });
  expect(read.ok && read.settings).toMatchObject({
    extraTags: new Map([
      ['zone', 'eu'],
      ['team', 'edge'],
      ['url', 'http://x'],
    ]),
    dogStatsdMogrifiers: ['TAG', 'OTHER'],
    localCacheBytes: 0,
    xdsMaxMessageBytes: undefined,
    nearLimitRatio: 0.75,
    redisStartupMax: 90_000_000,
    redisStartupInitial: undefined,
  });
  expect(errorsOf({ EXTRA_TAGS: 'zone' })).toEqual([
    'EXTRA_TAGS: "zone" is not a list such as name:value,name:value',
  ]);
  const ratio = (text: string): readonly string[] => errorsOf({ NEAR_LIMIT_RATIO: text });
  expect(ratio('80%')).toEqual(['NEAR_LIMIT_RATIO: "80%" is not a number from 0 to 1; write 0.8']);
  expect(ratio('1.5')).toEqual(['NEAR_LIMIT_RATIO: "1.5" is not a number from 0 to 1']);
  expect(ratio('101')).toEqual(['NEAR_LIMIT_RATIO: "101" is not a number from 0 to 1']);
  expect(ratio('1')).toEqual([]);
  expect(errorsOf({ CONFIG_TYPE: 'XDS' })).toEqual(['CONFIG_TYPE: "XDS" is not one of FILE, GRPC_XDS_SOTW']);
  expect(errorsOf({ XDS_CLIENT_BACKOFF_RANDOM_FACTOR: '1.5' })[0]).toContain('a number from 0 to 1');
});
