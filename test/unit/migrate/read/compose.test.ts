/* Services that docker compose merges from several files, and the variables that are unknown as a result. */
import { afterAll, describe, expect, test } from '@jest/globals';
import { readInstallation } from '../../../../src/migrate/read/installation.js';
import { findInVariables } from '../../../../src/migrate/variable-findings.js';
import { composeFile, Installations } from '../../../support/migrate/installations.js';

const files = new Installations();
afterAll(() => files.remove());

const IMAGE = 'image: envoyproxy/ratelimit:1';
const BASE = `services:
  base:
    ${IMAGE}
    environment: [LOG_LEVEL=debug, PORT=1]
    volumes: ["./config:/data/config"]
`;

type Texts = Readonly<Record<string, string>>;

describe('extends', () => {
  const child = composeFile(
    'extends: { file: common/unnamed.yaml, service: base }\nenvironment: { PORT: 2 }',
  );

  test.each<[string, Texts]>([
    ['of another file', { 'c.yaml': child, 'common/unnamed.yaml': BASE }],
    [
      'of another file that is named, too',
      { 'c.yaml': child.replace('unnamed', 'n'), 'common/n.yaml': BASE },
    ],
    [
      'of a service that extends one itself',
      {
        'c.yaml': child.replace('base }', 'middle }'),
        'common/unnamed.yaml': `${BASE}  middle: { extends: base }\n`,
      },
    ],
  ])('%s', (_name, texts) => {
    const { pick, environment } = files.good(texts);
    expect(pick?.workload).toMatchObject({
      names: ['ratelimit'],
      image: 'envoyproxy/ratelimit:1',
      deployed: { isInOneFile: false, files: [expect.stringMatching(/c\.yaml$/)] },
      mounts: [{ target: '/data/config', source: { path: expect.stringMatching(/common\/config$/) } }],
    });
    expect(environment).toMatchObject({ variables: { LOG_LEVEL: 'debug', PORT: '2' }, decide: [] });
  });

  test('requires the name of one of two services in the same file', () => {
    const own = { 'c.yaml': `${BASE}  ratelimit: { extends: base, environment: { PORT: 2 } }\n` };
    expect(files.read(own)).toMatch(/^several services may be the rate limit service; /);
    expect(files.good(own, 'ratelimit').environment.variables).toEqual({ LOG_LEVEL: 'debug', PORT: '2' });
  });
});

test.each<[string, Texts, string]>([
  [
    'a file that is not there',
    { 'c.yaml': composeFile(`${IMAGE}\nextends: { file: gone.yaml, service: base }`) },
    'docker compose config > resolved.yaml',
  ],
  [
    'a service that is not there',
    { 'c.yaml': composeFile(`${IMAGE}\nextends: gone`) },
    'does not contain this service',
  ],
  [
    'itself',
    { 'c.yaml': composeFile(`${IMAGE}\nextends: ratelimit`) },
    'the chain of "extends" references is circular or too long',
  ],
  [
    'a tag of compose',
    {
      'docker-compose.yml': composeFile(IMAGE),
      'docker-compose.override.yml': composeFile('environment: !override { A: b }'),
    },
    'are not supported',
  ],
  ['an env file that is not there', { 'c.yaml': composeFile(`${IMAGE}\nenv_file: gone.env`) }, 'gone.env'],
])('no variable counts as unset under %s', (_name, texts, said) => {
  const { environment } = files.good(texts);
  expect(environment.decide.map(({ about, text }) => `${about}: ${text}`)).toEqual([
    expect.stringContaining(said),
  ]);
  expect(findInVariables(environment.variables, environment.unknown).keep).toEqual({});
});

test('a missing env file overrides earlier env files, but not the variables of the service', () => {
  const service = `${IMAGE}\nenv_file: [unnamed.env, gone.env]\nenvironment: [LOG_LEVEL=debug]`;
  const { variables, unknown } = files.good({
    'unnamed.env': 'PORT=1\n',
    'c.yaml': composeFile(service),
  }).environment;
  expect(variables).toEqual({ LOG_LEVEL: 'debug' });
  expect([unknown.has('PORT'), unknown.has('LOG_LEVEL')]).toEqual([true, false]);
});

describe('override files', () => {
  const MAIN = composeFile(`${IMAGE}\nenvironment: [PORT=1, LOG_LEVEL=info]\nvolumes: ["./a:/data"]`);
  const OVER = composeFile('image: envoyproxy/ratelimit:2\nenvironment: { PORT: 2 }\nvolumes: ["./b:/data"]');

  test.each<[string, Texts]>([
    ['named in their order', { 'docker-compose.yml': MAIN, 'docker-compose.override.yml': OVER }],
    ['named first', { 'docker-compose.override.yml': OVER, 'docker-compose.yml': MAIN }],
    ['of another name', { 'a.yml': MAIN, 'b.yml': OVER }],
  ])('%s', (_name, texts) => {
    const { pick, environment } = files.good(
      Object.fromEntries(Object.entries(texts).filter(([name]) => name !== 'unnamed/x')),
    );
    expect(environment.variables).toEqual({ PORT: '2', LOG_LEVEL: 'info' });
    expect(pick?.workload).toMatchObject({
      image: 'envoyproxy/ratelimit:2',
      mounts: [{ source: { path: expect.stringMatching(/\/b$/) } }],
      deployed: { files: [expect.anything(), expect.anything()], isInOneFile: false },
    });
  });

  test('an override file next to the compose file is loaded and reported', () => {
    const folder = files.folderOf({ 'compose.yaml': MAIN, 'compose.override.yml': OVER });
    const found = readInstallation([`${folder}/compose.yaml`], [], undefined);
    expect(found).toMatchObject({
      environment: { variables: { PORT: '2', LOG_LEVEL: 'info' } },
      same: [{ about: `${folder}/compose.override.yml` }],
      pick: {
        workload: { deployed: { files: [`${folder}/compose.yaml`, `${folder}/compose.override.yml`] } },
      },
    });
  });
});

describe('mounts', () => {
  const mounts = (service: string, rest = '') =>
    files.good({ 'c.yaml': composeFile(`${IMAGE}\n${service}`) + rest }).pick?.workload.mounts;
  const path = (end: string) => ({ kind: 'path', path: expect.stringMatching(`case-\\d+/${end}$`) });

  test.each([
    ['long form', 'volumes: [{ source: "$\x7bCONF:-./config}", target: /data }]', '/data', path('config')],
    ['short form', 'volumes: ["$\x7bCONF:-./config}:/data:ro"]', '/data', path('config')],
    [
      'a name without a value',
      'volumes: ["$\x7bCONF}:/data"]',
      '/data',
      { kind: 'elsewhere', what: 'the volume $\x7bCONF}' },
    ],
    ['configs', 'configs: [{ source: shop, target: /data/shop.yaml }]', '/data/shop.yaml', path('shop.yaml')],
    ['configs by name', 'configs: [inline]', '/inline', { kind: 'text', name: 'inline' }],
    [
      'configs with a text',
      'configs: [{ source: inline, target: /data/a.yaml }]',
      '/data/a.yaml',
      { kind: 'text', name: 'inline' },
    ],
    [
      'configs that are made elsewhere',
      'configs: [outside]',
      '/outside',
      { kind: 'elsewhere', what: expect.stringContaining('the config outside, whose content is neither') },
    ],
    [
      'configs whose text names what has no value',
      'configs: [named]',
      '/named',
      { kind: 'elsewhere', what: expect.stringContaining('uses variables without a value (DOMAIN)') },
    ],
  ])('%s', (_name, service, target, source) => {
    const rest =
      'configs: { shop: { file: ./shop.yaml }, inline: { content: "domain: a" }, outside: { external: true }, ' +
      'named: { content: "domain: $\x7bDOMAIN}" } }\n';
    expect(mounts(service, rest)).toMatchObject([{ target, source }]);
  });
});

test.each([
  [
    'healthcheck: { test: [CMD, curl, -f, "http://localhost:8080/healthcheck"] }',
    'this check would fail, because',
  ],
  ['healthcheck: { test: "wget -q localhost:8080/healthcheck || exit 1" }', 'this check would fail, because'],
])('%s does not run in the image', (service, said) => {
  const { decide } = files.good({ 'c.yaml': composeFile(`${IMAGE}\n${service}`) });
  expect(decide.map(({ text }) => text)).toEqual([expect.stringContaining(said)]);
  expect(decide[0]?.text).toContain('Run `weir health` instead');
});

test('a Redis that evicts counters needs a decision', () => {
  const redis = '  redis: { image: redis, command: redis-server --maxmemory-policy volatile-ttl }\n';
  const { decide } = files.good({ 'c.yaml': composeFile(IMAGE) + redis });
  expect(decide).toEqual([{ about: 'service redis', text: expect.stringContaining('volatile-ttl') }]);
  const kept = redis.replace('volatile-ttl', 'noeviction');
  expect(files.good({ 'c.yaml': composeFile(IMAGE) + kept }).decide).toEqual([]);
});

test('a directory with a compose file does not count as a policy directory', () => {
  const folder = files.folderOf({ 'compose.yaml': composeFile(IMAGE) });
  expect(readInstallation([folder], [], undefined)).toContain(`weir migrate ${folder}/compose.yaml`);
});
