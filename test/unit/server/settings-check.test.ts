import { expect, test } from '@jest/globals';
import { readSettings } from '../../../src/server/settings.js';
import { inertSettings } from '../../../src/server/settings-check.js';
import { SETTINGS } from '../../../src/server/settings-table.js';

/** Errors of settings that are good one by one. */
function errorsOf(environment: Record<string, string>): readonly string[] {
  const read = readSettings(environment);
  return read.ok ? [] : read.errors;
}

const REDIS = { REDIS_URL: 'redis:6379' };

test.each<[name: string, environment: Record<string, string>, line: RegExp]>([
  ['two places for policies', { CONFIG_PATH: '/a', RUNTIME_ROOT: '/b' }, /^CONFIG_PATH: RUNTIME_ROOT is set/],
  ['also by half', { CONFIG_PATH: '/a', RUNTIME_APPDIRECTORY: 'b' }, /^CONFIG_PATH: RUNTIME_APPDIRECTORY/],
  ['memcache', { BACKEND_TYPE: 'memcache' }, /^BACKEND_TYPE: weir has no memcache; use Redis/],
  ['Redis without address', { BACKEND_TYPE: 'redis' }, /^BACKEND_TYPE: redis needs REDIS_URL/],
  ['a socket type alone', { REDIS_SOCKET_TYPE: 'tcp' }, /^REDIS_SOCKET_TYPE: REDIS_URL is not set/],
  ['a cluster', { ...REDIS, REDIS_TYPE: 'CLUSTER' }, /^REDIS_TYPE: .* set REDIS_TYPE=SINGLE$/],
  ['sentinels', { ...REDIS, REDIS_TYPE: 'sentinel' }, /^REDIS_TYPE:/],
  [
    'a cluster for seconds',
    { ...REDIS, REDIS_PERSECOND: 'true', REDIS_PERSECOND_TYPE: 'CLUSTER' },
    /^REDIS_PERSECOND_TYPE: .* REDIS_PERSECOND_URL and set REDIS_PERSECOND_TYPE=SINGLE$/,
  ],
  ['seconds alone', { REDIS_PERSECOND: 'true' }, /^REDIS_PERSECOND: it needs REDIS_URL/],
  [
    'overflowing pools',
    { ...REDIS, REDIS_POOL_ON_EMPTY_BEHAVIOR: 'create' },
    /^REDIS_POOL_ON_EMPTY_BEHAVIOR/,
  ],
  [
    'the same for seconds',
    { ...REDIS, REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR: 'ERROR' },
    /^REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR/,
  ],
  [
    'two passwords',
    { ...REDIS, REDIS_AUTH: 'geheim', REDIS_AUTH_FILE: '/f' },
    /^REDIS_AUTH_FILE: REDIS_AUTH/,
  ],
  [
    'two passwords for seconds',
    { ...REDIS, REDIS_PERSECOND_AUTH: 'geheim', REDIS_PERSECOND_AUTH_FILE: '/f' },
    /^REDIS_PERSECOND_AUTH_FILE:/,
  ],
  ['tracing', { TRACING_ENABLED: 'true' }, /^TRACING_ENABLED: weir has no tracing yet; unset it/],
])('%s: refused, with the variable, the reason and the remedy', (_name, environment, line) => {
  const errors = errorsOf(environment);
  expect(errors).toHaveLength(1);
  expect(errors[0]).toMatch(line);
  expect(errors[0]).not.toContain('geheim');
});

test.each<[Record<string, string>]>([
  [{ CONFIG_PATH: '/a' }],
  [{ RUNTIME_ROOT: '/a', RUNTIME_SUBDIRECTORY: 'b', RUNTIME_APPDIRECTORY: 'c' }],
  [{ ...REDIS, BACKEND_TYPE: 'redis', REDIS_SOCKET_TYPE: 'tcp', REDIS_TYPE: 'single', REDIS_PERSECOND: '1' }],
  [{ ...REDIS, REDIS_POOL_ON_EMPTY_BEHAVIOR: 'WAIT', REDIS_PERSECOND_TYPE: 'CLUSTER' }],
  [{ CONFIG_PATH: '/a', RUNTIME_ROOT: '' }],
  [{ USE_STATSD: 'true', USE_PROMETHEUS: 'true', USE_DOG_STATSD: 'true' }],
])('%j is served', (environment) => {
  expect(errorsOf(environment)).toEqual([]);
});

test('a variable that changes nothing is told of, with the reason, if it is set', () => {
  const read = readSettings({ ...REDIS, REDIS_POOL_SIZE: '20', MEMCACHE_SRV: 'x', LOG_LEVEL: 'warn' });
  expect(inertSettings(read.ok ? read.given : new Set())).toEqual([
    'REDIS_POOL_SIZE changes nothing: weir sends all calls of a moment over one connection; there is no pool.',
    'MEMCACHE_SRV changes nothing: it is about BACKEND_TYPE=memcache, which weir does not have.',
  ]);
  expect(inertSettings(new Set())).toEqual([]);
});

test('names, flags and keys are unique, and every default can be read', () => {
  for (const of of [SETTINGS.map(({ name }) => name), SETTINGS.map(({ flag }) => flag)]) {
    expect(new Set(of).size).toBe(SETTINGS.length);
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
  expect(errorsOf({ NEAR_LIMIT_RATIO: '80%' })[0]).toContain('is not a number from 0 to');
  expect(errorsOf({ CONFIG_TYPE: 'XDS' })).toEqual(['CONFIG_TYPE: "XDS" is not one of FILE, GRPC_XDS_SOTW']);
  expect(errorsOf({ XDS_CLIENT_BACKOFF_RANDOM_FACTOR: '1.5' })[0]).toContain('a number from 0 to 1');
});
