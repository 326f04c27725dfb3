/* Files of an installation: detection of formats and services, variables, and locations of policies. */
import { describe, expect, test } from '@jest/globals';
import { EXIT } from '../../../../src/cli/io.js';
import { InputError } from '../../../../src/cli/migrate/input.js';
import { type Installation, readInstallation } from '../../../../src/cli/migrate/installation.js';
import { locatePolicies } from '../../../../src/cli/migrate/locate-policies.js';
import { findInVariables } from '../../../../src/cli/migrate/variable-findings.js';
import { TempDir } from '../../../support/process/temp-dir.js';

const folder = new TempDir();
let cases = 0;

type Texts = Readonly<Record<string, string>>;

/** Writes files into a new folder and returns its path. */
function folderOf(texts: Texts): string {
  const place = `case-${cases++}`;
  for (const [name, text] of Object.entries(texts)) folder.write(`${place}/${name}`, text);
  return folder.join(place);
}

/** Writes files, and reads those whose names do not begin with a dot or "unnamed". */
function read(texts: Texts, service?: string): Installation {
  const place = folderOf(texts);
  const named = Object.keys(texts).filter((name) => !/^(?:\.|unnamed)/.test(name));
  return readInstallation(
    named.map((name) => `${place}/${name}`),
    [],
    service,
  );
}

/** Returns the error of files that do not describe an installation. */
function failure(texts: Texts, service?: string): InputError {
  try {
    read(texts, service);
  } catch (error) {
    if (error instanceof InputError) return error;
  }
  throw new Error('the files were accepted');
}

const compose = (service: string): string =>
  `services:\n  ratelimit:\n    image: envoyproxy/ratelimit:1\n${service.replace(/^/gm, '    ')}\n`;

const deployment = (container: string, volumes = '[]'): string => `apiVersion: apps/v1
kind: Deployment
metadata: { name: limits, namespace: edge }
spec:
  template:
    spec:
      volumes: ${volumes}
      containers:
        - name: statsd
          image: prom/statsd-exporter
        - name: main
          image: envoyproxy/ratelimit:4d2efd61
${container.replace(/^/gm, '          ')}
`;

const configMap = (name: string, data: string): string =>
  `---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name} }\ndata:\n${data.replace(/^/gm, '  ')}\n`;

const variablesOf = (texts: Texts) => {
  const { environment } = read(texts);
  return { ...environment.variables, unknown: [...environment.unknown] };
};

describe('variables of compose', () => {
  test.each<[string, Texts, object]>([
    [
      'lines',
      { 'c.yaml': compose('environment:\n- LOG_LEVEL=debug\n- REDIS_URL="a:1"\n- EXTRA_TAGS=a=b') },
      { LOG_LEVEL: 'debug', REDIS_URL: '"a:1"', EXTRA_TAGS: 'a=b' },
    ],
    [
      'a mapping',
      { 'c.yaml': compose('environment: { USE_STATSD: false, PORT: 8080 }') },
      { USE_STATSD: 'false', PORT: '8080' },
    ],
    [
      'an anchor',
      { 'c.yaml': `x-env: &env { LOG_LEVEL: debug }\n${compose('environment:\n  <<: *env\n  PORT: 1')}` },
      { LOG_LEVEL: 'debug', PORT: '1' },
    ],
    [
      'an env file, under its own variables',
      {
        'unnamed.env': 'LOG_LEVEL=warn\nPORT=1\n',
        'c.yaml': compose('env_file: unnamed.env\nenvironment: [LOG_LEVEL=debug]'),
      },
      { LOG_LEVEL: 'debug', PORT: '1' },
    ],
    [
      'an env file in the long form',
      { 'unnamed.env': 'PORT=1\n', 'c.yaml': compose('env_file:\n- { path: ./unnamed.env }') },
      { PORT: '1' },
    ],
    [
      'other variables, from .env and defaults',
      {
        '.env': 'HOST_OF_REDIS=cache\n',
        'c.yaml': compose(
          'environment:\n- REDIS_URL=$\x7bHOST_OF_REDIS}:$\x7bPORT_OF_REDIS:-6379}\n' +
            '- HOST_OF_REDIS\n- LOG_FORMAT=$$x$\x7bUNSET-}$HOST_OF_REDIS',
        ),
      },
      { REDIS_URL: 'cache:6379', HOST_OF_REDIS: 'cache', LOG_FORMAT: '$xcache' },
    ],
  ])('%s', (_name, texts, expected) => {
    expect(variablesOf(texts)).toEqual({ ...expected, unknown: [] });
    expect(read(texts).environment.decide).toEqual([]);
  });

  test.each([
    ['a value from the shell', 'environment: [REDIS_AUTH]', 'REDIS_AUTH depends on REDIS_AUTH'],
    ['a name without a value', 'environment: ["REDIS_AUTH=$\x7bSECRET}"]', 'REDIS_AUTH depends on SECRET'],
    ['another operator', 'environment: ["REDIS_AUTH=$\x7bA:+b}"]', 'REDIS_AUTH depends on A'],
    ['a nested default', 'environment: ["PORT=$\x7bA:-$\x7bB:-1}}"]', 'PORT depends on A and B'],
  ])('needs a decision: %s', (_name, service, text) => {
    const { environment } = read({ '.env': 'A=a\n', 'c.yaml': compose(service) });
    expect(environment.decide.map((finding) => finding.text)).toEqual([expect.stringContaining(text)]);
    expect(Object.keys(environment.variables)).toEqual([]);
  });

  test.each([
    ['another service', 'extends: { file: base.yaml, service: ratelimit }', 'does not support "extends"'],
    ['a tag of compose', 'environment: !override [PORT=1]', 'does not support "!override"'],
    ['a missing env file', 'env_file: gone.env', 'this file in "env_file" cannot be read'],
  ])('no variable counts as unset with %s', (_name, service, text) => {
    const { environment } = read({ 'c.yaml': compose(service) });
    expect(environment.decide.map((finding) => finding.text)).toEqual([expect.stringContaining(text)]);
    expect(findInVariables(environment.variables, environment.unknown).keep).toEqual({});
  });

  test('a missing env file overrides earlier env files, but not the variables of the service', () => {
    const { variables, unknown } = read({
      'unnamed.env': 'PORT=1\n',
      'c.yaml': compose('env_file: [unnamed.env, gone.env]\nenvironment: [LOG_LEVEL=debug]'),
    }).environment;
    expect({ ...variables }).toEqual({ LOG_LEVEL: 'debug' });
    expect([unknown.has('PORT'), unknown.has('LOG_LEVEL')]).toEqual([true, false]);
  });

  test.each<[string, Texts]>([
    ['named', { 'a.yml': compose(''), 'b.yml': compose('environment: { PORT: 2 }') }],
    ['next to it', { 'compose.yaml': compose(''), 'unnamed/x': '', '.x': '' }],
  ])('several files are rejected: %s', (name, texts) => {
    const place = folderOf({
      ...texts,
      ...(name === 'named' ? {} : { 'compose.override.yaml': compose('') }),
    });
    const files = name === 'named' ? ['a.yml', 'b.yml'] : ['compose.yaml'];
    const all = files.map((file) => `${place}/${file}`);
    expect(() => readInstallation(all, [], undefined)).toThrow(/docker compose config > resolved\.yaml/);
  });
});

describe('variables of Kubernetes', () => {
  const ENV = `env:
- { name: RUNTIME_ROOT, value: /data }
- { name: REDIS_HOST, value: cache }
- { name: REDIS_URL, value: $(REDIS_HOST):6379 }
- { name: REDIS_AUTH, valueFrom: { secretKeyRef: { name: redis, key: password } } }
- { name: POD_IP, valueFrom: { fieldRef: { fieldPath: status.podIP } } }`;

  test('contain the variables of a container; references are unknown', () => {
    const { environment, pick } = read({ 'k.yaml': deployment(ENV) });
    expect(pick).toMatchObject({
      workload: { title: 'container main of Deployment limits' },
      because: 'its image is envoyproxy/ratelimit:4d2efd61',
    });
    expect({ ...environment.variables }).toEqual({ RUNTIME_ROOT: '/data', REDIS_HOST: 'cache' });
    expect([...environment.unknown]).toEqual(['REDIS_URL', 'REDIS_AUTH', 'POD_IP']);
    expect(environment.advice.map(({ about }) => about)).toEqual(['REDIS_URL', 'REDIS_AUTH', 'POD_IP']);
  });

  const SECRET =
    '---\napiVersion: v1\nkind: Secret\nmetadata: { name: hidden }\nstringData: { REDIS_AUTH: geheim }\n';
  const FROM =
    'envFrom:\n- configMapRef: { name: base }\n- secretRef: { name: hidden }\n' +
    'env:\n- name: PORT\n  valueFrom: { configMapKeyRef: { name: base, key: port } }';

  test('include referenced ConfigMaps and Secrets, without the values of Secrets', () => {
    const { environment } = read({
      'k.yaml': deployment(FROM) + configMap('base', 'LOG_LEVEL: debug\nport: "99"') + SECRET,
    });
    expect({ ...environment.variables }).toEqual({ LOG_LEVEL: 'debug', port: '99', PORT: '99' });
    expect(environment.decide).toEqual([]);
    expect([...environment.unknown]).toEqual(['REDIS_AUTH']);
    expect(JSON.stringify(environment)).not.toContain('geheim');
  });

  test('from missing ConfigMaps do not count as unset', () => {
    const { environment } = read({ 'k.yaml': deployment(FROM) });
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
  ])('%s', (_name, text, because) => {
    const { pick } = read({ 'c.yaml': text });
    expect(pick).toMatchObject({ workload: { names: ['b'] }, because: expect.stringContaining(because) });
  });

  const TWINS = two('{ image: envoyproxy/ratelimit }', '{ image: envoyproxy/ratelimit }');
  test('must be given with --service if there are several candidates, or none', () => {
    expect(failure({ 'c.yaml': TWINS }).message).toMatch(
      /^several services may be the rate limit service; set --service to one of a \(service a in .*c\.yaml\), b /,
    );
    expect(read({ 'c.yaml': TWINS }, 'b').pick).toMatchObject({ workload: { names: ['b'] } });
    expect(failure({ 'c.yaml': TWINS }, 'c').message).toMatch(
      /^there is no service "c"; set --service to one of a \(/,
    );
    expect(failure({ 'c.yaml': two('{ image: a }', '{ image: b }') }).message).toMatch(
      /^the rate limit service cannot be detected by its image/,
    );
    expect(failure({ 'k.yaml': deployment('') }, 'limits').message).toMatch(
      /^there are several services with the name "limits"; .*deployment\/limits\/statsd/,
    );
    expect(read({ 'k.yaml': deployment('') }, 'deployment/limits/statsd').pick?.workload.image).toBe(
      'prom/statsd-exporter',
    );
  });
});

describe.each(['__proto__', 'constructor', 'toString'])('a variable called %s', (name) => {
  test.each<[string, Texts]>([
    ['a list of compose', { 'c.yaml': compose(`environment: [${name}=b]`) }],
    ['a mapping of compose', { 'c.yaml': compose(`environment: { ${name}: b }`) }],
    ['.env', { 'c.yaml': compose(`environment: [${name}]`), '.env': `${name}=b\n` }],
    ['a text', { 'c.yaml': compose(`environment: { ${name}: "$\x7b${name}:-b}" }`) }],
    ['an env file', { 'rl.env': `${name}=b\n` }],
    ['a container', { 'k.yaml': deployment(`env: [{ name: ${name}, value: b }]`) }],
  ])('in %s is found, and reported as unused', (_name, texts) => {
    const { variables, unknown } = read(texts).environment;
    expect(Object.entries(variables)).toContainEqual([name, 'b']);
    expect(Object.values(variables).every((value) => typeof value === 'string')).toBe(true);
    const { unused } = findInVariables(variables, unknown);
    expect(unused.map(({ about }) => about).join(', ')).toContain(name);
  });
});

test.each([
  ['compose, a list', 'healthcheck: { test: [CMD, curl, -f, "http://localhost:8080/healthcheck"] }', 'curl'],
  ['compose, a text', 'healthcheck: { test: "wget -q localhost:8080/healthcheck || exit 1" }', 'wget'],
  ['a probe', 'livenessProbe: { exec: { command: [grpc_health_probe] } }', 'grpc_health_probe'],
])('a health check that does not run in the image needs a decision: %s', (name, text, program) => {
  const file = name === 'a probe' ? deployment(text) : compose(text);
  const { decide = [] } = read({ 'f.yaml': file }).pick?.workload ?? {};
  expect(decide.map((finding) => finding.text)).toEqual([
    expect.stringMatching(new RegExp(`does not contain ${program}\\. Run \`weir health\` instead`)),
  ]);
});

describe('the location of the policies', () => {
  const POLICY =
    'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: second, requests_per_unit: 1 } }]';
  const asKey = (key: string): string => `${key}: |\n${POLICY.replace(/^/gm, '  ')}`;
  const locate = (texts: Texts) => {
    const { root, inputs, pick, environment } = read(texts);
    const { settings } = findInVariables(environment.variables, environment.unknown);
    return locatePolicies(root, inputs, pick?.workload.configMaps ?? [], settings);
  };
  const MAPS = configMap('limits', asKey('shop')) + configMap('other', asKey('other.yaml'));
  const volumes = (volume: string): string => `[{ name: v, ${volume} }]`;

  test.each([
    ['a ConfigMap', volumes('configMap: { name: limits }')],
    ['a projected one', volumes('projected: { sources: [{ configMap: { name: limits } }] }')],
  ])('the pod mounts %s, so other ConfigMaps do not count', (_name, list) => {
    const found = locate({ 'k.yaml': deployment('', list), 'm.yaml': MAPS });
    const names = found.kind === 'parts' ? found.parts.map(({ name }) => name.replace(/^.*\//, '')) : [];
    expect(names).toEqual(['m.yaml ConfigMap limits', 'm.yaml data["shop"]']);
  });

  test('ConfigMaps alone', () => {
    const found = locate({ 'm.yaml': MAPS });
    expect(found.kind === 'parts' && found.parts).toHaveLength(4);
  });

  test('a policy file counts instead of the management server', () => {
    const file = { 'shop.yaml': POLICY };
    expect(locate(file)).toMatchObject({ kind: 'files', places: [expect.stringMatching(/shop\.yaml$/)] });
    const xds = { 'c.yaml': compose('environment: [CONFIG_TYPE=GRPC_XDS_SOTW]') };
    expect(locate(xds)).toEqual({ kind: 'management-server' });
    expect(locate({ ...xds, ...file })).toMatchObject({ kind: 'files' });
  });

  test.each([
    ['RUNTIME_ROOT: /data, RUNTIME_SUBDIRECTORY: ratelimit', '"/data/ratelimit/config" and from files next'],
    ['RUNTIME_ROOT: /data, RUNTIME_WATCH_ROOT: "false"', '"/data/config"; also pass'],
    ['CONFIG_PATH: /policies', '"/policies"; also pass'],
    ['PORT: 1', '"/srv/runtime_data/current/config" and from files next'],
  ])('the message for missing policies names their place: %s', (variables, text) => {
    const found = locate({
      'c.yaml': compose(`environment: { ${variables} }\nvolumes: ["./config:/data/ratelimit/config"]`),
    });
    expect(found).toMatchObject({ kind: 'not-found', text: expect.stringContaining(text) });
  });
});

test.each<[string, Texts, RegExp]>([
  ['nothing that is known', { 'a.yaml': 'a: b\n' }, /a\.yaml" has an unknown format; pass a compose file, /],
  ['an empty file', { 'a.yaml': '# nothing\n' }, /a\.yaml" is empty$/],
  ['no YAML', { 'a.yaml': 'services: [\n' }, /a\.yaml:1:11: this is not valid YAML/],
  ['a template', { 'a.yaml': 'a: {{ .Values.a }}\n' }, /a\.yaml" is a template of a Helm chart; /],
  [
    'Envoy Gateway',
    { 'g.yaml': 'apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: EnvoyGateway\n' },
    /pass the Deployment that Envoy Gateway creates/,
  ],
])('an error message for %s', (_name, texts, message) => {
  const error = failure(texts);
  expect([error.message, error.code]).toEqual([expect.stringMatching(message), EXIT.FAILED]);
});

test.each([
  ['Limitador', 'apiVersion: limitador.kuadrant.io/v1alpha1\nkind: Limitador\nspec: { limits: [] }\n'],
  ['Emissary', 'apiVersion: getambassador.io/v3alpha1\nkind: RateLimit\nspec: { domain: a, limits: [] }\n'],
  ['Gloo', 'apiVersion: ratelimit.solo.io/v1alpha1\nkind: RateLimitConfig\nspec: { raw: {} }\n'],
])('limits of %s are rejected: %s', (product, text) => {
  const error = failure({ 'a.yaml': text });
  expect(error.message).toContain(
    `contains limits of ${product}, and weir migrate does not convert these limits`,
  );
  expect(error.code).toBe(EXIT.USAGE);
});

test('a directory with a compose file does not count as a policy directory', () => {
  const place = folderOf({ 'compose.yaml': compose('') });
  expect(() => readInstallation([place], [], undefined)).toThrow(/contains the compose file compose\.yaml/);
});
