/*
 * Tests the plain stack (GRPC_TRANSPORT=grpc-js). Through a real Envoy with mTLS, it must give the same answers,
 * statuses, metrics and log lines as the fast stack. It must also provide bounds, sockets and drains.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { SHOULD_RATE_LIMIT_PATH } from '../../src/codec/rls-definition.js';
import { FIXED_CLOCK } from '../support/docs/example-runner.js';
import { fireBurst } from '../support/envoy/burst.js';
import { startStack } from '../support/envoy/stack.js';
import { RawClient } from '../support/grpc/grpc-client.js';
import { RlsClient, type RlsReply } from '../support/grpc/rls-client.js';
import { openSession, post, prefixed } from '../support/h2/http2-client.js';
import { descriptor } from '../support/policy/decider.js';
import { headersLike, httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { STACKS } from '../support/weir/stacks.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const HEALTH = '/grpc.health.v1.Health/Check';
/** HealthCheckResponse{status: SERVING}. */
const SERVING = { code: 0, message: Buffer.of(8, 1) };
const PLAIN = { GRPC_TRANSPORT: 'grpc-js' };

test('decides for Envoy over mTLS, with buckets in Redis', async () => {
  const stack = await startStack({ security: 'mTLS', store: 'redis', weirEnv: PLAIN });
  const burst = await fireBurst(stack.envoy.port, '/open/v5/user-chats', 160, { 'x-tenant': 'acme' });
  expect(burst.count(200)).toBeGreaterThanOrEqual(100);
  expect(burst.count(200) + burst.count(429)).toBe(160);
  for (const answer of burst.answers) {
    expect(headersLike(answer, 'x-ratelimit')).toHaveLength(answer.status === 200 ? 3 : 4);
  }
  await expect(stack.envoy.stat('cluster.upstream.ratelimit.failure_mode_allowed')).resolves.toBe(0);
});

describe('compared with the fast stack', () => {
  const policy = `
domain: d
response_headers: [x-ratelimit, retry-after]
descriptors:
  - key: ten
    rate_limit: { name: ten, token_bucket: { max_tokens: 10, tokens_per_fill: 1, fill_interval: 1h } }
  - { key: hour, rate_limit: { unit: hour, requests_per_unit: 2 } }
  - { key: none, rate_limit: { unit: hour, requests_per_unit: 0 } }
  - { key: free }
`;
  let servers: WeirServer[] = [];
  let clients: RlsClient[] = [];
  beforeAll(async () => {
    for (const transport of STACKS) {
      const env = { ...FIXED_CLOCK, GRPC_TRANSPORT: transport };
      const more = { LOG_LEVEL: 'debug', RESPONSE_DYNAMIC_METADATA: 'true' };
      servers.push(await startWeir({ policy, env: { ...env, ...more } }));
    }
    clients = servers.map(({ grpcPort }) => new RlsClient(grpcPort));
  });
  afterAll(async () => {
    servers = [];
  });

  /** Returns the answer of both stacks, which must be the same. */
  async function both(ask: (client: RlsClient) => Promise<RlsReply>): Promise<Partial<RlsReply>> {
    const [fast, plain] = await Promise.all(
      clients.map(async (client) => {
        const { code, response, details } = await ask(client);
        return { code, response, details };
      }),
    );
    expect(plain).toEqual(fast);
    return plain as Partial<RlsReply>;
  }

  test.each([
    ['an allowed request', ['ten=a'], {}],
    ['a denied one', ['none=a'], {}],
    ['several descriptors', ['ten=b', 'none=b', 'free=b'], {}],
    ['hits of the request', ['ten=c'], { hitsAddend: 4 }],
  ] as const)('answers %s in the same way', async (_name, entries, options) => {
    const descriptors = entries.map((entry) => descriptor([entry]));
    expect(await both((client) => client.ask('d', descriptors, options))).toMatchObject({ code: 0 });
  });

  test.each([
    ['an override', { limit: { requestsPerUnit: 3, unit: 2 } }],
    ['hits_addend', { hitsAddend: 7 }],
    ['a peek', { hitsAddend: 0 }],
    ['more hits than a bucket holds', { hitsAddend: Number.MAX_SAFE_INTEGER }],
    ['hits that are given back', { hitsAddend: 2, isNegativeHits: true }],
  ])('answers a descriptor with %s in the same way', async (_name, more) => {
    const reply = await both((client) => client.ask('d', [descriptor(['hour=a'], more)]));
    expect(reply).toMatchObject({ code: 0 });
  });

  test.each([
    ['no domain', '', ['ten=a'], 3],
    ['no descriptors', 'd', [], 3],
    ['an entry without a key', 'd', ['=a'], 3],
    ['an unknown domain', 'other', ['ten=a'], 0],
  ])('answers a request with %s with the same status', async (_name, domain, entries, code) => {
    const descriptors = entries.map((entry) => descriptor([entry]));
    expect(await both((client) => client.ask(domain, descriptors))).toMatchObject({ code });
  });

  test('replaces bytes that are not UTF-8', async () => {
    const entry = Buffer.from('0a03626164' + '1202ffff', 'hex');
    const message = Buffer.concat([
      Buffer.from('0a016412', 'hex'),
      Buffer.of(entry.length + 2, 0x0a, entry.length),
      entry,
    ]);
    expect(await both((client) => client.send(message))).toMatchObject({ code: 0 });
  });

  test('counts and logs the requests in the same way', async () => {
    await both((client) => client.ask('d', [descriptor(['ten=z'])], { requestId: 'id-7' }));
    const [fast, plain] = await Promise.all(
      servers.map(async (server) => {
        const metrics = (await httpRequest(server.httpPort, '/metrics')).body;
        const statistics = (await httpRequest(server.debugPort, '/stats')).body;
        const counted =
          /^(weir_decisions|weir_request_duration_seconds_count|ratelimit)(?!.*(process|response))/;
        const lines = server.log().filter(({ msg }) => msg === 'decision');
        return {
          counts: (metrics + statistics).split('\n').filter((line) => counted.test(line)),
          lines: lines.map(({ request, domain, rule, code, why }) => ({ request, domain, rule, code, why })),
        };
      }),
    );
    expect(plain).toEqual(fast);
    expect(plain?.counts).toContain('ratelimit_server.ShouldRateLimit.total_requests: 15');
    expect(plain?.counts).toContain('weir_request_duration_seconds_count 15');
    expect(plain?.lines).toContainEqual(expect.objectContaining({ request: '1.1' }));
    expect(plain?.lines).toContainEqual(expect.objectContaining({ request: 'id-7' }));
  });
});

describe('on its own', () => {
  let server: WeirServer | undefined;

  async function started(env: NodeJS.ProcessEnv, policy?: string): Promise<WeirServer> {
    server = await startWeir({ env: { ...PLAIN, ...env }, ...(policy !== undefined && { policy }) });
    return server;
  }
  function clientOf({ grpcPort }: WeirServer): RlsClient {
    return new RlsClient(grpcPort);
  }

  test('bounds messages, calls and connections', async () => {
    const bounds = {
      GRPC_MAX_MESSAGE_BYTES: '1000',
      GRPC_MAX_CONCURRENT_STREAMS: '7',
      GRPC_MAX_CONNECTIONS: '1',
      MAX_DESCRIPTORS: '2',
    };
    const weir = await started(bounds);
    const session = await openSession(weir.grpcPort);
    expect(session.remoteSettings.maxConcurrentStreams).toBe(7);
    expect((await post(session, HEALTH, prefixed(Buffer.alloc(1001)))).grpcStatus).toBe('8');
    const tooMany = Buffer.concat([Buffer.from('0a0164', 'hex'), Buffer.from('1200'.repeat(3), 'hex')]);
    // Denied without statuses; the domain has no policy.
    const answer = await post(session, SHOULD_RATE_LIMIT_PATH, prefixed(tooMany));
    expect([answer.grpcStatus, answer.body.toString('hex')]).toEqual(['0', '00000000020801']);
    await expect(openSession(weir.grpcPort)).rejects.toThrow('the server closed the connection');
    session.destroy();
    // A new connection is accepted once weir has seen the end of the first one.
    const next = await waitFor('room', () => openSession(weir.grpcPort));
    next.destroy();
  });

  test('reveals nothing about a message that it cannot read', async () => {
    const weir = await started({});
    const reply = await clientOf(weir).send(Buffer.from('0aff', 'hex'));
    expect(reply).toMatchObject({
      code: 3,
      details: 'message is not a well-formed envoy.service.ratelimit.v3.RateLimitRequest',
    });
  });

  test('serves a Unix domain socket', async () => {
    const folder = new TempDir();
    await started({ GRPC_UDS: folder.join('grpc.sock') });
    const client = new RawClient(`unix:${folder.join('grpc.sock')}`);
    expect(await client.unary(HEALTH, Buffer.alloc(0))).toEqual(SERVING);
  });

  test('respects deadlines, and answers calls that wait for Redis when it stops', async () => {
    const redis = await startRedis();
    const policy = 'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: 5 } }]\n';
    const env = { REDIS_URL: `127.0.0.1:${redis.port}`, REDIS_TIMEOUT: '60s' };
    const weir = await started(env, policy);
    const client = clientOf(weir);
    expect((await client.ask('d', [descriptor(['k=a'])])).code).toBe(0);
    redis.pause();
    // weir answers before the deadline, because Redis is unavailable.
    expect((await client.ask('d', [descriptor(['k=a'])], { timeoutMs: 500 })).code).toBe(14);
    const waits = client.ask('d', [descriptor(['k=b'])]);
    const stats = async (): Promise<string> => (await httpRequest(weir.debugPort, '/stats')).body;
    const begun = 'ratelimit_server.ShouldRateLimit.total_requests: 3';
    await waitFor('the call', async () => (await stats()).includes(begun));
    const stopped = weir.stop();
    await waitFor('the drain', () => weir.log().some(({ msg }) => msg === 'draining'));
    redis.resume();
    expect((await waits).code).toBe(0);
    expect(await stopped).toEqual({ code: 0, signal: null });
  });
});
