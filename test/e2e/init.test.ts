/* Starts the real weir and the real Envoy with the files that `weir init` writes. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { startEnvoyWith, validateEnvoy, withChanges } from '../support/envoy/envoy.js';
import { LONG_TIMEOUTS } from '../support/envoy/stack.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { freePorts } from '../support/process/free-port.js';
import { headerOf, httpRequest } from '../support/process/http-client.js';
import { runToEnd } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, WEIR_MAIN, type WeirServer } from '../support/weir/weir.js';

const root = new TempDir();
const weir = (...args: string[]) => runToEnd(process.execPath, [WEIR_MAIN, ...args], { cwd: root.path });
const written = (path: string, folder = 'my api') => readFileSync(root.join(folder, path), 'utf8');
/** Folders of the other kinds, each with its option. */
const KINDS = ['concurrency', 'llm'] as const;

beforeAll(async () => {
  const { code, stdout, stderr } = await weir('init', 'my api');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain("weir check-config 'my api/policies'");
  for (const kind of KINDS)
    expect((await weir('init', `--${kind}`, kind)).stdout).toContain(`policies/${kind}.yaml`);
});

test('never overwrites files', async () => {
  root.write('taken/envoy.yaml', 'mine');
  const { code, stdout, stderr } = await weir('init', 'taken');
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toBe(
    'weir init: no files were written, because "taken" already contains envoy.yaml; choose another folder\n',
  );
  expect(readFileSync(root.join('taken/envoy.yaml'), 'utf8')).toBe('mine');
  expect(existsSync(root.join('taken/policies'))).toBe(false);
  expect((await weir('init', 'a', 'b')).code).toBe(2);
  expect(await weir('init', '--llm', '--concurrency', 'a')).toMatchObject({
    code: 2,
    stderr: 'weir init: --concurrency and --llm exclude each other; use a separate folder for each\n',
  });
});

test('prints the reason if the folder cannot be created', async () => {
  root.write('file', '');
  for (const [folder, code] of [
    ['/proc/weir/new', 'ENOENT'],
    ['file/new', 'EEXIST'],
  ] as const) {
    const { stderr } = await weir('init', folder);
    expect(stderr).toMatch(new RegExp(`^weir init: the files cannot be written: ${code}: `));
  }
});

test('writes a valid policy without warnings', async () => {
  const checked = await weir('check-config', 'my api/policies');
  expect(written('policies/my-api.yaml')).toMatch(/^# A policy of weir: /);
  expect(checked).toMatchObject({ code: 0, stdout: 'ok: 1 file, my-api (4 rules)\n', stderr: '' });
});

test('writes policies for concurrent requests and for calls of a language model', async () => {
  const check = (kind: string) => weir('check-config', `${kind}/policies`);
  expect(await check('concurrency')).toMatchObject({
    code: 0,
    stdout: 'ok: 1 file, my-api (2 rules)\n',
    stderr: '',
  });
  expect(await check('llm')).toMatchObject({ code: 0, stdout: 'ok: 1 file, llm (1 rule)\n', stderr: '' });
});

test.each(['my api', ...KINDS])('writes a valid bootstrap without deprecated fields: %s', async (folder) => {
  const { good, output } = await validateEnvoy(written('envoy.yaml', folder));
  expect({ good, output }).toMatchObject({ good: true });
  expect(output).not.toMatch(/deprecated/i);
  expect(written('docker-compose.yaml', folder)).toBe(written('docker-compose.yaml'));
});

test('writes a compose file that mounts the written files, and publishes on loopback only', () => {
  const { services } = parse(written('docker-compose.yaml'));
  expect(Object.keys(services)).toEqual(['envoy', 'weir', 'redis']);
  for (const { volumes = [], ports = [] } of Object.values<{ volumes?: string[]; ports?: string[] }>(
    services,
  )) {
    // A volume without a path is a named volume.
    for (const volume of volumes.filter((one) => one.startsWith('.')))
      expect(existsSync(join(root.join('my api'), volume.split(':')[0] ?? ''))).toBe(true);
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
  }
  expect(services.weir.environment.CONFIG_PATH).toBe(services.weir.volumes[0].split(':')[1]);
});

/** Starts weir and Envoy with the files in a folder. */
async function startWritten(folder: string) {
  const server = await startWeir({ env: { CONFIG_PATH: root.join(folder, 'policies') } });
  const [port = 0, placeholder = 0, admin = 0] = await freePorts(3);
  const bootstrap = withChanges(written('envoy.yaml', folder), [
    ['address: 0.0.0.0, port_value: 10000', `address: 127.0.0.1, port_value: ${port}`],
    ['port_value: 10001', `port_value: ${placeholder}`],
    ['port_value: 9901', `port_value: ${admin}`],
    ['address: weir, port_value: 8081', `address: 127.0.0.1, port_value: ${server.grpcPort}`],
    ...LONG_TIMEOUTS,
  ]);
  const envoy = await startEnvoyWith(bootstrap, admin);
  const stop = async () => {
    await envoy.stop();
    await server.stop();
  };
  return { server, envoy, port, stop };
}

describe('behind Envoy', () => {
  let server: WeirServer;
  let port = 0;
  beforeAll(async () => {
    ({ server, port } = await startWritten('my api'));
    await waitFor('Envoy to ask weir', async () =>
      headerOf(await httpRequest(port, '/'), 'x-ratelimit-limit') === undefined ? undefined : true,
    );
  });

  test('forwards a request to the placeholder, with the remaining tokens', async () => {
    const { status, body, ...answer } = await waitFor('a token', async () => {
      const one = await httpRequest(port, '/', { headers: { 'x-user': 'ann' } });
      return one.status === 200 ? one : undefined;
    });
    expect([status, body]).toEqual([200, 'hello from the placeholder\n']);
    expect(headerOf({ status, body, ...answer }, 'x-ratelimit-limit')).toBe('20');
  });

  test('tells a denied caller how long to wait', async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, () => httpRequest(port, '/login')));
    const denied = answers.filter(({ status }) => status === 429);
    expect(denied.length).toBeGreaterThan(0);
    expect(denied.length).toBeLessThan(60);
    for (const answer of denied) expect(Number(headerOf(answer, 'retry-after'))).toBeGreaterThan(0);
    const { body } = await httpRequest(server.httpPort, '/metrics');
    expect(body).toMatch(
      /^weir_would_be_throttled_total\{domain="my-api",rule="action=login\/remote_address"\} \d+$/m,
    );
  });
});

/** Waits until the bucket of an entry has a number of slots or tokens, as a peek reports it. */
async function untilRemaining(
  server: WeirServer,
  domain: string,
  entry: string,
  isThere: (left: number) => boolean,
) {
  const rls = new RlsClient(server.grpcPort);
  await waitFor('the end of the request', async () => {
    const { response } = await rls.ask(domain, [descriptor([entry], { hitsAddend: 0 })]);
    return isThere(response?.statuses[0]?.limitRemaining ?? 0) || undefined;
  });
}

test('--concurrency limits the requests in flight, and frees their slots at the end', async () => {
  const { server, port, stop } = await startWritten('concurrency');
  try {
    const call = () => httpRequest(port, '/', { headers: { 'x-customer': 'batch-job' } });
    const untilFree = () => untilRemaining(server, 'my-api', 'customer=batch-job', (left) => left === 2);
    // Envoy denies requests until it reaches weir.
    await waitFor('Envoy to ask weir', async () => (await call()).status === 200 || undefined);
    await untilFree();
    const statuses = (await Promise.all([call(), call(), call()])).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 200, 429]);
    await untilFree();
  } finally {
    await stop();
  }
});

test('--llm replaces the estimate with the use that the body of the response reports', async () => {
  const slow = withChanges(written('policies/llm.yaml', 'llm'), [
    ['fill_interval: 1m', 'fill_interval: 24h'],
  ]);
  root.write('llm/policies/llm.yaml', slow);
  const { server, port, stop } = await startWritten('llm');
  try {
    const call = () => httpRequest(port, '/', { headers: { 'x-tenant': 'acme' } });
    await waitFor('Envoy to ask weir', async () => (await call()).status === 200 || undefined);
    // The use is 1,200 of 100,000 tokens. Without the settlement, 96,000 tokens would remain.
    await untilRemaining(server, 'llm', 'tenant=acme', (left) => left >= 98_800 && left < 99_000);
  } finally {
    await stop();
  }
});
