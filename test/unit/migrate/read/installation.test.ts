/* Files of an installation: detection of formats and services, variables and locations of policies. */
import { afterAll, describe, expect, test } from '@jest/globals';
import { readInstallation } from '../../../../src/migrate/read/installation.js';
import { findInVariables } from '../../../../src/migrate/variable-findings.js';
import { makeDeployment } from '../../../../src/migrate/write/deployment.js';
import { composeFile, configMap, deployment, Installations } from '../../../support/migrate/installations.js';

const files = new Installations();
afterAll(() => files.remove());

const variablesOf = (texts: Readonly<Record<string, string>>) => {
  const { environment } = files.good(texts);
  return { ...environment.variables, unknown: [...environment.unknown] };
};

describe('variables of compose', () => {
  test.each<[string, Readonly<Record<string, string>>, object]>([
    [
      'lines',
      { 'c.yaml': composeFile('environment:\n- LOG_LEVEL=debug\n- REDIS_URL="a:1"') },
      { LOG_LEVEL: 'debug', REDIS_URL: '"a:1"' },
    ],
    [
      'a mapping',
      { 'c.yaml': composeFile('environment: { USE_STATSD: false, PORT: 8080 }') },
      { USE_STATSD: 'false', PORT: '8080' },
    ],
    [
      'an anchor',
      { 'c.yaml': `x-env: &env { LOG_LEVEL: debug }\n${composeFile('environment:\n  <<: *env\n  PORT: 1')}` },
      { LOG_LEVEL: 'debug', PORT: '1' },
    ],
    [
      'an env file, under its own variables',
      {
        'unnamed.env': 'LOG_LEVEL=warn\nPORT=1\n',
        'c.yaml': composeFile('env_file: unnamed.env\nenvironment: [LOG_LEVEL=debug]'),
      },
      { LOG_LEVEL: 'debug', PORT: '1' },
    ],
    [
      'env files in the long form, and one that may be missing',
      {
        'unnamed.env': 'PORT=1\n',
        'c.yaml': composeFile('env_file:\n- { path: ./unnamed.env }\n- { path: gone.env, required: false }'),
      },
      { PORT: '1' },
    ],
    [
      'other variables, from .env and defaults',
      {
        '.env': 'HOST_OF_REDIS=cache\n',
        'c.yaml': composeFile(
          'environment:\n- REDIS_URL=$\x7bHOST_OF_REDIS}:$\x7bPORT_OF_REDIS:-6379}\n' +
            '- HOST_OF_REDIS\n- LOG_FORMAT=$$x$\x7bUNSET-}$\x7bHOST_OF_REDIS:+y}',
        ),
      },
      { REDIS_URL: 'cache:6379', HOST_OF_REDIS: 'cache', LOG_FORMAT: '$xy' },
    ],
  ])('%s', (_name, texts, expected) => {
    expect(variablesOf(texts)).toEqual({ ...expected, unknown: [] });
    expect(files.good(texts).environment.decide).toEqual([]);
  });

  test.each([
    [
      'a value from the shell',
      'environment: [REDIS_AUTH]',
      'REDIS_AUTH takes its value from the shell variable with the same name, which no file sets',
    ],
    [
      'a name without a value',
      'environment: ["REDIS_AUTH=$\x7bSECRET}"]',
      'REDIS_AUTH takes its value from SECRET, which no file sets, so the value is unknown; add',
    ],
    ['a missing env file', 'env_file: gone.env', 'this file in "env_file" cannot be read'],
    ['another file', 'extends: { file: base.yaml, service: ratelimit }', '"extends" refers to the service'],
    ['little memory', 'mem_limit: 64m', 'the memory limit'],
  ])('needs a decision: %s', (_name, service, text) => {
    const { environment, decide } = files.good({ 'c.yaml': composeFile(service) });
    expect([...environment.decide, ...decide]).toEqual([
      { about: expect.anything(), text: expect.stringContaining(text) },
    ]);
  });
});

describe('variables of Kubernetes', () => {
  const ENV = `env:
- { name: RUNTIME_ROOT, value: /data }
- { name: REDIS_HOST, value: cache }
- { name: REDIS_URL, value: $(REDIS_HOST):6379 }
- { name: REDIS_AUTH, valueFrom: { secretKeyRef: { name: redis, key: password } } }
- { name: TOKEN, value: x$(REDIS_AUTH) }
- { name: POD_IP, valueFrom: { fieldRef: { fieldPath: status.podIP } } }`;

  test('contain the variables of a container, and keep references', () => {
    const { environment, pick } = files.good({ 'k.yaml': deployment(ENV) });
    expect(pick).toMatchObject({
      workload: {
        title: 'container main of Deployment limits',
        deployed: { owner: 'deployment/limits -n edge' },
      },
      because: 'its image is envoyproxy/ratelimit:4d2efd61',
    });
    expect(environment.variables).toEqual({
      RUNTIME_ROOT: '/data',
      REDIS_HOST: 'cache',
      REDIS_URL: 'cache:6379',
    });
    expect([...environment.unknown]).toEqual(['REDIS_AUTH', 'TOKEN', 'POD_IP']);
    expect(environment.same).toEqual([
      {
        about: 'REDIS_AUTH',
        text: 'the value comes from the Secret redis (key password) as before; weir migrate does not read the value.',
      },
      { about: 'POD_IP', text: 'Kubernetes still sets this variable.' },
    ]);
  });

  const SECRET =
    '---\napiVersion: v1\nkind: Secret\nmetadata: { name: hidden }\nstringData: { REDIS_AUTH: geheim }\n';
  const FROM =
    'envFrom:\n- configMapRef: { name: base }\n- secretRef: { name: hidden }\n' +
    'env:\n- name: PORT\n  valueFrom: { configMapKeyRef: { name: base, key: port } }';

  test('include referenced ConfigMaps and Secrets, without the values of Secrets', () => {
    const found = files.good({
      'k.yaml': deployment(FROM) + configMap('base', 'LOG_LEVEL: debug\nport: "99"') + SECRET,
    });
    expect(found.environment).toMatchObject({
      variables: { LOG_LEVEL: 'debug', port: '99', PORT: '99' },
      decide: [],
    });
    expect([...found.environment.unknown]).toEqual(['REDIS_AUTH']);
    expect(JSON.stringify(found.environment)).not.toContain('geheim');
  });

  test('from missing ConfigMaps do not count as unset', () => {
    const { environment } = files.good({ 'k.yaml': deployment(FROM) });
    expect(environment.decide.map(({ about }) => about)).toEqual(['ConfigMap base', 'Secret hidden', 'PORT']);
    expect(findInVariables(environment.variables, environment.unknown).keep).toEqual({});
  });

  test.each([
    ['a list', (text: string) => `apiVersion: v1\nkind: List\nitems:\n- ${text.replaceAll('\n', '\n  ')}`],
    ['a StatefulSet', (text: string) => text.replace('Deployment', 'StatefulSet')],
    ['several documents', (text: string) => `---\n# first\n---\n${configMap('other', 'a: b')}---\n${text}`],
  ])('in %s', (_name, form) => {
    expect(variablesOf({ 'k.yaml': form(deployment(ENV)) })).toMatchObject({ RUNTIME_ROOT: '/data' });
  });
});

describe('the selected service', () => {
  const two = (a: string, b: string) => `services:\n  a: ${a}\n  b: ${b}\n`;
  test.each([
    [
      'the image',
      two('{ image: redis }', '{ image: "localhost:5000/envoyproxy/ratelimit:x" }'),
      'its image is',
    ],
    ['weir', two('{ image: redis }', '{ image: "weir:1" }'), 'its image is weir:1'],
    ['the command', two('{ image: redis }', '{ build: ., command: /bin/ratelimit }'), 'it runs ratelimit'],
    [
      'a command in a shell',
      two('{ image: a }', '{ image: b, command: [sh, -c, "sleep 1; /bin/ratelimit"] }'),
      'it runs ratelimit',
    ],
    [
      'a variable',
      two('{ image: ratelimit-redis }', '{ image: x, environment: [RUNTIME_ROOT=/d] }'),
      'it sets the variable RUNTIME_ROOT',
    ],
  ])('%s', (_name, text, because) => {
    const { pick } = files.good({ 'c.yaml': text });
    expect(pick).toMatchObject({ workload: { names: ['b'] }, because: expect.stringContaining(because) });
  });

  test('is found by its name, if nothing else identifies it', () => {
    expect(files.good({ 'c.yaml': composeFile('build: .') }).pick?.because).toBe(
      'its name suggests a rate limit service',
    );
  });

  const TWINS = two('{ image: envoyproxy/ratelimit }', '{ image: envoyproxy/ratelimit }');
  test('must be given with --service if there are several candidates', () => {
    expect(files.read({ 'c.yaml': TWINS })).toBe(
      'several services may be the rate limit service; set --service to one of a (service a in c.yaml), ' +
        'b (service b in c.yaml)',
    );
    expect(files.good({ 'c.yaml': TWINS }, 'b').pick).toMatchObject({ workload: { names: ['b'] } });
    expect(files.read({ 'c.yaml': TWINS }, 'c')).toBe(
      'there is no service "c"; set --service to one of a (service a in c.yaml), b (service b in c.yaml)',
    );
    expect(files.read({ 'c.yaml': two('{ image: a }', '{ image: b }') })).toMatch(
      /^the rate limit service cannot be detected by its image/,
    );
    expect(files.read({ 'k.yaml': deployment('') }, 'limits')).toMatch(
      /^there are several services with the name "limits"; .*deployment\/limits\/statsd/,
    );
    expect(files.good({ 'k.yaml': deployment('') }, 'deployment/limits/statsd').pick?.workload.image).toBe(
      'prom/statsd-exporter',
    );
  });
});

describe('Envoy Gateway', () => {
  const CONFIG =
    'kind: EnvoyGateway\n' +
    'rateLimit: { backend: { type: Redis, redis: { url: cache:1, tls: {} } }, telemetry: { tracing: {} } }\n';
  const FILE = `apiVersion: gateway.envoyproxy.io/v1alpha1\n${CONFIG}`;
  const POLICIES =
    'apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: { name: p }\n' +
    'spec: { rateLimit: { global: { rules: [{}, {}] }, local: { rules: [{}] } } }\n' +
    '---\napiVersion: gateway.envoyproxy.io/v1alpha1\nkind: EnvoyProxy\nmetadata: { name: e }\n';

  test.each([
    ['file', FILE],
    ['manifest', configMap('envoy-gateway-config', `envoy-gateway.yaml: |\n${FILE.replace(/^/gm, '  ')}`)],
    ['values', `config:\n  envoyGateway:\n${CONFIG.replace(/^/gm, '    ')}`],
  ])('as a %s', (form, text) => {
    const { pick, environment, same, decide } = files.good({ 'g.yaml': text, 'p.yaml': POLICIES });
    expect(pick?.workload.deployed).toEqual({ by: 'envoy-gateway', as: form });
    expect(environment.variables).toMatchObject({
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      REDIS_URL: 'cache:1',
      REDIS_TLS: 'true',
      TRACING_ENABLED: 'true',
      USE_PROMETHEUS: 'true',
    });
    expect(same.map(({ about, text: said }) => `${about}: ${said}`)).toEqual([
      'BackendTrafficPolicy p: Envoy Gateway sends 2 rules over xDS. weir enforces global rules as before.',
      'BackendTrafficPolicy p: Envoy enforces 1 rule locally, without a rate limit service.',
      'EnvoyProxy e: this resource configures Envoy, not the rate limit service.',
    ]);
    expect(decide).toEqual([]);
  });

  test('without Redis, no migration is needed; patches must be reviewed', () => {
    const patch = 'provider: { kubernetes: { rateLimitDeployment: { patch: {} } } }\n';
    const text = FILE.replace(/rateLimit: .*/, '') + patch;
    expect(files.good({ 'g.yaml': text }).decide.map(({ text: said }) => said)).toEqual([
      expect.stringContaining('rateLimit.backend.redis.url is not set'),
      expect.stringContaining('does not set an image'),
    ]);
  });
});

describe.each(['__proto__', 'constructor', 'toString'])('a variable called %s', (name) => {
  const item = `env: [{ name: ${name}, value: b }, { name: A, value: "$(${name}) $(valueOf)" }]`;
  const chart = `image: { repository: envoyproxy/ratelimit, tag: a }\nenv: { ${name}: b }\n`;
  test.each<[string, Readonly<Record<string, string>>]>([
    ['a list of compose', { 'c.yaml': composeFile(`image: ratelimit\nenvironment: [${name}=b]`) }],
    ['a mapping of compose', { 'c.yaml': composeFile(`image: ratelimit\nenvironment: { ${name}: b }`) }],
    ['.env', { 'c.yaml': composeFile(`image: ratelimit\nenvironment: [${name}]`), '.env': `${name}=b\n` }],
    ['a text', { 'c.yaml': composeFile(`image: ratelimit\nenvironment: { ${name}: "$\x7b${name}:-b}" }`) }],
    ['an env file', { 'rl.env': `${name}=b\n` }],
    ['a container', { 'k.yaml': deployment(item) }],
    ['a chart', { 'values.yaml': chart }],
  ])('in %s is found, written, and reported as unknown', (_name, texts) => {
    const found = files.good(texts);
    const { variables, unknown } = found.environment;
    expect(Object.entries(variables)).toContainEqual([name, 'b']);
    expect(Object.values(variables).every((value) => typeof value === 'string')).toBe(true);
    if (variables['A'] !== undefined) expect(variables['A']).toBe('b $(valueOf)');
    const { unused } = findInVariables(variables, unknown);
    expect(unused.map(({ about }) => about).join(', ')).toContain(name);
    const target = { image: 'weir:1', variables: { PORT: '1' } };
    const { files: written, isAdded } = makeDeployment(found, target, { files: [], directory: undefined });
    expect(isAdded).toBe(true);
    expect(written.map(({ content }) => String(content)).join()).toContain(name);
  });
});

describe('chart values', () => {
  test.each([
    [
      'image with repository',
      `image: { registry: docker.io, repository: envoyproxy/ratelimit, tag: a }\nredisUrl: cache\n` +
        `redisPort: 1\nlogLevel: warn\nenv: [{ name: PORT, value: "9" }]\n`,
    ],
    [
      'image as a text, below a key',
      `ratelimit:\n  image: envoyproxy/ratelimit:a\n  redis: { url: cache:1 }\n` +
        `  log: { level: warn }\n  extraEnv: { PORT: 9 }\n`,
    ],
  ])('%s', (name, text) => {
    const { environment, pick } = files.good({ 'values.yaml': text });
    expect(environment.variables).toEqual({ REDIS_URL: 'cache:1', LOG_LEVEL: 'warn', PORT: '9' });
    expect(pick?.workload.image).toBe('envoyproxy/ratelimit:a');
    // Variables that the templates set are unknown, so no default is added.
    expect(findInVariables(environment.variables, environment.unknown).keep).toEqual({});
    const decide = [expect.stringContaining('helm get manifest')];
    if (name === 'image with repository')
      decide.push(expect.stringContaining('docker.io ("image.registry") to every image name. Push'));
    expect(pick?.workload.decide.map(({ text: said }) => said)).toEqual(decide);
  });
});

test.each([
  ['nothing that is known', { 'a.yaml': 'a: b\n' }, '"a.yaml" has an unknown format; pass a compose file, '],
  ['an empty file', { 'a.yaml': '# nothing\n' }, '"a.yaml" is empty'],
  ['no YAML', { 'a.yaml': 'services: [\n' }, 'a.yaml:1:11: this is not valid YAML'],
  ['no such file', {}, ''],
])('an error message for %s', (_name, texts, start) => {
  const found =
    start === ''
      ? readInstallation(['/nowhere/a.yaml'], [], undefined)
      : files.read(texts as Record<string, string>);
  expect(found).toEqual(expect.stringContaining(start || '"/nowhere/a.yaml" does not exist'));
});
