/* Tests start, reload and end of a real server process. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, credentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { service as healthService } from 'grpc-health-check';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { freePorts } from '../support/process/free-port.js';
import { httpRequest } from '../support/process/http-client.js';
import { startProcess } from '../support/process/processes.js';
import { repositoryRoot } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { CommandHost } from '../support/weir/commands.js';
import { startWeir, WEIR_MAIN, type WeirServer } from '../support/weir/weir.js';

const folder = mkdtempSync(join(tmpdir(), 'weir-lifecycle-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const policy = (tokens: number | string, domain = 'd') =>
  `domain: ${domain}\ndescriptors: [{ key: k, rate_limit: { token_bucket: { max_tokens: ${tokens}, ` +
  'fill_interval: 1h } } }]\n';
const BAD = 'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: fortnight, requests_per_unit: -1 } }]\n';

const detailOf = async (server: WeirServer) => {
  const { status, body } = await httpRequest(server.httpPort, '/healthcheck?detail');
  return { status, ...JSON.parse(body) };
};

async function limitOf(server: WeirServer): Promise<number | undefined> {
  const client = new RlsClient(server.grpcPort);
  const { response } = await client.ask('d', [descriptor(['k=v'])]);
  client.close();
  return response?.statuses[0]?.currentLimit?.requestsPerUnit;
}

describe('a server with default settings', () => {
  let server: WeirServer;
  beforeAll(async () => {
    server = await startWeir();
  });
  afterAll(() => server.stop());

  test('logs addresses, store, policies and phase in one line, and shows the policy on the debug port', async () => {
    const [line] = server.log().filter(({ msg }) => msg === 'weir serves');
    expect(line).toMatchObject({
      grpc: `127.0.0.1:${server.grpcPort}`,
      http: `127.0.0.1:${server.httpPort}`,
      debug: `127.0.0.1:${server.debugPort}`,
      store: 'memory',
      source: 'the bundled policy',
      domains: ['open-api (active)'],
    });
    const get = (port: number, path: string) => httpRequest(port, path);
    expect((await get(server.debugPort, '/')).body).toMatch('/rlconfig: ');
    expect((await get(server.debugPort, '/rlconfig')).body).toMatch(
      'open-api.tenant.resource_group_user-chats: unit=UNKNOWN requests_per_unit=',
    );
    expect((await get(server.debugPort, '/rlconfig?format=tree')).body).toMatch('resource_group=user-chats');
    expect((await get(server.httpPort, '/rlconfig')).status).toBe(404);
    expect((await get(server.httpPort, '/healthcheck')).body).toBe('OK');
    expect((await get(server.httpPort, '/healthcheck?detail')).body).not.toMatch('user-chats');
  });

  test('counts by domain, rule and code, and unmatched requests by key names', async () => {
    const client = new RlsClient(server.grpcPort);
    const words = [descriptor(['tenant=a', 'resource_group=user-chats'])];
    for (const hitsAddend of [1, 101]) await client.ask('open-api', words, { hitsAddend });
    await client.ask('open-api', [descriptor(['other=secret', 'more=secret'])]);
    await client.ask('nowhere', [descriptor(['k=a'])]);
    const { body } = await httpRequest(server.httpPort, '/metrics');
    const rule = 'domain="open-api",rule="tenant/resource_group=user-chats"';
    for (const line of [
      `weir_decisions_total{${rule},code="OK"} 1`,
      `weir_decisions_total{${rule},code="OVER_LIMIT"} 1`,
      'weir_unmatched_total{domain="open-api",keys="other,more"} 1',
      'weir_unknown_domain_total{domain="nowhere"} 1',
      'weir_memory_buckets 1',
    ]) {
      expect(body).toContain(line);
    }
    expect(body).not.toContain('secret');
    expect(JSON.stringify(server.log())).not.toContain('secret');
  });
});

describe('a start that fails', () => {
  let host: CommandHost;
  beforeAll(() => {
    host = new CommandHost();
  });
  const serve = (environment: Record<string, string>, ...args: string[]) =>
    host.run({ args: ['serve', ...args], folder, environment });

  test.each([
    ['GRPC_PORT', 'gRPC'],
    ['PORT', 'HTTP'],
    ['DEBUG_PORT', 'the debug endpoints'],
  ])('prints one clear line for a taken %s, and exits with 1', async (variable, what) => {
    const listener = createServer();
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const taken = String((listener.address() as AddressInfo).port);
    const { code, printed } = await serve({
      ...{ GRPC_PORT: '0', PORT: '0', DEBUG_PORT: '0' },
      [variable]: taken,
    });
    listener.close();
    expect(code).toBe(1);
    expect(printed.trim().split('\n')).toHaveLength(1);
    expect(printed).toMatch(`cannot listen on 127.0.0.1:${taken} for ${what}`);
    expect(printed).toMatch('the port is already in use');
  });

  test('names every invalid setting, and shows no secrets', async () => {
    const bad = { REDIS_TIMEOUT: 'soon', LOG_LEVEL: 'loud', REDIS_URL: 'redis://:s3cret@[bad' };
    const { code, stderr } = await serve(bad, '--port', 'x');
    // The command line also has an invalid flag.
    expect(code).toBe(2);
    expect(stderr).toMatch('REDIS_TIMEOUT: "soon" is not a duration');
    expect(stderr).toMatch('LOG_LEVEL: "loud" is not one of');
    expect(stderr).toMatch('--port: "x" is not a port');
    const url = await serve({ REDIS_URL: 'redis://:s3cret@[bad' });
    expect(url.code).toBe(1);
    expect(url.stderr).toMatch('REDIS_URL');
    expect(url.printed).not.toMatch('s3cret');
  });

  test('rejects counts that HTTP/2 cannot express', async () => {
    expect(await serve({ GRPC_MAX_CONCURRENT_STREAMS: '99999999999' })).toMatchObject({
      code: 1,
      stderr: 'weir: GRPC_MAX_CONCURRENT_STREAMS: "99999999999" is not a whole number from 1 to 4294967295\n',
    });
  });
});

describe('reload', () => {
  test('happens when the file changes; an invalid file leaves the old policy in effect, with a log line', async () => {
    const path = join(folder, 'policy.yaml');
    writeFileSync(path, policy(5));
    const server = await startWeir({ env: { CONFIG_PATH: path } });
    expect(await limitOf(server)).toBe(5);
    writeFileSync(path, policy(7));
    await waitFor('the new limit', async () => (await limitOf(server)) === 7 || undefined);
    await waitFor(
      'the log to say what changed',
      () =>
        server.log().some(({ msg }) => /^k: loosens: token bucket \(5 tokens, /.test(String(msg))) ||
        undefined,
    );
    expect(server.log().map(({ msg }) => msg)).toContain('changes in the new policy: 1 loosens');
    writeFileSync(path, BAD);
    await waitFor(
      'the error to show',
      async () => (await detailOf(server)).policy.lastReload === 'error' || undefined,
    );
    const detail = await detailOf(server);
    expect(detail).toMatchObject({ status: 'SERVING' });
    expect(detail.policy.errors).toHaveLength(2);
    expect(detail.policy.errors[0]).toMatchObject({
      file: path,
      line: 2,
      path: 'descriptors[0].rate_limit.unit',
    });
    expect((await httpRequest(server.httpPort, '/healthcheck')).body).toBe('OK');
    expect((await httpRequest(server.httpPort, '/metrics')).body).toContain(
      'weir_config_last_reload_successful 0',
    );
    expect(server.log().filter(({ level }) => level === 'error').length).toBeGreaterThan(0);
    expect(await limitOf(server)).toBe(7);
    writeFileSync(path, policy(7));
    await waitFor(
      'the error to go',
      async () => (await detailOf(server)).policy.lastReload === 'ok' || undefined,
    );
    expect((await httpRequest(server.httpPort, '/metrics')).body).toContain(
      'weir_config_last_reload_successful 1',
    );
    await server.stop();
  });
});

describe('end', () => {
  test('changes health first, waits for the delay, finishes running streams, and exits with 0', async () => {
    const server = await startWeir({ env: { SHUTDOWN_DRAIN_DELAY: '400ms' } });
    const idle = connect(server.grpcPort, '127.0.0.1');
    const client = new RlsClient(server.grpcPort);
    const ask = () => client.ask('open-api', [descriptor(['tenant=t'])]);
    await ask();
    const watcher = new Client(`127.0.0.1:${server.grpcPort}`, credentials.createInsecure());
    const seen: string[] = [];
    const { Watch } = healthService;
    if (Watch === undefined) throw new Error('grpc-health-check has no Watch');
    const watch = watcher.makeServerStreamRequest(
      Watch.path,
      Watch.requestSerialize,
      Watch.responseDeserialize,
      {
        service: 'ratelimit',
      },
    );
    watch.on('data', (message: { status: string }) => seen.push(message.status));
    const watchEnded = new Promise((resolve) => watch.once('error', resolve));
    await waitFor('the first health', () => seen.includes('SERVING') || undefined);

    server.process.signal('SIGTERM');
    await waitFor('NOT_SERVING', () => seen.includes('NOT_SERVING') || undefined);
    expect((await httpRequest(server.httpPort, '/healthcheck')).status).toBe(500);
    expect((await ask()).code).toBe(STATUS.OK);
    expect(await server.process.exited).toEqual({ code: 0, signal: null });
    expect((await ask()).code).toBe(STATUS.UNAVAILABLE);
    await watchEnded;
    idle.destroy();
    client.close();
    watcher.close();
  });
});

describe('extreme settings', () => {
  test('very long durations work until a second signal, and an age of 0 means never', async () => {
    const server = await startWeir({
      env: {
        SHUTDOWN_GRACE: '1000000h',
        SHUTDOWN_DRAIN_DELAY: '1000000h',
        REDIS_TIMEOUT: '1000000h',
        GRPC_MAX_CONNECTION_AGE: '0s',
      },
    });
    const client = new RlsClient(server.grpcPort);
    for (let index = 0; index < 20; index++) {
      expect((await client.ask('open-api', [descriptor(['tenant=t'])])).code).toBe(STATUS.OK);
    }
    server.process.signal('SIGINT');
    await waitFor('draining', () => server.log().some(({ msg }) => msg === 'draining') || undefined);
    expect((await client.ask('open-api', [descriptor(['tenant=t'])])).code).toBe(STATUS.OK);
    expect(server.process.isRunning()).toBe(true);
    expect(server.process.stderr()).toBe('');
    client.close();
    server.process.signal('SIGTERM');
    expect(await server.process.exited).toEqual({ code: 143, signal: null });
  });

  test('a full disk for the log does not end the service', async () => {
    const path = join(folder, 'full-disk.yaml');
    writeFileSync(path, policy(5));
    const [grpcPort = 0, port = 0, debugPort = 0] = await freePorts(3);
    const command = `exec "${process.execPath}" "${WEIR_MAIN}" serve > /dev/full`;
    const server = startProcess('sh', ['-c', command], {
      env: {
        CONFIG_PATH: path,
        GRPC_PORT: String(grpcPort),
        PORT: String(port),
        DEBUG_PORT: String(debugPort),
        LOG_FORMAT: 'json',
      },
    });
    const detail = async () => JSON.parse((await httpRequest(port, '/healthcheck?detail')).body);
    await waitFor(
      'health',
      async () => (await httpRequest(port, '/healthcheck')).status === 200 || undefined,
    );
    writeFileSync(path, BAD);
    await waitFor(
      'the error to show',
      async () => (await detail()).policy.lastReload === 'error' || undefined,
    );
    expect(server.isRunning()).toBe(true);
    expect(await server.stop()).toEqual({ code: 0, signal: null });
  });
});

test('level debug logs for each decision its request, its reason and its rule, with API keys redacted', async () => {
  const path = join(folder, 'policies');
  mkdirSync(path);
  writeFileSync(join(path, 'd.yaml'), policy(1));
  copyFileSync(join(repositoryRoot, 'deploy/policies/open-api.yaml'), join(path, 'open-api.yaml'));
  const server = await startWeir({ env: { CONFIG_PATH: path, LOG_LEVEL: 'debug' } });
  const client = new RlsClient(server.grpcPort);
  const both = [descriptor(['k=a']), descriptor(['kk=b'])];
  await client.ask('d', both);
  await client.ask('d', both, { requestId: `id-7${'x'.repeat(1000)}` });
  await client.ask('nowhere', [descriptor(['api_key=sekret'])], { requestId: 'id-8' });
  await client.ask('open-api', [descriptor(['api_key=sekret', 'method=GET', 'path=/open/v5/user-chats'])]);
  await httpRequest(server.httpPort, '/json', {
    method: 'POST',
    body: '{"domain":"d","descriptors":[{"entries":[{"key":"k"}]}]}',
  });
  const decisions = () => server.log().filter(({ msg }) => msg === 'decision');
  await waitFor('the lines', () => decisions().length === 7);
  const userChats = 'tenant/resource_group=user-chats';
  expect(decisions().map(({ request, rule, why }) => [request, rule, why])).toEqual([
    ['1.1', 'k', undefined],
    ['1.1', '', 'did you mean k?'],
    [expect.stringMatching(/^id-7x{252}… \(\d+ more characters\)$/), 'k', undefined],
    [expect.stringMatching(/^id-7x/), '', 'did you mean k?'],
    ['id-8', '', 'no policy has this domain: the loaded domains are d, open-api.'],
    ['1.2', userChats, undefined],
    ['2.1', 'k', undefined],
  ]);
  expect(decisions()[5]).toMatchObject({
    level: 'debug',
    domain: 'open-api',
    code: 'OK',
    remaining: 99,
    micros: expect.any(Number),
  });
  expect(server.process.stdout()).not.toContain('sekret');
  client.close();
  await server.stop();
});
