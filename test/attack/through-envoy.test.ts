/*
 * Checks that an attack through Envoy does not raise another user's limit. Envoy waits 0.25 s for a decision and fails
 * open. While 16 connections send values that are expensive to match, a limited user sends requests. The test belongs
 * to this tier, not to e2e, because the timeout makes it depend on real time.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { fromHeader, startRouteEnvoy } from '../support/envoy/route-envoy.js';
import { seededRandom } from '../support/limiter/seeded-random.js';
import { httpRequest } from '../support/process/http-client.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { Attacker } from './attacker/attacker.js';

const LIMIT = 5;
const CONNECTIONS = 16;
/** Four times as long as Envoy waits, so that late decisions let most requests pass. */
const ATTACK_MS = 1000;
const REQUEST_INTERVAL_MS = 20;
/**
 * Maximum number of attempts; one must pass. On a busy machine, late decisions let more requests pass even without an
 * attack.
 */
const MAX_ATTEMPTS = 3;
/** Below Envoy's highest limit for a header list. */
const VALUE_BYTES = 58_000;

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
const many = 'rate_limit: { unit: minute, requests_per_unit: 1000000 }';

const policy = `domain: edge
derive:
  - entry: group
    from: [path]
    rules:
${numbers(50)
  .map((n) => `      - { path: "/api/v1/*/things${n}", value: g${n} }`)
  .join('\n')}
descriptors:
  # The bucket refills so slowly that no token is added during the test.
  - { key: user, rate_limit: { token_bucket: { max_tokens: ${LIMIT}, tokens_per_fill: 1, fill_interval: 1h } } }
  - { key: group, ${many} }
${numbers(200)
  .map((n) => `  - { key: wild, value: "*x${n}*", share_threshold: true, ${many} }`)
  .join('\n')}
${numbers(10)
  // Automata with many states. Random strings of a and b visit all states.
  .map((n) => `[ab]*a[ab]{${60 + n}}c[ab]*(a|ab|b)*d${n}`)
  .map((pattern) => `  - { key: regex, value_regex: '${pattern}', share_threshold: true, ${many} }`)
  .join('\n')}
`;

/** Accepts header lists as large as Envoy's. */
let upstream: Server;
let weir: WeirServer;
let envoy: Awaited<ReturnType<typeof startRouteEnvoy>>;
let attacker: Attacker;

beforeAll(async () => {
  upstream = createServer({ maxHeaderSize: 131_072 }, (_request, response) => response.end('ok'));
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  weir = await startWeir({ policy });
  const descriptors = [
    fromHeader('x-user', 'user'),
    fromHeader(':path', 'path'),
    fromHeader('x-wild', 'wild'),
    fromHeader('x-regex', 'regex'),
  ];
  envoy = await startRouteEnvoy({
    ...{ domain: 'edge', weirPort: weir.grpcPort, upstreamPort: (upstream.address() as AddressInfo).port },
    ...{ timeout: '0.25s', failureModeDeny: false, maxRequestHeadersKb: 96 },
    routes: [{ path: '/', rateLimits: descriptors.map((action) => ({ actions: [action] })) }],
  });
  attacker = new Attacker();
});

afterAll(async () => {
  await new Promise<void>((resolve) => {
    upstream.close(() => resolve());
    upstream.closeAllConnections();
  });
});

/** Sends an ordinary request of a user. Returns whether the request reached the upstream. */
async function passes(user: string): Promise<boolean> {
  const { status } = await httpRequest(envoy.port, '/api/v1/a/things1', { headers: { 'x-user': user } });
  if (status !== 200 && status !== 429) throw new Error(`Envoy answered ${status}`);
  return status === 200;
}

/** Returns the number of requests of a new user that pass during an attack. */
async function countPassing(request: Buffer, user: string): Promise<number> {
  let isAttacking = true;
  const attack = { kind: 'http', request, pipelined: 1, connections: CONNECTIONS } as const;
  const attacking = attacker.attack({ attacks: [{ attack, port: envoy.port }], ms: ATTACK_MS }).then(() => {
    isAttacking = false;
  });
  const results: Promise<boolean>[] = [];
  while (isAttacking) {
    results.push(passes(user));
    await new Promise((resolve) => setTimeout(resolve, REQUEST_INTERVAL_MS));
  }
  await attacking;
  const { answers } = await attacker.finish();
  // Checks that Envoy accepts the attacker's requests and asks weir about them.
  expect((answers[':200'] ?? 0) + (answers[':429'] ?? 0)).toBeGreaterThan(0);
  expect(Object.keys(answers).filter((what) => what !== ':200' && what !== ':429')).toEqual([]);
  return (await Promise.all(results)).filter((passed) => passed).length;
}

function get(path: string, ...headers: string[]): Buffer {
  return Buffer.from(`${[`GET ${path} HTTP/1.1`, 'host: weir', ...headers].join('\r\n')}\r\n\r\n`);
}

function randomLetters(length: number): string {
  const random = seededRandom(1);
  return Array.from({ length }, () => (random() < 0.5 ? 'a' : 'b')).join('');
}

test.each([
  ['long paths', () => get(`/api/v1/x/${'y/'.repeat(VALUE_BYTES / 2)}`)],
  ['long values for the wildcard *x*', () => get('/', `x-wild: ${'x'.repeat(VALUE_BYTES)}`)],
  ['long values for regular expressions', () => get('/', `x-regex: ${randomLetters(VALUE_BYTES)}`)],
  ['values of 3 KB for regular expressions', () => get('/', `x-regex: ${randomLetters(3000)}`)],
])('%s do not let a limited user pass more often than the limit allows', async (name, request) => {
  const passed: number[] = [];
  for (let attempt = 0; attempt < MAX_ATTEMPTS && !passed.includes(LIMIT); attempt++) {
    passed.push(await countPassing(request(), `${name} ${attempt}`));
  }
  process.stdout.write(`${name}: ${passed.join(', ')} requests passed; the limit is ${LIMIT}\n`);
  expect(passed).toContain(LIMIT);
});
