import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import Ajv from 'ajv';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { withChanges } from '../../support/envoy/envoy.js';
import { FLOWS } from '../../support/kubernetes/flows.js';
import { allows, flowText } from '../../support/kubernetes/network-policy.js';
import { freePorts } from '../../support/process/free-port.js';
import { runToEnd, startProcess } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { repositoryRoot, toolPath } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';
import { acceptsConnections } from '../../support/redis/accepts-connections.js';
import { redisCommand } from '../../support/redis/redis-command.js';
import { WEIR_MAIN } from '../../support/weir/weir.js';

const FOLDER = join(repositoryRoot, 'deploy/kubernetes');
const OTHERS = ['../envoy-gateway/envoy-gateway.yaml', '../from-ratelimit/kubernetes.yaml'];
const MONITOR = 'monitoring/podmonitor.yaml';
const files = [...readdirSync(FOLDER).filter((name) => name.endsWith('.yaml')), ...OTHERS];
const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8');

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const manifests = (name: string) =>
  parseAllDocuments(read(name)).map((document) => document.toJS() as Manifest);

/** Returns one object of a file, untyped: a test that reads a missing field fails. */
function manifest(kind: string, name = 'weir', file = 'weir.yaml') {
  const found = manifests(file).find((one) => one.kind === kind && one.metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name} in ${file}`);
  return JSON.parse(JSON.stringify(found));
}

describe('the Kubernetes manifests', () => {
  test.each(files)('%s follows the Kubernetes schemas', async (name) => {
    const { code, stdout, stderr } = await runToEnd(toolPath('kubernetes-validate'), [
      '--strict',
      join(FOLDER, name),
    ]);
    expect({ code, output: stdout + stderr }).toMatchObject({ code: 0 });
    expect((stdout + stderr).match(/ passed for resource /g)).toHaveLength(manifests(name).length);
  });

  test('validation detects a field that does not exist', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-kubernetes-'));
    const path = join(folder, 'weir.yaml');
    writeFileSync(path, withChanges(read('weir.yaml'), [['readinessProbe:', 'readyProbe:']]));
    const { code } = await runToEnd(toolPath('kubernetes-validate'), ['--strict', path]);
    rmSync(folder, { recursive: true });
    expect(code).not.toBe(0);
  });

  test('contain the bundled policy unchanged', () => {
    const { data } = parse(read('policies.yaml')) as { data: Record<string, string> };
    expect(data['open-api.yaml']).toBe(
      readFileSync(join(repositoryRoot, 'deploy/policies/open-api.yaml'), 'utf8'),
    );
  });

  test('the ConfigMap can hold a table of plans beside its policy, which weir reads', async () => {
    const map = manifest('ConfigMap', 'weir-policies', 'policies.yaml');
    map.data = {
      'shop.yaml': stringify({
        domain: 'shop',
        plans: { by: 'customer', from: 'customers.csv', define: { gold: { calls: 600 } } },
        descriptors: [
          {
            key: 'customer',
            rate_limit: { unit: 'minute', requests_per_unit: { plan: 'calls', default: 100 } },
          },
        ],
      }),
      'customers.csv': 'customer,plan\nacme,gold\n',
    };
    const folder = new TempDir();
    folder.write('policies.yaml', stringify(map));
    const explain = ['explain', 'policies.yaml', 'customer=acme'];
    const { stdout } = await runToEnd(process.execPath, [WEIR_MAIN, ...explain], { cwd: folder.path });
    expect(stdout).toContain('window: 600 per minute');
  });

  test('contain every object of weir', () => {
    expect(manifests('weir.yaml').map(({ kind, metadata }) => `${kind}/${metadata.name}`)).toEqual([
      'ServiceAccount/weir',
      'Service/weir',
      'Service/weir-pods',
      'Deployment/weir',
      'PodDisruptionBudget/weir',
      'HorizontalPodAutoscaler/weir',
      'NetworkPolicy/weir',
    ]);
  });

  test('every selector selects the pods', () => {
    const { labels } = manifest('Deployment').spec.template.metadata;
    expect(labels).toEqual({ 'app.kubernetes.io/name': 'weir' });
    expect(manifest('Service').spec.selector).toEqual(labels);
    expect(manifest('Service', 'weir-pods').spec.selector).toEqual(labels);
    expect(manifest('Deployment').spec.selector.matchLabels).toEqual(labels);
    expect(manifest('PodDisruptionBudget').spec.selector.matchLabels).toEqual(labels);
    expect(manifest('NetworkPolicy').spec.podSelector.matchLabels).toEqual(labels);
    expect(manifest('HorizontalPodAutoscaler').spec.scaleTargetRef.name).toBe(
      manifest('Deployment').metadata.name,
    );
  });

  test('the PodMonitor follows its schema, and names the port of the pods', () => {
    const schema = JSON.parse(
      readFileSync(join(repositoryRoot, 'test/integration/deploy/helm/pod-monitor.schema.json'), 'utf8'),
    );
    const [monitor] = parseAllDocuments(read(MONITOR)).map((document) => document.toJS());
    const validate = new Ajv({ allErrors: true }).compile(schema);
    validate(monitor);
    expect(validate.errors).toBeNull();
    const { metadata, spec } = manifest('Deployment').spec.template;
    expect(monitor.spec.selector.matchLabels).toEqual(metadata.labels);
    const [{ port, path }] = monitor.spec.podMetricsEndpoints;
    expect(spec.containers[0].ports.map(({ name }: { name: string }) => name)).toContain(port);
    expect(path).toBe(metadata.annotations['prometheus.io/path']);
  });

  test('the command of deploy/README.md turns the alerts into a PrometheusRule', async () => {
    const page = readFileSync(join(repositoryRoot, 'deploy/README.md'), 'utf8');
    const [command = ''] = /^\{ printf (?:.*\\\n)*.*/m.exec(page) ?? [];
    expect(command).toMatch(/\| kubectl apply -n weir -f -$/);
    const { code, stdout } = await runToEnd('sh', ['-c', command.replace(/\| kubectl .*$/, '')], {
      cwd: repositoryRoot,
    });
    expect(code).toBe(0);
    expect(parse(stdout)).toMatchObject({
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'PrometheusRule',
      metadata: { name: 'weir' },
      spec: parse(readFileSync(join(repositoryRoot, 'deploy/prometheus/rules.yaml'), 'utf8')),
    });
  });

  test('the termination grace period of a pod is longer than its drain', () => {
    const pod = manifest('Deployment').spec.template.spec;
    const delay = pod.containers[0].env.find((one: { name: string }) => one.name === 'SHUTDOWN_DRAIN_DELAY');
    expect(delay.value).toBe('5s');
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(5 + 10);
  });

  test('the container has no rights that it does not need', () => {
    const pod = manifest('Deployment').spec.template.spec;
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
    expect(pod.containers[0].securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });
});

describe('the network policy', () => {
  test.each(
    FLOWS.map(([isAllowed, flow]) => [isAllowed ? 'allows' : 'denies', flowText(flow), flow] as const),
  )('%s %s', (verdict, _text, flow) => {
    expect(allows(manifest('NetworkPolicy').spec, flow)).toBe(verdict === 'allows');
  });

  test('allows the Sentinels next to each Redis, and no other pods', () => {
    const { spec } = manifest('NetworkPolicy');
    const labels = { 'app.kubernetes.io/name': 'redis' };
    expect(allows(spec, { direction: 'out', labels, port: 26_379 })).toBe(true);
    expect(allows(spec, { direction: 'out', port: 26_379 })).toBe(false);
  });
});

describe('redis.yaml', () => {
  const { spec } = manifest('Deployment', 'redis', 'redis.yaml').spec.template;
  const [container] = spec.containers;
  const SECRET = { secretKeyRef: { name: 'redis-login', key: 'redis-password' } };

  test('Redis and weir read the password from the same Secret, and a comment says how to create it', () => {
    expect(container.env).toEqual([{ name: 'REDISCLI_AUTH', valueFrom: SECRET }]);
    const { env } = manifest('Deployment').spec.template.spec.containers[0];
    expect(env).toContainEqual({ name: 'REDIS_AUTH', valueFrom: SECRET });
    const make =
      /create secret generic redis-login --from-literal=redis-password="\$\(openssl rand -hex 24\)"/;
    expect(read('redis.yaml')).toMatch(make);
    expect(readFileSync(join(FOLDER, '../README.md'), 'utf8')).toMatch(make);
  });

  test('Redis does not start without a password', async () => {
    const [shell, flag, script] = container.command as [string, string, string];
    const { code, stderr } = await runToEnd(shell, [flag, script.replace('redis-server -', 'echo')], {
      env: { REDISCLI_AUTH: '' },
    });
    expect(code).not.toBe(0);
    expect(stderr).toContain('the key redis-password of the Secret redis-login is empty; give it a password');
  });

  test('Redis requires the password, does not show it in its arguments, and its probe logs in', async () => {
    const folder = new TempDir();
    const [port = 0] = await freePorts(1);
    const [shell, flag, script] = container.command as [string, string, string];
    const here = `'${toolPath('redis-server')}' - --bind 127.0.0.1 --port ${port} --dir ${folder.path}`;
    const redis = startProcess(shell, [flag, script.replace('redis-server -', here)], {
      env: { REDISCLI_AUTH: 'swordfish' },
    });
    await waitFor('Redis', async () => {
      if (!redis.isRunning()) throw new Error(redis.lines().join('\n'));
      return (await acceptsConnections(port)) || undefined;
    });
    const ask = (password?: string) =>
      redisCommand({ port, ...(password !== undefined && { password }) }, 'PING');
    await expect(ask()).rejects.toThrow('NOAUTH');
    expect(await ask('swordfish')).toBe('PONG');
    expect(await redisCommand({ port, password: 'swordfish' }, 'CONFIG', 'GET', 'maxmemory-policy')).toEqual([
      'maxmemory-policy',
      'noeviction',
    ]);
    expect(readFileSync(`/proc/${redis.pid}/cmdline`, 'utf8')).not.toContain('swordfish');
    expect(container.readinessProbe.exec.command.slice(0, 2)).toEqual(['sh', '-c']);
  });

  test('only weir reaches Redis, which reaches nothing', () => {
    const policy = manifest('NetworkPolicy', 'redis', 'redis.yaml').spec;
    const labels = manifest('Deployment', 'redis', 'redis.yaml').spec.template.metadata.labels;
    expect(policy.podSelector.matchLabels).toEqual(labels);
    const weir = { labels: manifest('Deployment').spec.template.metadata.labels };
    expect(allows(policy, { direction: 'in', ...weir, port: 6379 })).toBe(true);
    expect(allows(policy, { direction: 'in', ...weir, namespace: 'other', port: 6379 })).toBe(false);
    expect(allows(policy, { direction: 'in', labels: { app: 'shop' }, port: 6379 })).toBe(false);
    expect(allows(policy, { direction: 'out', namespace: 'kube-system', port: 443 })).toBe(false);
  });
});
