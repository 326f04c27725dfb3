/* Tests the command `weir migrate` with whole installations. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { runToEnd } from '../support/process/processes.js';
import { toolPath } from '../support/process/tools.js';
import { CommandHost } from '../support/weir/commands.js';

const folder = mkdtempSync(join(tmpdir(), 'weir-migrate-'));
const host = new CommandHost();
afterAll(async () => {
  await host.stop();
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
  expect(stdout).toMatch(
    /^1 policy file in good\/ratelimit\/config\n\nNo decisions are needed\.\n\nBehaves the same\n {2}domain shop: /,
  );
  expect(stdout).toMatch(/\nBetter in weir\n/);
  expect(stdout).toMatch(
    /\nBehaves the same\n(?: {2}.*\n)* {2}RUNTIME_WATCH_ROOT: weir detects changed files whether this /,
  );
  expect(stdout).not.toContain('Good to know');
  expect(code).toBe(0);
});

test.each(['layout', 'layout/ratelimit', 'layout/ratelimit/config'])(
  'finds the files below or in %s',
  async (directory) => {
    write({ 'layout/ratelimit/config/shop.yaml': POLICY, 'layout.env': ENV });
    const { code, stdout } = await migrate(directory, '--env', 'layout.env', '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      directory: 'layout/ratelimit/config',
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
  const { decide, advice, same, keep } = JSON.parse(stdout);
  expect(decide).toEqual(
    expect.arrayContaining([
      { about: expect.stringMatching(/^bad\/config\/b\.yaml:2:\d+$/), text: expect.stringContaining('key') },
      {
        about: 'bad/config/b.yaml',
        text: expect.stringContaining('envoyproxy/ratelimit also rejects this policy'),
      },
      {
        about: 'LOG_LEVEL',
        text: expect.stringContaining('Set LOG_LEVEL=WARN to keep the current behavior'),
      },
    ]),
  );
  expect(same).toContainEqual({
    about: 'domain a',
    text: 'weir makes the same decisions as envoyproxy/ratelimit for 1 rule.',
  });
  expect(advice).toContainEqual({
    about: 'counters',
    text: expect.stringContaining('than a minute: k in domain a.'),
  });
  expect(keep).toMatchObject({ LOG_LEVEL: 'WARN', DEBUG_HOST: '0.0.0.0' });
});

test('names keys and rules that the reference confuses', async () => {
  write({
    'twins/config/twins.yaml': `
domain: twins
descriptors:
  - key: a_b
    rate_limit: { unit: second, requests_per_unit: 1 }
  - key: a
    rate_limit: { unit: second, requests_per_unit: 2 }
    descriptors:
      - key: c
        value: d_e
        rate_limit: { unit: second, requests_per_unit: 3 }
      - key: c
        value: d
        descriptors:
          - key: e
            rate_limit: { unit: second, requests_per_unit: 4 }
      - key: c_d
        value: e
        rate_limit: { unit: second, requests_per_unit: 5 }
`,
    'twins.env': ENV,
  });
  const { code, stdout } = await migrate('twins', '--env', 'twins.env', '--json');
  const { advice, better } = JSON.parse(stdout);
  expect(advice).toContainEqual({
    about: 'twins: a_b',
    text: expect.stringContaining('with the key a and the value b'),
  });
  expect(better).toContainEqual({
    about: 'twins: a/c=d_e and twins: a/c_d=e',
    text: expect.stringContaining('share a counter in envoyproxy/ratelimit'),
  });
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
    stdout: expect.stringContaining(
      'domain shop: weir makes the same decisions as envoyproxy/ratelimit for 2 rules',
    ),
  });
  expect(await migrate('merge', '--env', 'no-merge.env')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('merge/config/b'),
  });
});

test('keeps metadata that the reference drops', async () => {
  write({
    'metadata/config/a': `
domain: a
descriptors:
  - key: user
    detailed_metric: true
    metadata: { team: shop }
    rate_limit: { unit: minute, requests_per_unit: 5 }
`,
    'metadata.env': ENV,
  });
  const { stdout } = await migrate('metadata', '--env', 'metadata.env', '--json');
  expect(JSON.parse(stdout).better).toContainEqual({
    about: 'a: user',
    text: expect.stringContaining('weir keeps the metadata'),
  });
});

describe('with a management server', () => {
  test('reports that there are no files to convert', async () => {
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

  test.each([
    [[]],
    [['a', '--force']],
    [['--environment', 'x']],
    [['a', '--service', 'b', '--service', 'c']],
  ])('rejects %j with exit code 2', async (args) => {
    const { code, stdout, stderr } = await migrate(...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('weir migrate --help');
  });
});

test('a limit of zero needs no note, however long its window is', async () => {
  const none = 'domain: a\ndescriptors: [{ key: k, rate_limit: { unit: year, requests_per_unit: 0 } }]\n';
  write({ 'none/config/a.yaml': none, 'none.env': ENV });
  expect(await migrate('none', '--env', 'none.env')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/No window is longer than a minute/),
  });
});

test('reports an empty file in one sentence', async () => {
  write({ 'a-file': '' });
  const { code, stderr } = await migrate('a-file');
  expect([code, stderr]).toEqual([1, 'weir migrate: "a-file" is empty\n']);
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

describe('--write', () => {
  const files = {
    'moving/docker-compose.yaml': COMPOSE,
    'moving/ratelimit.env': ENV.replace('LOG_FORMAT=json\n', ''),
    'moving/policies/shop': POLICY,
  };
  const writeOut = (...args: string[]) => migrate('moving/docker-compose.yaml', '--write', 'out', ...args);
  const written = (path: string) => readFileSync(join(folder, 'out', path), 'utf8');

  test('writes files to deploy, and prints the next steps', async () => {
    write(files);
    chmodSync(join(folder, 'moving/docker-compose.yaml'), 0o600);
    const { code, stdout, stderr } = await writeOut();
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^Selected service ratelimit in moving\/docker-compose\.yaml, because its image is envoyproxy/,
    );
    expect(stdout).toMatch(
      /\nNo decisions are needed\.\n[\s\S]*\n\nVariables set in the written .*\n {2}LOG_FORMAT=text\n/,
    );
    expect(stdout).toMatch(
      /\nWritten to out\n {2}docker-compose\.yaml +image weir:\d\S+, 1 variable added\n/,
    );
    expect(stdout).toMatch(/\n {2}policies\/shop +copied, unchanged\n {2}README\.md +next steps\n$/);
    expect(written('docker-compose.yaml')).toMatch(/image: weir:\d+\.\d+\.\d+\S* # pinned\n/);
    expect(written('docker-compose.yaml')).toContain('      - LOG_FORMAT=text\n      - REDIS_AUTH=geheim\n');
    expect(written('policies/shop')).toBe(POLICY);
    // The file contains a password, so its mode is as strict as that of its source.
    expect(statSync(join(folder, 'out/docker-compose.yaml')).mode & 0o777).toBe(0o600);
    expect(written('README.md')).toContain(
      '`docker compose --project-directory moving -f out/docker-compose.yaml up -d ratelimit`',
    );
    expect(stdout + written('README.md')).not.toContain('geheim');
  });

  test('overwrites files only with --force, and never its own input', async () => {
    write({ ...files, 'out/README.md': 'mine' });
    rmSync(join(folder, 'out/docker-compose.yaml'), { force: true });
    const { code, stdout, stderr } = await writeOut();
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(
      /^weir migrate: no files were written, because "out" already contains .*README\.md; choose another directory/,
    );
    expect(existsSync(join(folder, 'out/docker-compose.yaml'))).toBe(false);
    expect(written('README.md')).toBe('mine');
    expect(await writeOut('--force')).toMatchObject({ code: 0 });
    expect(written('README.md')).toMatch(/^# From envoyproxy\/ratelimit to weir\n/);
    const own = await migrate('moving/docker-compose.yaml', '--write', 'moving', '--force');
    expect(own).toMatchObject({ code: 1, stderr: expect.stringContaining('is never overwritten') });
    // The link gives the same files another name.
    symlinkSync('moving', join(folder, 'same'));
    mkdirSync(join(folder, 'links'));
    symlinkSync('../moving/docker-compose.yaml', join(folder, 'links/docker-compose.yaml'));
    for (const other of ['same', 'links']) {
      const link = await migrate('moving/docker-compose.yaml', '--write', other, '--force');
      expect(link).toMatchObject({ code: 1, stderr: expect.stringContaining('is never overwritten') });
    }
    expect(readFileSync(join(folder, 'moving/docker-compose.yaml'), 'utf8')).toBe(COMPOSE);
    // weir writes all files or none.
    mkdirSync(join(folder, 'nowhere'));
    symlinkSync('missing', join(folder, 'nowhere/README.md'));
    expect(await migrate('moving/docker-compose.yaml', '--write', 'nowhere')).toMatchObject({ code: 1 });
    expect(readdirSync(join(folder, 'nowhere'))).toEqual(['README.md']);
  });

  test('converts a directory and an env file: variables, policies, and a command for both', async () => {
    write({ ...files, 'plain.env': ENV });
    const { stdout } = await migrate(
      'moving/policies',
      '--env',
      'plain.env',
      '--write',
      'plain',
      '--image',
      'a/b:c',
      '--json',
    );
    expect(JSON.parse(stdout)).toMatchObject({
      service: null,
      decide: [],
      written: ['plain/plain.env', 'plain/policies/shop', 'plain/README.md'],
    });
    const page = readFileSync(join(folder, 'plain/README.md'), 'utf8');
    const [, mount] =
      /`docker run --env-file plain\/plain\.env -v (\S+) .* a\/b:c \/bin\/ratelimit`/.exec(page) ?? [];
    expect(mount).toMatch(/^\/\S+\/plain\/policies:\/data\/ratelimit\/config:ro$/);
  });

  test('keeps an alias, and writes a file that takes precedence', async () => {
    write({
      'alias.yaml':
        `x: &env [LOG_LEVEL=info]\n` +
        `${COMPOSE.replace(/env_file[\s\S]*/, 'environment: *env\n  other: { environment: *env }\n')}`,
    });
    const { stdout } = await migrate('alias.yaml', '--write', 'alias', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ written: ['alias/compose.weir.yaml', 'alias/README.md'] });
    expect(readFileSync(join(folder, 'alias/README.md'), 'utf8')).toContain(
      '`docker compose --project-directory . -f alias.yaml -f alias/compose.weir.yaml up -d ratelimit`',
    );
  });

  test('leaves changes that it cannot make to the user, and prints no command for them', async () => {
    const pod =
      'apiVersion: v1\nkind: Pod\nmetadata: { name: p, annotations: { a: &i "envoyproxy/ratelimit:1" } }\n' +
      'spec: { containers: [{ name: c, image: *i }] }\n';
    write({ 'pod.yaml': pod });
    const { code, stdout } = await migrate('pod.yaml', '--write', 'pod');
    expect(code).toBe(1);
    expect(stdout).toContain('pod.yaml: weir migrate cannot change the image and the variables in this file');
    expect(stdout).toContain('\nVariables to set to keep the defaults of envoyproxy/ratelimit\n');
    const page = readFileSync(join(folder, 'pod/README.md'), 'utf8');
    expect(page).toContain('To keep the defaults of envoyproxy/ratelimit,');
    expect(page).not.toContain('kubectl');
  });
});

test('writes a patch that, merged as kubectl does, changes only the image and adds variables', async () => {
  const container = {
    name: 'main',
    image: 'envoyproxy/ratelimit:1',
    command: ['/bin/ratelimit'],
    env: [
      { name: 'LOG_LEVEL', value: 'info' },
      { name: 'REDIS_AUTH', valueFrom: { secretKeyRef: { name: 'redis', key: 'password' } } },
    ],
    ports: [{ containerPort: 8080 }],
  };
  const sidecar = { name: 'statsd', image: 'prom/statsd-exporter' };
  const labels = { app: 'limits' };
  const spec = { containers: [sidecar, container] };
  const before = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'limits', uid: 'u', resourceVersion: '9' },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
  write({ 'snapshot.yaml': JSON.stringify(before) });
  await migrate('snapshot.yaml', '--write', 'patched');
  const patch = parse(readFileSync(join(folder, 'patched/patch.yaml'), 'utf8'));
  // A strategic merge identifies containers and variables by name, puts new ones first, and replaces everything else.
  const [change, ...more] = patch.spec.template.spec.containers;
  expect([Object.keys(change).sort(), more]).toEqual([['env', 'image', 'name'], []]);
  expect(change).toMatchObject({ name: 'main', image: expect.stringMatching(/^weir:/) });
  const names = change.env.map(({ name }: { name: string }) => name);
  expect(names).toContain('DEBUG_HOST');
  expect(names.filter((name: string) => container.env.some((one) => one.name === name))).toEqual([]);
  const merged = { ...container, ...change, env: [...change.env, ...container.env] };
  const template = { metadata: { labels }, spec: { containers: [sidecar, merged] } };
  const after = { ...before, spec: { ...before.spec, template } };
  write({ 'patched/after.yaml': JSON.stringify(after) });
  const checked = await runToEnd(toolPath('kubernetes-validate'), [
    '--strict',
    join(folder, 'patched/after.yaml'),
  ]);
  expect({ code: checked.code, output: checked.stdout + checked.stderr }).toMatchObject({ code: 0 });
});

test('--env recognises a compose file', async () => {
  write({ 'as-env/policies/shop': POLICY, 'as-env/c.yaml': COMPOSE, 'as-env/ratelimit.env': ENV });
  const { code, stdout } = await migrate('as-env/policies', '--env', 'as-env/c.yaml', '--json');
  expect(JSON.parse(stdout)).toMatchObject({
    directory: 'as-env/policies',
    decide: [],
    service: { title: 'service ratelimit' },
  });
  expect(code).toBe(0);
});
