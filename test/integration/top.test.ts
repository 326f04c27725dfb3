/*
 * Tests /top of the debug port and weir_bucket_used_ratio: which callers are denied, in memory, with Redis, with a
 * cluster, and with several workers.
 */
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { TopAnswer, TopQuestion } from '../../src/admin/buckets/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { runToEnd } from '../support/process/processes.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisCluster, startCluster } from '../support/redis/cluster.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, WEIR_MAIN, type WeirServer } from '../support/weir/weir.js';
import { untilAllServe } from '../support/weir/workers.js';

const POLICY = `
domain: d
descriptors:
  - key: tenant
    rate_limit: { token_bucket: { max_tokens: 5, fill_interval: 1h } }
  - key: api_key
    rate_limit: { unit: day, requests_per_unit: 100 }
`;

let redis: RedisServer;
let cluster: RedisCluster;
beforeAll(async () => {
  [redis, cluster] = await Promise.all([startRedis(), startCluster()]);
});

async function top(server: WeirServer, question: TopQuestion): Promise<TopAnswer> {
  const { status, body } = await httpRequest(server.debugPort, '/top', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(question),
  });
  expect({ status, body }).toMatchObject({ status: 200 });
  return JSON.parse(body);
}

/** Returns `rule value denied used ratio` for each bucket. */
function lines({ top: buckets }: TopAnswer): readonly string[] {
  return buckets.map(
    ({ rule, entries, denied, used, used_ratio }) =>
      `${rule} ${entries.map(({ value }) => value).join(' ')} ${denied} ${used} ${used_ratio}`,
  );
}

describe.each([
  ['in memory', '', 1],
  ['with Redis and two workers', 'SINGLE', 2],
  ['with a Redis Cluster', 'CLUSTER', 1],
])('%s', (_how, redisType, workers) => {
  let server: WeirServer;
  let clients: RlsClient[];

  beforeAll(async () => {
    server = await startWeir({
      policy: POLICY,
      env: {
        BUCKET_USED_RATIO_TOP: '2',
        ...(redisType !== '' && {
          REDIS_TYPE: redisType,
          REDIS_URL: redisType === 'CLUSTER' ? cluster.url : `127.0.0.1:${redis.port}`,
          CACHE_KEY_PREFIX: `${workers}:`,
        }),
        ...(workers > 1 && { WORKERS: String(workers) }),
      },
    });
    if (workers > 1) await untilAllServe(server);
    clients = Array.from({ length: 4 }, () => new RlsClient(server.grpcPort));
    // Workers accept connections in turn, so each worker gets some.
    for (const client of clients) {
      for (let at = 0; at < 3; at++) await client.ask('d', [descriptor(['tenant=acme'])]);
      await client.ask('d', [descriptor(['api_key=sk-very-secret'], { hitsAddend: 5 })]);
    }
    await clients[0]?.ask('d', [descriptor(['tenant=umbrella'])]);
  });

  test('lists the buckets that are denied and used most', async () => {
    const denied = await top(server, {});
    expect(lines(denied)).toEqual([
      'tenant acme 7 5 1',
      // Buckets without denials follow.
      expect.stringMatching(/^api_key \[redacted sha256:[0-9a-f]{8}\] 0 20 0\.2$/),
      'tenant umbrella 0 1 0.2',
    ]);
    expect(denied).toMatchObject({ of: 'minute', by: 'denied', error: { denied: 0, used: 0 }, sampled: 1 });
    const used = await top(server, { by: 'used', of: 'hour' });
    expect(lines(used)).toEqual([
      expect.stringMatching(/^api_key \[redacted sha256:[0-9a-f]{8}\] 0 20 0\.2$/),
      'tenant acme 7 5 1',
      'tenant umbrella 0 1 0.2',
    ]);
    expect(lines(await top(server, { by: 'used', rule: 'tenant', limit: 1 }))).toEqual(['tenant acme 7 5 1']);
  });

  test('exports a gauge of the most used buckets, without secrets', async () => {
    const { body } = await httpRequest(server.httpPort, '/metrics');
    const series = body.split('\n').filter((line) => line.startsWith('weir_bucket_used_ratio{'));
    expect(series).toContain('weir_bucket_used_ratio{domain="d",rule="tenant",bucket="tenant=acme"} 1');
    expect(series.join('\n')).toMatch(
      /rule="api_key",bucket="api_key=\[redacted sha256:[0-9a-f]{8}\]"\} 0\.2/,
    );
    expect(body).not.toContain('sk-very');
  });

  test('also counts requests over HTTP', async () => {
    const body = '{"domain":"d","descriptors":[{"entries":[{"key":"tenant","value":"json"}]}]}';
    await httpRequest(server.httpPort, '/json', { method: 'POST', body });
    const counted = await waitFor('the request', async () =>
      lines(await top(server, { by: 'used' })).find((line) => line.includes('json')),
    );
    expect(counted).toBe('tenant json 0 1 0.2');
  });
});

test('weir top adds up several replicas, and names one that does not answer', async () => {
  const env = { REDIS_URL: `127.0.0.1:${redis.port}`, CACHE_KEY_PREFIX: 'replicas:' };
  const servers = await Promise.all([0, 1].map(() => startWeir({ policy: POLICY, env })));
  for (const { grpcPort } of servers) {
    const client = new RlsClient(grpcPort);
    for (let at = 0; at < 4; at++) await client.ask('d', [descriptor(['tenant=acme'])]);
    client.close();
  }
  const addresses = servers.map(({ debugPort }) => `127.0.0.1:${debugPort}`);
  const weirTop = (...args: string[]) =>
    runToEnd(process.execPath, [WEIR_MAIN, 'top', ...args], { bareEnvironment: true });
  const [all, one, table] = await Promise.all([
    weirTop('--json', '--all', addresses.join(',')),
    weirTop('--json', '--address', addresses[0] ?? ''),
    weirTop('--all', addresses.join(',')),
  ]);
  expect(lines(JSON.parse(all.stdout))).toEqual(['tenant acme 3 5 1']);
  expect(lines(JSON.parse(one.stdout))).toEqual(['tenant acme 0 4 0.8']);
  expect(table).toMatchObject({ code: 0, stdout: expect.stringContaining('tenant=acme') });
  for (const where of [
    ['--address', addresses[0] ?? ''],
    ['--all', addresses.join(',')],
  ]) {
    const unknownDomain = await weirTop('--domain', 'nope', ...where);
    expect([unknownDomain.code, unknownDomain.stdout]).toEqual([1, '']);
    expect(unknownDomain.stderr).toContain(
      'no policy in effect has the domain "nope"; the loaded domains are "d"',
    );
  }
  await servers[1]?.stop();
  const rest = await weirTop('--by', 'used', '--all', addresses.join(','));
  expect(rest.stdout).toContain('tenant=acme');
  expect(`${rest.stdout}${rest.stderr}`).toContain(addresses[1]);
});
