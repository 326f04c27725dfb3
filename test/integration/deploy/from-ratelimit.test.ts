/*
 * Runs the installations of deploy/from-ratelimit as in compose and Kubernetes, with /bin/ratelimit, its variables and
 * its files. `weir migrate` reports on them as they were before the switch.
 */
import { cpSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { CODE } from '../../../src/codec/messages.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { copyImagePrograms } from '../../support/image/image-programs.js';
import { descriptor } from '../../support/policy/decider.js';
import { freePorts } from '../../support/process/free-port.js';
import { httpRequest } from '../../support/process/http-client.js';
import { runToEnd } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { repositoryRoot } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { type RatelimitServer, startRatelimit } from '../../support/reference/ratelimit.js';
import { WEIR_MAIN } from '../../support/weir/weir.js';

const FOLDER = join(repositoryRoot, 'deploy/from-ratelimit');

/** The folder represents the root of the container's file system. */
const root = new TempDir();
const bin = copyImagePrograms(root.path);

/**
 * Runs `weir migrate` on a file with the reference's image, and checks that only variables with other defaults need a
 * decision. Returns the text of the file after the switch.
 */
async function migrated(name: string, ...others: readonly string[]): Promise<string> {
  const after = readFileSync(join(FOLDER, name), 'utf8');
  root.write(`before/${name}`, after.replace(/image: weir(:\S+)? # was (\S+)/, 'image: $2:4d2efd61'));
  const command = ['migrate', `before/${name}`, ...others, '--json'];
  const { code, stdout, stderr } = await runToEnd(process.execPath, [WEIR_MAIN, ...command], {
    cwd: root.path,
  });
  expect([code, stderr]).toEqual([1, '']);
  const { service, decide, keep } = JSON.parse(stdout);
  expect(service.because).toBe('its image is envoyproxy/ratelimit:4d2efd61');
  expect(keep).toEqual({ DEBUG_HOST: '0.0.0.0', REDIS_TIMEOUT: '10s', LOG_FORMAT: 'text' });
  expect(decide.map(({ about }: { about: string }) => about)).toEqual(Object.keys(keep));
  return after;
}

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});

let server: RatelimitServer | undefined;
afterEach(async () => {
  expect(await server?.process.stop()).toEqual({ code: 0, signal: null });
  server = undefined;
});

/** Returns the variables of the file, with other addresses of Redis and paths of files. */
function here(variables: Readonly<Record<string, string>>, data: string): Record<string, string> {
  expect(variables).toMatchObject({ REDIS_URL: 'redis:6379', RUNTIME_ROOT: '/data' });
  return { ...variables, REDIS_URL: `127.0.0.1:${redis.port}`, RUNTIME_ROOT: data };
}

async function codeOf(domain: string, ...entries: string[]): Promise<number | undefined> {
  const client = new RlsClient(server?.grpcPort ?? 0);
  return (await client.ask(domain, [descriptor(entries)])).response?.overallCode;
}

describe('docker-compose.yaml', () => {
  interface Service {
    readonly image: string;
    readonly command: string;
    readonly environment: readonly string[];
    readonly volumes: readonly string[];
  }

  test('answers according to its files, and shows the metrics of the reference', async () => {
    cpSync(join(FOLDER, 'config'), root.join('before/config'), { recursive: true });
    const text = await migrated('docker-compose.yaml', 'before/config');
    const { services } = parse(text) as { services: Record<string, Service> };
    const service = services['ratelimit'] as Service;
    expect(service).toMatchObject({ image: 'weir', command: '/bin/ratelimit' });
    expect(service.volumes).toEqual(['./config:/data/ratelimit/config:ro']);
    cpSync(join(FOLDER, 'config'), root.join('compose/ratelimit/config'), { recursive: true });
    const variables = Object.fromEntries(
      service.environment.map((line) => line.split('=') as [string, string]),
    );
    const [metricsPort = 0] = await freePorts(1);
    server = await startRatelimit(join(bin, 'ratelimit'), {
      ...here(variables, root.join('compose')),
      PROMETHEUS_ADDR: `127.0.0.1:${metricsPort}`,
    });
    expect(await codeOf('shop', 'customer=mallory')).toBe(CODE.OVER_LIMIT);
    for (let i = 0; i < 10; i++) expect(await codeOf('shop', 'customer=bob')).toBe(CODE.OK);
    expect(await codeOf('shop', 'customer=bob')).toBe(CODE.OVER_LIMIT);
    expect(await codeOf('shop', 'customer=eve')).toBe(CODE.OK);
    expect(await codeOf('shop', 'path=/search/all')).toBe(CODE.OK);
    const { body } = await httpRequest(metricsPort, '/metrics');
    expect(body).toMatch(
      /^ratelimit_service_rate_limit_over_limit\{domain="shop",key1="customer_mallory"\} 1$/m,
    );
    expect(body).toMatch(/^ratelimit_service_rate_limit_total_hits\{domain="shop",key1="customer"\} 12$/m);
  });
});

describe('kubernetes.yaml', () => {
  /** Writes the ConfigMap like the kubelet: files behind `..data`, which is swapped. */
  function mount(generation: string, files: Readonly<Record<string, string>>): void {
    const folder = 'kubernetes/ratelimit/config';
    for (const [name, text] of Object.entries(files)) {
      root.write(`${folder}/${generation}/${name}`, text);
      if (generation === '..1') symlinkSync(`..data/${name}`, root.join(folder, name));
    }
    symlinkSync(generation, root.join(folder, '..data_tmp'));
    renameSync(root.join(folder, '..data_tmp'), root.join(folder, '..data'));
  }

  test('answers according to its ConfigMap, also after a change', async () => {
    const manifests = parseAllDocuments(await migrated('kubernetes.yaml')).map((document) => document.toJS());
    const { data } = manifests.find(({ kind }) => kind === 'ConfigMap');
    const [container] = manifests.find(({ kind }) => kind === 'Deployment').spec.template.spec.containers;
    expect(container).toMatchObject({
      image: 'weir:1.0.0-rc.1',
      command: ['/bin/ratelimit'],
      volumeMounts: [{ mountPath: '/data/ratelimit/config' }],
      readinessProbe: { httpGet: { path: '/healthcheck', port: 8080 } },
    });
    mount('..1', data);
    const variables = Object.fromEntries(
      (container.env as { name: string; value: string }[]).map(({ name, value }) => [name, value]),
    );
    server = await startRatelimit(join(bin, 'ratelimit'), here(variables, root.join('kubernetes')));
    expect(await codeOf('ratelimit', 'PATH=/productpage')).toBe(CODE.OK);
    expect(await codeOf('ratelimit', 'PATH=/productpage')).toBe(CODE.OVER_LIMIT);
    expect(await codeOf('ratelimit', 'PATH=/other')).toBe(CODE.OK);
    mount('..2', {
      'config.yaml': (data['config.yaml'] as string)
        .replace('/productpage', '/other')
        .replace('_unit: 1 }', '_unit: 0 }'),
    });
    await waitFor('the change', async () =>
      (await codeOf('ratelimit', 'PATH=/other')) === CODE.OVER_LIMIT ? true : undefined,
    );
  });
});
