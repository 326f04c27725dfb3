/* Tests the command `weir migrate` with whole installations. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { CommandHost } from '../support/weir/commands.js';

const folder = mkdtempSync(join(tmpdir(), 'weir-migrate-'));
const host = new CommandHost();
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});
const migrate = (...args: string[]) => host.run({ args: ['migrate', ...args], folder });

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

const ENV = `
USE_STATSD=false
LOG_LEVEL=debug
LOG_FORMAT=json
DEBUG_HOST=127.0.0.1
REDIS_SOCKET_TYPE=tcp
REDIS_URL=redis:6379
REDIS_TIMEOUT=10s
RUNTIME_ROOT=/data
RUNTIME_SUBDIRECTORY=ratelimit
RUNTIME_WATCH_ROOT=false
`;
const POLICY = `
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 5 }
`;

test('exits with 0 for an installation that needs no decision', async () => {
  write({ 'good/ratelimit/config/shop': POLICY, 'good.env': ENV });
  const { code, stdout, stderr } = await migrate('good', '--env', 'good.env');
  expect(stderr).toBe('');
  expect(stdout).toBe(
    '1 rule of 1 domain (shop) in 1 policy file: good/ratelimit/config/shop\n\nNo decisions are needed.\n\n' +
      'docs/migrate.md in the weir repository describes the switch, and lists all other differences.\n',
  );
  expect(code).toBe(0);
});

test.each(['layout', 'layout/ratelimit', 'layout/ratelimit/config'])(
  'finds the files below or in %s',
  async (directory) => {
    write({ 'layout/ratelimit/config/shop.yaml': POLICY, 'layout.env': ENV });
    const { code, stdout } = await migrate(directory, '--env', 'layout.env', '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      files: ['layout/ratelimit/config/shop.yaml'],
      decide: [],
    });
    expect(code).toBe(0);
  },
);

test('exits with 1 if invalid files and unset variables need a decision; long windows get a note', async () => {
  write({
    'bad/config/a.yaml':
      'domain: a\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1 } }]\n',
    'bad/config/b.yaml': 'domain: b\ndescriptors: [{ value: v }]\n',
  });
  const { code, stdout } = await migrate('bad', '--json');
  expect(code).toBe(1);
  const { decide, advice, keep } = JSON.parse(stdout);
  expect(decide).toEqual(
    expect.arrayContaining([
      { about: expect.stringMatching(/^bad\/config\/b\.yaml:2:\d+$/), text: expect.stringContaining('key') },
      {
        about: 'bad/config/b.yaml',
        text: expect.stringContaining('weir does not load this policy'),
      },
      {
        about: 'LOG_LEVEL',
        text: expect.stringContaining('Set LOG_LEVEL=WARN to keep the current behavior'),
      },
    ]),
  );
  expect(advice).toContainEqual({
    about: 'counters',
    text: expect.stringContaining('than a minute: k in domain a.'),
  });
  expect(keep).toMatchObject({ LOG_LEVEL: 'WARN', DEBUG_HOST: '0.0.0.0' });
});

test('names keys that the reference confuses', async () => {
  write({
    'twins/config/twins.yaml': `
domain: twins
descriptors:
  - key: a_b
    rate_limit: { unit: second, requests_per_unit: 1 }
  - key: a
    rate_limit: { unit: second, requests_per_unit: 2 }
`,
    'twins.env': ENV,
  });
  const { code, stdout } = await migrate('twins', '--env', 'twins.env', '--json');
  expect(JSON.parse(stdout).advice).toEqual([
    { about: 'twins: a_b', text: expect.stringContaining('with the key a and the value b') },
  ]);
  expect(code).toBe(0);
});

test('merges files of one domain if the installation merges them', async () => {
  write({
    'merge/config/a': POLICY,
    'merge/config/b': POLICY.replace('user', 'guest'),
    'no-merge.env': ENV,
    'merge.env': `${ENV}MERGE_DOMAIN_CONFIG=true\n`,
  });
  expect(await migrate('merge', '--env', 'merge.env')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('2 rules of 1 domain (shop) in 2 policy files'),
  });
  expect(await migrate('merge', '--env', 'no-merge.env')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('merge/config/b'),
  });
});

describe('with a management server', () => {
  test('reports that the policies are not in files', async () => {
    write({ 'xds.env': `${ENV}CONFIG_TYPE=GRPC_XDS_SOTW\nCONFIG_GRPC_XDS_SERVER_URL=gateway:18001\n` });
    const { code, stdout } = await migrate('--env', 'xds.env');
    expect(stdout).toMatch(/^The policies come from the management server/);
    expect(code).toBe(0);
  });
});

describe('reports unreadable files', () => {
  test('reports a line of the env file that needs a decision', async () => {
    write({ 'lines/config/shop': POLICY, 'lines.env': `${ENV}REDIS_AUTH=\${SECRET}\nnonsense\n` });
    const { code, stdout } = await migrate('lines', '--env', 'lines.env', '--json');
    expect(code).toBe(1);
    expect(JSON.parse(stdout).decide.map(({ about }: { about: string }) => about)).toEqual([
      'lines.env:12',
      'lines.env:13',
    ]);
  });

  test.each([
    [['nowhere'], '"nowhere" does not exist'],
    [['.', '--env', 'nowhere.env'], '"nowhere.env" does not exist'],
  ])('%j: exits with 1 and an error message', async (args, message) => {
    const { code, stdout, stderr } = await migrate(...args);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(message);
  });

  test.each([[[]], [['--environment', 'x']], [['a', '--service', 'b', '--service', 'c']]])(
    'rejects %j with exit code 2',
    async (args) => {
      const { code, stdout, stderr } = await migrate(...args);
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toContain('weir migrate --help');
    },
  );
});

test('a limit of zero needs no note, however long its window is', async () => {
  const none = 'domain: a\ndescriptors: [{ key: k, rate_limit: { unit: year, requests_per_unit: 0 } }]\n';
  write({ 'none/config/a.yaml': none, 'none.env': ENV });
  const { code, stdout } = await migrate('none', '--env', 'none.env', '--json');
  expect([code, JSON.parse(stdout).advice]).toEqual([0, []]);
});

const COMPOSE = `services:
  redis: { image: redis }
  ratelimit:
    image: envoyproxy/ratelimit:4d2efd61 # pinned
    env_file: ratelimit.env
    environment:
      - REDIS_AUTH=geheim
    volumes: ["./policies:/data/ratelimit/config"]
`;

test('reports on a compose file and the directory of its policies, without secrets', async () => {
  write({
    'moving/docker-compose.yaml': COMPOSE,
    'moving/ratelimit.env': ENV.replace('LOG_FORMAT=json\n', ''),
    'moving/policies/shop': POLICY,
  });
  const { code, stdout, stderr } = await migrate('moving/docker-compose.yaml', 'moving/policies');
  expect([code, stderr]).toEqual([1, '']);
  expect(stdout).toMatch(
    /^Selected service ratelimit in moving\/docker-compose\.yaml, because its image is envoyproxy.*\n1 rule of /,
  );
  expect(stdout).toMatch(/\nNeeds a decision\n {2}LOG_FORMAT: this variable is not set\./);
  expect(stdout).toMatch(/\nVariables to set to keep the defaults .*\n {2}LOG_FORMAT=text\n/);
  expect(stdout).not.toContain('geheim');
});

test('a compose file alone needs the directory of its policies', async () => {
  write({ 'alone/docker-compose.yaml': COMPOSE, 'alone/ratelimit.env': ENV });
  const { code, stdout } = await migrate('alone/docker-compose.yaml', '--json');
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({
    service: { title: 'service ratelimit' },
    decide: [
      {
        about: 'policies',
        text: expect.stringContaining('reads its policies from "/data/ratelimit/config"'),
      },
    ],
  });
});

test.each([
  [
    'the file names Redis',
    { name: 'REDIS_URL', value: 'mymaster,sentinel-1:26379,sentinel-2:26379' },
    ['REDIS_AUTH'],
  ],
  [
    'a Secret names Redis',
    { name: 'REDIS_URL', valueFrom: { secretKeyRef: { name: 'redis', key: 'url' } } },
    ['REDIS_URL', 'REDIS_AUTH'],
  ],
])('a Deployment with Sentinels and a ConfigMap needs no decision: %s', async (_, url, unread) => {
  const others = Object.entries({
    ...Object.fromEntries(
      ENV.trim()
        .split('\n')
        .map((line) => line.split('=')),
    ),
    REDIS_TYPE: 'SENTINEL',
  }).filter(([name]) => name !== 'REDIS_URL');
  const auth = { name: 'REDIS_AUTH', valueFrom: { secretKeyRef: { name: 'redis', key: 'password' } } };
  const env = [...others.map(([name, value]) => ({ name, value })), url, auth];
  const container = { name: 'main', image: 'envoyproxy/ratelimit:4d2efd61', env };
  const volumes = [{ name: 'config', configMap: { name: 'policies' } }];
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'limits' },
    spec: { template: { spec: { containers: [container], volumes } } },
  };
  const map = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'policies' },
    data: { 'shop.yaml': POLICY },
  };
  write({ 'k8s.yaml': `${JSON.stringify(map)}\n---\n${JSON.stringify(deployment)}\n` });
  const { code, stdout } = await migrate('k8s.yaml', '--json');
  const { decide, advice } = JSON.parse(stdout);
  expect([code, decide]).toEqual([0, []]);
  expect(advice.map(({ about }: { about: string }) => about)).toEqual(unread);
  write({ 'only.yaml': JSON.stringify(deployment) });
  const only = JSON.parse((await migrate('only.yaml', '--json')).stdout);
  expect(only.advice).toContainEqual({
    about: 'ConfigMap policies',
    text: expect.stringContaining('the given files do not contain it'),
  });
  expect(only.decide).toContainEqual({ about: 'policies', text: expect.stringContaining('also pass') });
});

test.each(['--write', '--force', '--image'])('%s is a removed option', async (option) => {
  const { code, stderr } = await migrate('a', option, 'b');
  expect([code, stderr]).toEqual([
    2,
    `weir migrate: ${option}: weir migrate only reports, and writes no files; change the image and the variables ` +
      'by hand, as docs/migrate.md describes; see weir migrate --help\n',
  ]);
});

test('rejects limits of another service with exit code 2', async () => {
  write({ 'limits.yaml': '- { namespace: shop, max_value: 10, seconds: 60 }\n' });
  expect(await migrate('limits.yaml')).toMatchObject({
    code: 2,
    stdout: '',
    stderr:
      'weir migrate: "limits.yaml" contains limits of Limitador, and weir migrate does not convert these limits; ' +
      'write a policy by hand, as docs/policy/format.md describes\n',
  });
});

test('--env recognises a compose file', async () => {
  write({ 'as-env/policies/shop': POLICY, 'as-env/c.yaml': COMPOSE, 'as-env/ratelimit.env': ENV });
  const { code, stdout } = await migrate('as-env/policies', '--env', 'as-env/c.yaml', '--json');
  expect(JSON.parse(stdout)).toMatchObject({
    files: ['as-env/policies/shop'],
    decide: [],
    service: { title: 'service ratelimit' },
  });
  expect(code).toBe(0);
});
