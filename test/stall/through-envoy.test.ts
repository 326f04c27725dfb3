/*
 * What an attacker outside has of it: behind a real Envoy that waits 0.25 s for a decision and lets through what comes
 * without one, 16 connections send what is dear to match, and a limited user asks all the while. It stands here, and
 * not in e2e, as 0.25 s are real time.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { fromHeader, startRouteEnvoy } from '../support/envoy/route-envoy.js';
import { seededRandom } from '../support/limiter/seeded-random.js';
import { httpRequest } from '../support/process/http-client.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { Attacker } from './attack/attacker.js';
import { costlyPatterns } from './policy-texts.js';

const LIMIT = 5;
const CONNECTIONS = 16;
const ATTACK_MS = 3000;
const ASK_EVERY_MS = 50;
/**
 * Where a busy machine makes a decision late, the user gets more without any attack: the best of so many tries counts.
 */
const TRIES = 3;
/** Below the largest header list that Envoy can be made to take. */
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
  # The bucket refills so slowly that nothing comes back during the test.
  - { key: user, rate_limit: { token_bucket: { max_tokens: ${LIMIT}, tokens_per_fill: 1, fill_interval: 1h } } }
  - { key: group, ${many} }
${numbers(200)
  .map((n) => `  - { key: wild, value: "*x${n}*", share_threshold: true, ${many} }`)
  .join('\n')}
${costlyPatterns()
  .map(
    (pattern) =>
      `  - { key: regex, value_regex: ${JSON.stringify(pattern)}, share_threshold: true, ${many} }`,
  )
  .join('\n')}
`;

/** Takes header lists as long as Envoy's. */
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
}, 60_000);

afterAll(async () => {
  await attacker?.close();
  await envoy?.stop();
  await weir?.stop();
  await new Promise<void>((resolve) => {
    upstream.close(() => resolve());
    upstream.closeAllConnections();
  });
});

/** A usual request of a user; whether it reached the upstream. */
async function passes(user: string): Promise<boolean> {
  const { status } = await httpRequest(envoy.port, '/api/v1/a/things1', { headers: { 'x-user': user } });
  if (status !== 200 && status !== 429) throw new Error(`Envoy answers ${status}`);
  return status === 200;
}

/** How many requests of a fresh user pass while the attack goes on. */
async function passesDuring(request: Buffer, user: string): Promise<number> {
  let attacks = true;
  const attack = { kind: 'http', port: 'other', request, pipelined: 1 } as const;
  const attacking = attacker
    .attack({ attack, port: envoy.port, connections: CONNECTIONS, ms: ATTACK_MS })
    .then(() => {
      attacks = false;
    });
  const asked: Promise<boolean>[] = [];
  while (attacks) {
    asked.push(passes(user));
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
  }
  await attacking;
  const { answers } = await attacker.letGo();
  // The attack is what it should be: requests that Envoy takes and asks weir about.
  expect((answers[':200'] ?? 0) + (answers[':429'] ?? 0)).toBeGreaterThan(0);
  expect(Object.keys(answers).filter((what) => what !== ':200' && what !== ':429')).toEqual([]);
  return (await Promise.all(asked)).filter((passed) => passed).length;
}

function get(path: string, ...headers: string[]): Buffer {
  return Buffer.from(`${[`GET ${path} HTTP/1.1`, 'host: weir', ...headers].join('\r\n')}\r\n\r\n`);
}

function chance(length: number): string {
  const random = seededRandom(1);
  return Array.from({ length }, () => (random() < 0.5 ? 'a' : 'b')).join('');
}

test.each([
  ['long paths', () => get(`/api/v1/x/${'y/'.repeat(VALUE_BYTES / 2)}`)],
  ['long values for *x*', () => get('/', `x-wild: ${'x'.repeat(VALUE_BYTES)}`)],
  ['long values for expressions', () => get('/', `x-regex: ${chance(VALUE_BYTES)}`)],
  ['values of 3 KB for expressions', () => get('/', `x-regex: ${chance(3000)}`)],
])(
  '%s let no limited user pass more often than its limit says',
  async (name, request) => {
    const found: number[] = [];
    for (let tries = 0; tries < TRIES && !found.includes(LIMIT); tries++) {
      found.push(await passesDuring(request(), `${name} ${tries}`));
    }
    process.stdout.write(`${name}: ${found.join(', ')} of a limit of ${LIMIT} passed\n`);
    expect(found).toContain(LIMIT);
  },
  120_000,
);
