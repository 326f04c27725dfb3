import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { findInVariables, IMAGE_VARIABLES } from '../../../../src/cli/migrate/variable-findings.js';
import { INERT_ROWS, SETTINGS } from '../../../../src/server/settings/settings-table.js';
import { environmentOf, parseDockerfile } from '../../../support/image/dockerfile.js';
import { repositoryRoot } from '../../../support/process/tools.js';

/** Variables of an installation that needs no decision. */
const COMPLETE = {
  RUNTIME_ROOT: '/data',
  RUNTIME_SUBDIRECTORY: 'ratelimit',
  REDIS_SOCKET_TYPE: 'tcp',
  REDIS_URL: 'redis:6379',
  REDIS_TIMEOUT: '1s',
  USE_STATSD: 'false',
  LOG_LEVEL: 'WARN',
  LOG_FORMAT: 'json',
  DEBUG_HOST: '127.0.0.1',
};
const decide = (variables: Record<string, string>) =>
  findInVariables({ ...COMPLETE, ...variables }).decide.map(({ about, text }) => `${about}: ${text}`);

test('contains the variables of the image', () => {
  // Node.js and its C library read these two, and weir does not.
  const {
    NODE_ENV: _,
    MALLOC_ARENA_MAX: __,
    ...ofImage
  } = environmentOf(
    parseDockerfile(readFileSync(join(repositoryRoot, 'deploy/Dockerfile'), 'utf8')).at(-1) ?? {
      base: '',
      name: '',
      instructions: [],
    },
  );
  expect(IMAGE_VARIABLES).toEqual(ofImage);
  for (const [name, value] of Object.entries(IMAGE_VARIABLES)) {
    expect(SETTINGS.find((setting) => setting.name === name)?.reference?.default).toBe(value);
  }
});

test('an installation that sets all variables with different defaults needs no decision', () => {
  expect(findInVariables(COMPLETE)).toMatchObject({ decide: [], advice: [], unused: [], keep: {} });
});

test('without variables, lists different defaults and how to keep them', () => {
  const { decide: undecided, keep } = findInVariables({});
  expect(keep).toEqual({
    RUNTIME_ROOT: '/srv/runtime_data/current',
    DEBUG_HOST: '0.0.0.0',
    LOG_LEVEL: 'WARN',
    LOG_FORMAT: 'text',
    USE_STATSD: 'true',
  });
  expect(undecided.map(({ about }) => about).sort()).toEqual([...Object.keys(keep), 'REDIS_URL'].sort());
  // The reference's default of REDIS_URL is the socket of twemproxy, which weir does not support.
  expect(undecided.find(({ about }) => about === 'REDIS_URL')?.text).toMatch(
    /Its default in envoyproxy\/ratelimit is \/var\/run\/nutcracker\/ratelimit\.sock\. This is the socket of twemproxy/,
  );
  expect(findInVariables(keep).decide.map(({ about }) => about)).toEqual(['REDIS_URL']);
});

test('says what weir does with an old default that has another effect in weir', () => {
  const { DEBUG_HOST: _host, REDIS_TIMEOUT: _timeout, ...others } = COMPLETE;
  const texts = Object.fromEntries(findInVariables(others).decide.map(({ about, text }) => [about, text]));
  expect(texts['DEBUG_HOST']).toMatch(
    /Set DEBUG_HOST=0\.0\.0\.0 .* with status 403 until you set ADMIN_TOKENS_FILE\.$/,
  );
  expect(texts['REDIS_TIMEOUT']).toMatch(
    /Set REDIS_TIMEOUT=10s to keep the old default\. A request then waits/,
  );
});

test('REDIS_PERSECOND_TIMEOUT needs a decision only if REDIS_TIMEOUT differs from its old default', () => {
  const { REDIS_TIMEOUT: _, ...others } = COMPLETE;
  const perSecond = { ...others, REDIS_PERSECOND: 'true', REDIS_PERSECOND_URL: 'redis:1' };
  expect(findInVariables(perSecond).keep).toEqual({ REDIS_TIMEOUT: '10s' });
  expect(findInVariables({ ...perSecond, REDIS_TIMEOUT: '10s' }).keep).toEqual({});
  expect(findInVariables({ ...perSecond, REDIS_TIMEOUT: '1s' }).decide).toEqual([
    {
      about: 'REDIS_PERSECOND_TIMEOUT',
      text: expect.stringMatching(/is 10s\. If unset, weir uses REDIS_TIMEOUT\. Set/),
    },
  ]);
});

test('lists unneeded and unused variables', () => {
  const { unused } = findInVariables({
    ...COMPLETE,
    REDIS_POOL_SIZE: '5',
    REDIS_PERSECOND_POOL_SIZE: '5',
    GODEBUG: 'x',
    GRPC_SERVER_TLS_CA_CERT: '/certs/ca.crt',
    NODE_OPTIONS: '--max-old-space-size=160',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'x',
    DOG_STATSD_MOGRIFIER_A_PATTERN: 'x',
  });
  expect(unused).toEqual([
    {
      about: 'REDIS_POOL_SIZE, REDIS_PERSECOND_POOL_SIZE',
      text: expect.stringContaining('instead of a pool'),
    },
    { about: 'GODEBUG, GRPC_SERVER_TLS_CA_CERT', text: 'weir does not use this variable.' },
    {
      about: 'OTEL_EXPORTER_OTLP_ENDPOINT',
      text: expect.stringContaining('only if TRACING_ENABLED=true'),
    },
  ]);
});

test('variables of OpenTelemetry have the same meaning if tracing is on', () => {
  const tracing = { TRACING_ENABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
  expect(findInVariables({ ...COMPLETE, ...tracing })).toMatchObject({ decide: [], unused: [] });
});

describe('needs a decision', () => {
  test.each([
    [{ REDIS_TYPE: 'CLUSTERED' }, /^REDIS_TYPE: "CLUSTERED" is not/],
    [
      { USE_PROMETHEUS: 'true', USE_STATSD: 'true' },
      /^USE_STATSD, USE_PROMETHEUS: several metrics targets are enabled\. envoyproxy\/ratelimit accepts only one/,
    ],
    [{ CACHE_KEY_PREFIX: 'a_' }, /^CACHE_KEY_PREFIX: every Redis key begins with this prefix/],
    [
      { REDIS_URL: '/var/run/nutcracker/ratelimit.sock', REDIS_SOCKET_TYPE: 'unix' },
      /^REDIS_URL: the value looks like the address of twemproxy .* does not support such a proxy/,
    ],
    [{ REDIS_AUTH: 'limits:s3cret' }, /^REDIS_AUTH: the value contains a Redis/],
  ])('%j', (variables, expected) => {
    const lines = decide(variables);
    expect(lines).toEqual([expect.stringMatching(expected)]);
    expect(lines.join()).not.toContain('s3cret');
  });

  test('all problems together', () => {
    const lines = decide({
      BACKEND_TYPE: 'memcache',
      GRPC_PORT: 'x',
      PORT: 'y',
      LOG_LEVEL: '3',
    });
    expect(lines.map((line) => line.slice(0, line.indexOf(':')))).toEqual([
      'GRPC_PORT',
      'PORT',
      'LOG_LEVEL',
      'BACKEND_TYPE',
    ]);
  });

  test.each([
    { REDIS_TLS: 'true', REDIS_TLS_SKIP_HOSTNAME_VERIFICATION: 'true' },
    { LIMIT_RESPONSE_HEADERS_ENABLED: 'true' },
    { REDIS_AUTH: 's3cret' },
    { CONFIG_TYPE: 'GRPC_XDS_SOTW' },
  ])('not: %j', (variables) => expect(decide(variables as Record<string, string>)).toEqual([]));

  test('not a variable with an unknown value, which is reported for its line', () => {
    const { LOG_LEVEL: _, ...others } = COMPLETE;
    expect(findInVariables(others, new Set(['LOG_LEVEL'])).decide).toEqual([]);
  });
});

test('incomplete mogrifiers are one decision', () => {
  const lines = decide({ USE_DOG_STATSD: 'true', USE_DOG_STATSD_MOGRIFIERS: 'TAG' });
  expect(lines).toEqual([
    expect.stringMatching(/^DOG_STATSD_MOGRIFIER_TAG_PATTERN: this variable is not set, /),
    expect.stringMatching(/^DOG_STATSD_MOGRIFIER_TAG_NAME: this variable is not set, /),
  ]);
  expect(
    decide({
      USE_DOG_STATSD: 'true',
      USE_DOG_STATSD_MOGRIFIERS: 'TAG',
      DOG_STATSD_MOGRIFIER_TAG_PATTERN: '(',
      DOG_STATSD_MOGRIFIER_TAG_NAME: 'n',
    }),
  ).toEqual([
    expect.stringMatching(/^DOG_STATSD_MOGRIFIER_TAG_PATTERN: "\(" is not a valid regular expression/),
  ]);
});

test('an invalid address is reported without its value', () => {
  const variables = { ...COMPLETE, REDIS_URL: 'master,geheim:1', REDIS_AUTH: 'geheim', REDIS_TLS: 'true' };
  const found = findInVariables(variables);
  expect(found.decide).toEqual([
    {
      about: 'REDIS_URL, REDIS_SOCKET_TYPE, REDIS_TLS',
      text: expect.stringContaining('the value contains several addresses'),
    },
  ]);
  expect(JSON.stringify([found.decide, found.advice, found.unused])).not.toContain('geheim');
});

test.each([
  ['true', ['STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT']],
  ['false', []],
])('STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=%s differs only if it is on', (value, abouts) => {
  const { advice } = findInVariables({ ...COMPLETE, STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: value });
  expect(advice.map(({ about }) => about)).toEqual(abouts);
});

test('statsd is not turned on if envoyproxy/ratelimit would not start with it', () => {
  const { USE_STATSD: _, ...others } = COMPLETE;
  expect(findInVariables({ ...others, USE_PROMETHEUS: 'true' }).keep).toEqual({});
  expect(findInVariables(others).keep).toEqual({ USE_STATSD: 'true' });
});

test('every sentence contains the name of its program', () => {
  const {
    decide: undecided,
    advice,
    unused,
  } = findInVariables({
    ...Object.fromEntries(INERT_ROWS.map(({ name }) => [name, '1'])),
    REDIS_POOL_ON_EMPTY_BEHAVIOR: 'WAIT',
    GODEBUG: 'x',
    CACHE_KEY_PREFIX: 'a',
  });
  expect(undecided.length).toBeGreaterThan(8);
  for (const { text } of [...undecided, ...advice, ...unused])
    expect(text).not.toMatch(/\b(?:there|here|sinks?)\b(?! is)/);
});

test("the CA variables of Go's runtime need a decision", () => {
  const { decide: undecided } = findInVariables({ ...COMPLETE, SSL_CERT_FILE: '/ca.pem' });
  expect(undecided).toEqual([
    { about: 'SSL_CERT_FILE', text: expect.stringContaining('Set REDIS_TLS_CACERT') },
  ]);
});
