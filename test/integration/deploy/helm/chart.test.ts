/*
 * Renders the Helm chart with the real helm: golden files, schemas, values that it refuses, and its documented
 * behaviour.
 */
import { cpSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import Ajv from 'ajv';
import { stringify } from 'yaml';
import { readSettings } from '../../../../src/server/settings/read-settings.js';
import {
  CHART,
  GOLDEN,
  goldenFile,
  helm,
  type Manifest,
  objectsOf,
  type Rendered,
  render,
  renderAll,
  template,
  valueSets,
  valuesFile,
} from '../../../support/helm/chart.js';
import { FLOWS } from '../../../support/kubernetes/flows.js';
import { allows, flowText } from '../../../support/kubernetes/network-policy.js';
import { runToEnd } from '../../../support/process/processes.js';
import { TempDir } from '../../../support/process/temp-dir.js';
import { optionalToolPath, repositoryRoot, toolPath } from '../../../support/process/tools.js';
import { WEIR_MAIN } from '../../../support/weir/weir.js';

const read = (path: string) => readFileSync(join(repositoryRoot, path), 'utf8');
const folder = new TempDir();

let files = 0;
/** Renders the chart with values of a test. */
function templateWith(values: object, chart = CHART): Promise<Rendered> {
  files += 1;
  return template(['--values', folder.write(`values-${files}.yaml`, stringify(values))], chart);
}

async function objectsWith(values: object, chart = CHART): Promise<Manifest[]> {
  const { code, stdout, stderr } = await templateWith(values, chart);
  if (code !== 0) throw new Error(stderr);
  return objectsOf(stdout);
}

const ofKind = (objects: readonly Manifest[], kind: string): Manifest =>
  objects.find((object) => object.kind === kind);
const containerOf = (objects: readonly Manifest[]): Manifest =>
  ofKind(objects, 'Deployment').spec.template.spec.containers[0];

(optionalToolPath('helm') === undefined ? describe.skip : describe)('the Helm chart', () => {
  describe.each(valueSets())('with values/%s.yaml', (name) => {
    test('passes helm lint', async () => {
      const { code, stdout } = await helm('lint', '--strict', CHART, '--values', valuesFile(name));
      expect({ code, stdout }).toEqual({ code: 0, stdout: expect.not.stringContaining('[WARNING]') });
    });

    test('sets variables that weir accepts', async () => {
      const { env } = containerOf(objectsOf(await renderAll(name)));
      const variables = (env as Manifest[]).map(({ name: variable, value = 'redis:6379' }) => [
        variable,
        value,
      ]);
      expect(new Set(variables.map(([variable]) => variable)).size).toBe(variables.length);
      expect(readSettings(Object.fromEntries(variables))).toMatchObject({ ok: true, notes: [] });
    });
  });

  test.each(GOLDEN)('matches golden/ with values/%s.yaml, which npm run docs:chart writes', async (name) => {
    expect(await render(name)).toBe(readFileSync(goldenFile(name), 'utf8'));
  });

  test('its objects follow the schemas of Kubernetes and of the Prometheus Operator', async () => {
    const objects = (await Promise.all(valueSets().map(renderAll))).flatMap(objectsOf);
    const monitors = objects.filter(({ kind }) => kind === 'PodMonitor');
    const alerts = objects.filter(({ kind }) => kind === 'PrometheusRule');
    const others = objects.filter((object) => ![...monitors, ...alerts].includes(object));
    const path = folder.write('objects.yaml', others.map((object) => stringify(object)).join('---\n'));
    const { code, stdout, stderr } = await runToEnd(toolPath('kubernetes-validate'), ['--strict', path]);
    expect({ code, output: stdout + stderr }).toMatchObject({ code: 0 });
    expect((stdout + stderr).match(/ passed for resource /g)).toHaveLength(others.length);

    const schema = JSON.parse(read('test/integration/deploy/helm/pod-monitor.schema.json'));
    const validate = new Ajv({ allErrors: true }).compile(schema);
    expect(monitors).toHaveLength(1);
    validate(monitors[0]);
    expect(validate.errors).toBeNull();
    expect(validate({ ...monitors[0], spec: { ...monitors[0].spec, podMetricEndpoints: [] } })).toBe(false);

    const rules = JSON.parse(read('test/integration/deploy/helm/prometheus-rule.schema.json'));
    const validateRules = new Ajv({ allErrors: true }).compile(rules);
    const [alert] = (await objectsWith({ metrics: { prometheusRule: { enabled: true } } })).filter(
      ({ kind }) => kind === 'PrometheusRule',
    );
    validateRules(alert);
    expect(validateRules.errors).toBeNull();
    expect(validateRules({ ...alert, spec: { group: [] } })).toBe(false);
  });

  test('accepts names that YAML would read as numbers, such as hashes of commits', async () => {
    const values = {
      nameOverride: '1e3',
      fullnameOverride: '007',
      priorityClassName: '1',
      serviceAccount: { create: false, name: 'true' },
      policies: { existingConfigMap: '12' },
      tls: { existingSecret: '34' },
      autoscaling: { enabled: true },
      podDisruptionBudget: { enabled: true },
      networkPolicy: { enabled: true },
      metrics: { podMonitor: { enabled: true } },
      redis: { url: { existingSecret: '56', key: '7' }, auth: { existingSecret: '89', key: '0' } },
    };
    const file = folder.write('numbers.yaml', stringify(values));
    const { stdout } = await helm('template', '1234567', CHART, '--namespace', '42', '--values', file);
    const [name, instance] = ['app.kubernetes.io/name', 'app.kubernetes.io/instance'];
    const objects = objectsOf(stdout);
    for (const { kind, metadata } of objects) {
      const { labels } = metadata;
      expect([kind, metadata.namespace, labels[name], labels[instance]]).toEqual([
        kind,
        '42',
        '1e3',
        '1234567',
      ]);
    }
    const deployment = ofKind(objects, 'Deployment');
    expect(ofKind(objects, 'HorizontalPodAutoscaler').spec.scaleTargetRef.name).toBe('007');
    expect(deployment.metadata.name).toBe('007');
    const { spec } = deployment.spec.template;
    expect([spec.priorityClassName, spec.serviceAccountName]).toEqual(['1', 'true']);
    expect(JSON.stringify([spec, deployment.spec.selector])).not.toMatch(/:(?:1234567|12|34|56|89)[,}]/);
  });

  test('has the version of the package', () => {
    const { version } = JSON.parse(read('package.json'));
    expect(objectsOf(read('deploy/helm/weir/Chart.yaml'))[0]).toMatchObject({ version, appVersion: version });
  });

  test('renders the manifests of deploy/kubernetes', async () => {
    const ours = await objectsWith({
      settings: { REDIS_URL: 'redis://redis:6379' },
      autoscaling: { enabled: true },
      podDisruptionBudget: { enabled: true },
      policies: { existingConfigMap: 'weir-policies' },
      extraEnv: [
        {
          name: 'REDIS_AUTH',
          valueFrom: { secretKeyRef: { name: 'redis-login', key: 'redis-password' } },
        },
      ],
    });
    const theirs = objectsOf(read('deploy/kubernetes/weir.yaml'));
    const [our, their] = [containerOf(ours), containerOf(theirs)];
    for (const field of ['image', 'ports', 'readinessProbe', 'livenessProbe', 'resources', 'securityContext'])
      expect([field, our[field]]).toEqual([field, their[field]]);
    expect(our.volumeMounts).toEqual(their.volumeMounts);
    const byName = ({ env }: Manifest) =>
      Object.fromEntries(env.map(({ name, value, valueFrom }: Manifest) => [name, value ?? valueFrom]));
    expect(byName(our)).toEqual(byName(their));
    const pod = (objects: readonly Manifest[]) => ofKind(objects, 'Deployment').spec.template.spec;
    expect(pod(ours).securityContext).toEqual({ ...pod(theirs).securityContext, fsGroup: 1000 });
    for (const field of ['volumes', 'terminationGracePeriodSeconds', 'automountServiceAccountToken'])
      expect([field, pod(ours)[field]]).toEqual([field, pod(theirs)[field]]);
    expect(ofKind(ours, 'Deployment').spec.strategy).toEqual(ofKind(theirs, 'Deployment').spec.strategy);
    const scaler = 'HorizontalPodAutoscaler';
    expect(ofKind(ours, scaler).spec).toEqual(ofKind(theirs, scaler).spec);
    expect(ofKind(ours, 'PodDisruptionBudget').spec.maxUnavailable).toBe(1);
  });

  test('with QuotaPolicies, weir gets its policies from Envoy AI Gateway, whose proxies may call it', async () => {
    const objects = await objectsWith({ aiGateway: { quotaPolicies: true } });
    const service = objects.find(({ metadata }) => metadata.name === 'envoy-ai-gateway-ratelimit');
    expect(service?.spec).toMatchObject({ clusterIP: 'None', ports: [{ port: 8081 }] });
    const { env } = containerOf(objects);
    expect(env).toEqual(
      expect.arrayContaining([
        { name: 'CONFIG_TYPE', value: 'GRPC_XDS_SOTW' },
        { name: 'CONFIG_GRPC_XDS_NODE_ID', value: 'envoy-ai-gateway-ratelimit' },
        {
          name: 'CONFIG_GRPC_XDS_SERVER_URL',
          value: 'ai-gateway-controller.envoy-ai-gateway-system.svc.cluster.local:18002',
        },
      ]),
    );
    const { spec } = ofKind(objects, 'NetworkPolicy');
    const labels = {
      'app.kubernetes.io/managed-by': 'envoy-gateway',
      'app.kubernetes.io/component': 'proxy',
    };
    expect(allows(spec, { direction: 'in', labels, namespace: 'envoy-gateway-system', port: 8081 })).toBe(
      true,
    );
    expect(allows(spec, { direction: 'out', namespace: 'envoy-ai-gateway-system', port: 18_002 })).toBe(true);
  });

  test('ships a policy with its table of plans', async () => {
    const table = 'tenant,plan\nacme,gold\n';
    const objects = await objectsWith({
      policies: { files: { 'shop.yaml': { domain: 'shop' }, 'customers.csv': table } },
      settings: { LOG_LEVEL: 'DEBUG' },
    });
    expect(ofKind(objects, 'ConfigMap').data).toEqual({
      'shop.yaml': 'domain: shop',
      'customers.csv': table,
    });
  });

  test('the example of its README ships a table from a file, which weir reads in what the chart renders', async () => {
    const page = read('deploy/helm/weir/README.md');
    const [, values = ''] = /```yaml\n# file: values.yaml\n(.*?)```/s.exec(page) ?? [];
    const [command = ''] = /^helm template (?:.*\\\n)*.*/m.exec(page) ?? [];
    const shipped = new TempDir();
    shipped.write('values.yaml', values);
    // As spreadsheets save it on Windows.
    shipped.write('customers.csv', '\ufeffcustomer,plan\r\nacme,gold\r\n"globex, inc",gold\r\n');
    const helmCommand = command.replace(/^helm/, toolPath('helm')).replace('deploy/helm/weir', CHART);
    const rendered = await runToEnd('sh', ['-c', helmCommand], { cwd: shipped.path, bareEnvironment: true });
    expect(rendered).toMatchObject({ code: 0 });
    const weir = (...args: readonly string[]) =>
      runToEnd(process.execPath, [WEIR_MAIN, ...args], { cwd: shipped.path });
    expect(await weir('check-config', 'manifest.yaml')).toMatchObject({ code: 0, stderr: '' });
    const calls = async (customer: string) =>
      (await weir('explain', 'manifest.yaml', `customer=${customer}`)).stdout.match(
        /window: \d+ per minute/,
      )?.[0];
    expect(await calls('globex, inc')).toBe('window: 600 per minute');
    expect(await calls('initech')).toBe('window: 100 per minute');
  });

  test.each(['tsv', 'json', 'jsonl', 'ndjson'])('ships tables in .%s files', async (ending) => {
    const files = { [`customers.${ending}`]: 'text\twith tabs\n' };
    expect(ofKind(await objectsWith({ policies: { files } }), 'ConfigMap').data).toEqual(files);
  });

  describe('refuses', () => {
    const redis = { settings: { REDIS_URL: 'redis:6379' } };
    test.each<[what: string, values: object, said: string | RegExp]>([
      ['a misspelt variable', { settings: { REDIS_ULR: 'redis:6379' } }, /settings.*REDIS_ULR.* not allowed/],
      ['a misspelt value', { replicas: 2 }, /dditional propert.*replicas.* not allowed/],
      ['a misspelt value further down', { policies: { file: {} } }, /policies.*file.* not allowed/],
      [
        'a value that weir would refuse',
        { settings: { WORKERS: 0 } },
        /settings.WORKERS.*: (minimum:|Must be greater than or equal to 1)/,
      ],
      [
        'a word that weir would refuse',
        { settings: { LOG_LEVEL: 'loud' } },
        /settings.LOG_LEVEL.*(pattern|match)/,
      ],
      [
        'a table that is not text',
        { policies: { files: { 'customers.csv': { acme: 'gold' } } } },
        /policies.files.*customers.csv/,
      ],
      [
        'a policy that is no YAML file',
        { policies: { files: { shop: 'x' } } },
        /invalid propertyName 'shop'|Property name of "shop" does not match/,
      ],
      [
        'QuotaPolicies next to policies in files',
        { aiGateway: { quotaPolicies: true }, policies: { existingConfigMap: 'p' } },
        'policies.existingConfigMap: aiGateway.quotaPolicies is true, so policies come from a management server',
      ],
      [
        'QuotaPolicies on another port',
        { aiGateway: { quotaPolicies: true }, settings: { GRPC_PORT: 9000 } },
        'aiGateway.quotaPolicies: Envoy AI Gateway always calls port 8081; remove settings.GRPC_PORT',
      ],
      [
        'QuotaPolicies over TLS',
        { aiGateway: { quotaPolicies: true }, tls: { existingSecret: 't' } },
        'aiGateway.quotaPolicies: Envoy AI Gateway calls the gRPC port in plain text; turn TLS off',
      ],
      [
        'replicas without Redis',
        { replicaCount: 2 },
        'replicaCount: without Redis each replica would hand out full buckets of its own; set ' +
          'settings.REDIS_URL or redis.url.existingSecret, or run one replica',
      ],
      ['autoscaling without Redis', { autoscaling: { enabled: true } }, 'autoscaling.enabled: without Redis'],
      [
        'a least number of replicas above the most',
        { ...redis, autoscaling: { minReplicas: 11 } },
        'autoscaling.minReplicas: it is more than autoscaling.maxReplicas',
      ],
      [
        'two sources of policies',
        { policies: { files: { 'a.yaml': 'x' }, existingConfigMap: 'b' } },
        'policies.files, policies.existingConfigMap: each of them says where the policies are; set one of them',
      ],
      [
        'CONFIG_PATH beside policies',
        { policies: { existingConfigMap: 'b' }, settings: { CONFIG_PATH: '/policies' } },
        'policies.existingConfigMap, settings.CONFIG_PATH: each of them',
      ],
      [
        'files where policies come over xDS',
        { policies: { files: { 'a.yaml': 'x' } }, settings: { CONFIG_TYPE: 'GRPC_XDS_SOTW' } },
        'policies.files: settings.CONFIG_TYPE is GRPC_XDS_SOTW',
      ],
      [
        'a password in settings',
        { settings: { ...redis.settings, REDIS_AUTH: 'swordfish' } },
        'settings.REDIS_AUTH: everyone who may read the Deployment could read it; put the password into a ' +
          'Secret and name that in redis.auth.existingSecret',
      ],
      [
        'a password of the Sentinels in settings',
        { settings: { ...redis.settings, REDIS_SENTINEL_AUTH: 'swordfish' } },
        'settings.REDIS_SENTINEL_AUTH: everyone who may read the Deployment could read it; put the password ' +
          'into a Secret and name that in redis.sentinelAuth.existingSecret',
      ],
      [
        'passwords of the second Redis in settings',
        { settings: { REDIS_PERSECOND_SENTINEL_AUTH: 'swordfish' } },
        'settings.REDIS_PERSECOND_SENTINEL_AUTH: everyone who may read the Deployment could read it; put the ' +
          'password into a Secret and refer to that in extraEnv (valueFrom.secretKeyRef)',
      ],
      [
        'a password of the Sentinels twice',
        {
          redis: { sentinelAuth: { existingSecret: 'sentinels' } },
          extraEnv: [{ name: 'REDIS_SENTINEL_AUTH', value: 'swordfish' }],
        },
        'extraEnv: the chart sets REDIS_SENTINEL_AUTH already, from settings or another value; remove one of them',
      ],
      [
        'a password in an address',
        { settings: { REDIS_URL: 'redis://:swordfish@redis:6379' } },
        'settings.REDIS_URL: it holds a password',
      ],
      [
        'two addresses of Redis',
        { ...redis, redis: { url: { existingSecret: 'address' } } },
        'settings.REDIS_URL: redis.url.existingSecret holds the address, too; set one of them',
      ],
      [
        'a setting that a Secret sets',
        { settings: { GRPC_SERVER_TLS_CERT: '/cert' }, tls: { existingSecret: 'tls' } },
        'settings.GRPC_SERVER_TLS_CERT: the chart sets it because of tls.existingSecret; remove one of them',
      ],
      [
        'a setting that the Secret of the debug port sets',
        { settings: { DEBUG_SERVER_TLS_KEY: '/key' }, debug: { tls: { existingSecret: 'tls' } } },
        'settings.DEBUG_SERVER_TLS_KEY: the chart sets it because of debug.tls.existingSecret; remove one of them',
      ],
      [
        'tokens from two places',
        { settings: { ADMIN_TOKENS_FILE: '/t' }, debug: { tokens: { existingSecret: 'tokens' } } },
        'settings.ADMIN_TOKENS_FILE: the chart sets it because of debug.tokens.existingSecret; remove one of them',
      ],
      [
        'operators whom the debug port does not hear',
        { settings: { DEBUG_HOST: '127.0.0.1' }, networkPolicy: { operators: [{ podSelector: {} }] } },
        "networkPolicy.operators: settings.DEBUG_HOST keeps the debug port on the pod's loopback",
      ],
      [
        'a variable twice',
        { extraEnv: [{ name: 'LOG_FORMAT', value: 'text' }] },
        'extraEnv: the chart sets LOG_FORMAT already, from settings or another value; remove one of them',
      ],
      [
        'a socket',
        { settings: { GRPC_UDS: '/run/weir' } },
        "settings.GRPC_UDS: the chart's Services need a port",
      ],
      [
        'no port',
        { settings: { GRPC_PORT: 0 } },
        'settings.GRPC_PORT: 0 is no port that a Service can point to; write a number from 1 to 65535',
      ],
      [
        'a pod that is killed while it drains',
        {
          settings: { SHUTDOWN_DRAIN_DELAY: '1m', SHUTDOWN_GRACE: '1500ms' },
          terminationGracePeriodSeconds: 61,
        },
        'terminationGracePeriodSeconds: SHUTDOWN_DRAIN_DELAY (1m) and SHUTDOWN_GRACE (1500ms) may take as long',
      ],
      [
        'a disruption budget with both bounds',
        { podDisruptionBudget: { enabled: true, minAvailable: 1 } },
        'podDisruptionBudget: Kubernetes takes minAvailable or maxUnavailable; set the other one to null',
      ],
      [
        'a disruption budget with neither',
        { podDisruptionBudget: { enabled: true, maxUnavailable: null } },
        'podDisruptionBudget: neither minAvailable nor maxUnavailable is set; set one of them',
      ],
    ])('%s', async (_what, values, said) => {
      const { code, stdout, stderr } = await templateWith(values);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(said);
      expect(stderr).not.toContain('swordfish');
    });

    test('several mistakes at once, with one line each', async () => {
      const { stderr } = await templateWith({ replicaCount: 2, settings: { GRPC_UDS: '/run/weir' } });
      expect(stderr).toMatch(/\n {2}replicaCount: .*\n {2}settings\.GRPC_UDS: /);
    });
  });

  test('sets a termination grace period that matches the drain', async () => {
    const settings = { SHUTDOWN_DRAIN_DELAY: '1m', SHUTDOWN_GRACE: '1500ms' };
    expect(await templateWith({ settings, terminationGracePeriodSeconds: 62 })).toMatchObject({ code: 0 });
  });

  describe('the network policy', () => {
    let spec: Manifest;
    test('is rendered unless it is disabled', async () => {
      expect(ofKind(await objectsWith({}), 'NetworkPolicy')).toBeDefined();
      expect(
        ofKind(await objectsWith({ networkPolicy: { enabled: false } }), 'NetworkPolicy'),
      ).toBeUndefined();
      const objects = await objectsWith({
        settings: {
          REDIS_URL: 'redis',
          CONFIG_TYPE: 'GRPC_XDS_SOTW',
          USE_STATSD: true,
          USE_DOG_STATSD: 'True',
        },
        networkPolicy: {
          redis: { to: [{ podSelector: { matchLabels: { 'app.kubernetes.io/name': 'redis' } } }] },
          istio: { enabled: true },
        },
      });
      ({ spec } = ofKind(objects, 'NetworkPolicy'));
    });

    test.each(
      FLOWS.map(([isAllowed, flow]) => [isAllowed ? 'allows' : 'denies', flowText(flow), flow] as const),
    )('%s %s', (verdict, _text, flow) => {
      expect(allows(spec, flow)).toBe(verdict === 'allows');
    });
  });

  test('the HTTP port can be closed to all clients, and opened to callers of /json', async () => {
    const ingressWith = async (networkPolicy: object, settings: object = {}) =>
      ofKind(await objectsWith({ networkPolicy, settings }), 'NetworkPolicy').spec;
    const envoy = { labels: { 'weir-client': 'true' }, namespace: 'gateway' } as const;
    const [scraper, ours] = [{ namespace: 'monitoring' }, { labels: { app: 'batch' } }] as const;
    const json = { direction: 'in', port: 8080 } as const;
    const closed = await ingressWith({ scrapers: [] });
    for (const peer of [envoy, scraper, ours]) expect(allows(closed, { ...json, ...peer })).toBe(false);
    expect(allows(closed, { ...envoy, direction: 'in', port: 8081 })).toBe(true);
    // An empty list allows no client, instead of all clients.
    expect(allows(await ingressWith({ clients: [] }), { ...envoy, direction: 'in', port: 8081 })).toBe(false);
    const opened = await ingressWith({ httpClients: [{ podSelector: { matchLabels: { app: 'batch' } } }] });
    for (const peer of [scraper, ours]) expect(allows(opened, { ...json, ...peer })).toBe(true);
    expect(allows(opened, { ...json, ...envoy })).toBe(false);
    const metrics = await ingressWith({}, { USE_PROMETHEUS: true, PROMETHEUS_ADDR: '0.0.0.0:9102' });
    expect(allows(metrics, { ...scraper, direction: 'in', port: 9102 })).toBe(true);
    expect(allows(metrics, { ...envoy, direction: 'in', port: 9102 })).toBe(false);
    // A port without a number would mean every port.
    const named = await ingressWith({}, { USE_PROMETHEUS: true, PROMETHEUS_ADDR: '0.0.0.0:http' });
    expect(allows(named, { ...scraper, direction: 'in', port: 6070 })).toBe(false);
  });

  test.each<[name: string, collector: object, ports: readonly number[]]>([
    ['an address', { value: 'http://collector.tracing:4318' }, [4318]],
    ['an address of IPv6 with a path', { value: 'http://[fd00::1]:4000/v1' }, [4000]],
    ['an address without a port', { value: 'https://collector.example.com' }, [443]],
    ['a Secret', { valueFrom: { secretKeyRef: { name: 'a', key: 'b' } } }, [4317, 4318]],
  ])('the network policy lets weir reach a collector of traces: %s', async (_name, collector, ports) => {
    const extraEnv = [{ name: 'OTEL_EXPORTER_OTLP_ENDPOINT', ...collector }];
    const egressWith = async (settings: object) =>
      ofKind(await objectsWith({ extraEnv, settings }), 'NetworkPolicy').spec.egress.slice(1);
    expect(await egressWith({})).toEqual([]);
    const rule = { ports: ports.map((port) => ({ protocol: 'TCP', port })) };
    expect(await egressWith({ TRACING_ENABLED: true })).toEqual([rule]);
  });

  test.each<[what: string, values: object, ports: readonly number[]]>([
    ['one Redis', { settings: { REDIS_URL: 'rediss://redis.data:6380/2' } }, [6380]],
    [
      'Sentinels, some without a port',
      { settings: { REDIS_TYPE: 'Sentinel', REDIS_URL: 'mymaster,a.redis:26380, [fd00::1],b.redis' } },
      [26380, 26379, 6379],
    ],
    [
      'nodes of a cluster, some without a port',
      {
        settings: { REDIS_TYPE: 'Cluster', REDIS_URL: 'a.redis:7000, [fd00::1],b.redis:7001, c.redis:7000' },
      },
      [7000, 6379, 7001],
    ],
    [
      'a cluster that a Secret names',
      { settings: { REDIS_TYPE: 'CLUSTER' }, redis: { url: { existingSecret: 'address' } } },
      [6379],
    ],
    [
      'Sentinels that a Secret names',
      { settings: { REDIS_TYPE: 'SENTINEL' }, redis: { url: { existingSecret: 'address' } } },
      [26379, 6379],
    ],
    [
      'Sentinels for windows of a second, and another port of Redis',
      {
        settings: {
          REDIS_URL: 'redis:6390',
          REDIS_PERSECOND: true,
          REDIS_PERSECOND_TYPE: 'sentinel',
          REDIS_PERSECOND_URL: 'second,a:5000',
        },
        networkPolicy: { redis: { ports: [7000] } },
      },
      [6390, 5000, 6379, 7000],
    ],
  ])('the network policy lets weir reach %s', async (_what, values, ports) => {
    const objects = await objectsWith(values);
    const { egress } = ofKind(objects, 'NetworkPolicy').spec;
    // The first rule is for DNS.
    expect(egress.slice(1)).toEqual([{ ports: ports.map((port) => ({ protocol: 'TCP', port })) }]);
  });

  test.each(['deploy/README.md', 'deploy/helm/weir/README.md'])(
    'the commands and values of %s',
    async (page) => {
      const text = read(page);
      const [command = ''] = /^helm install (?:.*\\\n)*.*/m.exec(text) ?? [];
      expect(command).toContain('deploy/helm/weir');
      const here = command.replace(' install ', ' template ').replace('deploy/helm/weir', () => `'${CHART}'`);
      const script = here.replace(/^helm/, () => `'${toolPath('helm')}'`);
      folder.write('shop.yaml', 'domain: shop\n');
      const { code, stdout, stderr } = await runToEnd('sh', ['-c', script], { cwd: folder.path });
      expect({ code, stderr }).toMatchObject({ code: 0 });
      expect(ofKind(objectsOf(stdout), 'Deployment').spec.replicas).toBe(2);
      for (const [, values = ''] of text.matchAll(/^```yaml\n(settings:\n.*?)^```/gms))
        expect(await templateWith(objectsOf(values)[0])).toMatchObject({ code: 0 });
    },
  );

  test('passes policies to weir unchanged', async () => {
    const texts = {
      'a.yaml': '\n  # indented, and with {{ braces }}\n  domain: a\n',
      'b.yml': read('deploy/policies/open-api.yaml'),
    };
    expect(ofKind(await objectsWith({ policies: { files: texts } }), 'ConfigMap').data).toEqual(texts);
  });

  test('renders a ConfigMap for each dashboard, and none without dashboards', async () => {
    const values = { dashboards: { enabled: true, annotations: { grafana_folder: 'edge' } } };
    const chart = folder.join('chart');
    cpSync(CHART, chart, { recursive: true, filter: (path) => path !== join(CHART, 'dashboards') });
    expect(ofKind(await objectsWith(values, chart), 'ConfigMap')).toBeUndefined();
    const dashboard = '{\n  "title": "weir",\n  "legend": "{{ rule }} {{.Values}}"\n}\n';
    for (const name of ['Weir_Overview.json', 'redis.json'])
      folder.write(join('chart/dashboards', name), dashboard);
    const maps = (await objectsWith(values, chart)).filter(({ kind }) => kind === 'ConfigMap');
    expect(maps).toMatchObject([
      {
        metadata: {
          name: 'weir-dashboard-weir-overview',
          labels: { grafana_dashboard: '1' },
          annotations: { grafana_folder: 'edge' },
        },
        data: { 'Weir_Overview.json': dashboard },
      },
      { metadata: { name: 'weir-dashboard-redis' }, data: { 'redis.json': dashboard } },
    ]);
  });

  test('contains the dashboards of deploy/grafana, and the alerts of deploy/prometheus', async () => {
    for (const [name, folder] of [
      ['dashboards', 'deploy/grafana'],
      ['prometheus', 'deploy/prometheus'],
    ] as const)
      expect(realpathSync(join(CHART, name))).toBe(realpathSync(join(repositoryRoot, folder)));
    const objects = await objectsWith({
      dashboards: { enabled: true },
      metrics: { prometheusRule: { enabled: true } },
    });
    expect(ofKind(objects, 'ConfigMap').data).toEqual({ 'weir.json': read('deploy/grafana/weir.json') });
    expect(ofKind(objects, 'PrometheusRule').spec).toEqual(
      objectsOf(read('deploy/prometheus/rules.yaml'))[0],
    );
  });

  test('links alerts to their page if the address of the manual is set', async () => {
    const rulesWith = async (prometheusRule: object) => {
      const objects = await objectsWith({
        metrics: { prometheusRule: { enabled: true, ...prometheusRule } },
      });
      const { groups } = ofKind(objects, 'PrometheusRule').spec as { groups: { rules: Manifest[] }[] };
      return groups.flatMap(({ rules }) => rules);
    };
    const without = await rulesWith({});
    const withUrl = await rulesWith({ manualUrl: 'https://example.com/weir' });
    expect(withUrl).toEqual(
      without.map((rule) => ({
        ...rule,
        annotations: {
          ...rule.annotations,
          runbook_url: `https://example.com/weir/${rule.annotations.runbook}`,
        },
      })),
    );
  });

  test.each([
    ['defaults', ['weir-pods.limits.svc:8081', 'in the memory of the one replica', 'bundled with it']],
    ['redis', ['Only pods that networkPolicy.clients selects', 'in Redis', 'ConfigMap weir-policies']],
    ['xds', ['weir-decisions-pods.limits.svc:8081', 'management server policies.control-plane.svc:18001.']],
  ])('notes after an installation with values/%s.yaml', async (name, said) => {
    // Only an installation prints the notes, and needs a cluster.
    const chart = folder.join(`notes-${name}`);
    cpSync(CHART, chart, { recursive: true });
    const notes = read('deploy/helm/weir/templates/NOTES.txt');
    folder.write(`notes-${name}/templates/_notes.tpl`, `{{ define "notes" }}${notes}{{ end }}`);
    folder.write(`notes-${name}/templates/notes.yaml`, 'notes: {{ include "notes" . | quote }}\n');
    const { stdout } = await template(['--values', valuesFile(name)], chart);
    const shown = objectsOf(stdout).find((object) => 'notes' in object).notes;
    for (const text of said) expect(shown).toContain(text);
  });
});
