/*
 * Checks holds in Redis behind a real Envoy while weir or Redis is slow, or is killed and started again.
 */
import { beforeAll, expect, test } from '@jest/globals';
import { type Caller, http1Caller } from '../../support/envoy/caller.js';
import { EXPORT_KEYS, exportsPolicy, startHoldEnvoy } from '../../support/envoy/hold-envoy.js';
import { HoldPeeks } from '../../support/envoy/hold-peeks.js';
import type { RouteEnvoy } from '../../support/envoy/route-envoy.js';
import { ScriptedUpstream, type UpstreamCall } from '../../support/envoy/scripted-upstream.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type PausableProxy, startPausableProxy } from '../../support/redis/pausable-proxy.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';

const BRIEF_MS = 2000;

let upstream: ScriptedUpstream;
let redis: RedisServer;
let toRedis: PausableProxy;
let toWeir: PausableProxy;
let weir: WeirServer;
let envoy: RouteEnvoy;
let caller: Caller;
let peeks: HoldPeeks;

const start = (ports?: WeirServer) =>
  startWeir({
    policy: exportsPolicy(BRIEF_MS),
    env: { REDIS_URL: `redis://127.0.0.1:${toRedis.port}` },
    ...(ports !== undefined && { ports }),
  });

beforeAll(async () => {
  [upstream, redis] = await Promise.all([
    ScriptedUpstream.start(),
    startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] }),
  ]);
  toRedis = await startPausableProxy(redis.port);
  weir = await start();
  toWeir = await startPausableProxy(weir.grpcPort);
  peeks = new HoldPeeks('exports', weir.grpcPort);
  envoy = await startHoldEnvoy({
    domain: 'exports',
    weirPort: toWeir.port,
    upstreamPort: upstream.port,
    keys: EXPORT_KEYS,
    timeout: '1s',
  });
  caller = http1Caller(envoy.port);
});

let callers = 0;
const freshName = () => `caller-${callers++}`;
const headers = (id: string, key = 'tenant') => ({ [key]: id, 'x-id': id });

/** Opens requests, and waits until each of them is at the upstream. */
async function openRequests(id: string, count: number, key?: string) {
  const before = performance.now();
  const names = Array.from({ length: count }, (_, i) => `${id}-${i}`);
  const open = names.map((name) => caller.get('/', { ...headers(id, key), 'x-id': name }));
  const calls: UpstreamCall[] = [];
  for (const name of names) calls.push(await upstream.next(name));
  return { open, calls, before, after: performance.now() };
}

test.each(['requests', 'replies'] as const)(
  'frees the holds of a client that leaves while weir decides, with paused Redis %s',
  async (what) => {
    const id = freshName();
    toRedis.pause(what);
    const open = caller.get('/', { ...headers(id), budget: id });
    await waitFor('the call to Redis', () => toRedis.received > 0 || undefined);
    const { received } = toWeir;
    open.abort();
    await waitFor('the reset of the call', () => toWeir.received > received || undefined);
    toRedis.resume();
    // Redis answers weir in order, so it places the hold before it answers this peek.
    await peeks.until(`tenant=${id}`, 2);
    await peeks.until(`budget=${id}`, 100);
    expect(upstream.waiting(id)).toEqual([]);
  },
);

test.each(['requests', 'replies'] as const)(
  'frees the slot of a request that weir does not decide in time, with paused Redis %s',
  async (what) => {
    const id = freshName();
    toRedis.pause(what);
    expect(await caller.get('/', headers(id)).status).toBe(500);
    toRedis.resume();
    await peeks.until(`tenant=${id}`, 2);
    const { open, calls } = await openRequests(id, 2);
    for (const call of calls) call.answer(200);
    expect(await Promise.all(open.map(({ status }) => status))).toEqual([200, 200]);
    await peeks.until(`tenant=${id}`, 2);
  },
);

test('keeps the holds of a killed Redis that writes each change, and settles them when it is back', async () => {
  const id = freshName();
  const { open, calls } = await openRequests(id, 2);
  await redis.kill();
  // weir cannot decide, so failure_mode_deny applies.
  expect(await caller.get('/', headers(id)).status).toBe(500);
  calls[0]?.answer(200);
  expect(await open[0]?.status).toBe(200);
  await redis.restart();
  await peeks.until(`tenant=${id}`, 1);
  calls[1]?.answer(200);
  await peeks.until(`tenant=${id}`, 2);
});

// The last test, because its weir ends with it.
test('settles at a weir that was killed and started again, and frees the other slots when they expire', async () => {
  const id = freshName();
  const kept = await openRequests(id, 2);
  const brief = await openRequests(id, 1, 'brief');
  await weir.stop('SIGKILL');
  weir = await start(weir);
  peeks = new HoldPeeks('exports', weir.grpcPort);
  await peeks.until(`tenant=${id}`, 0);
  kept.calls[0]?.answer(200);
  expect(await kept.open[0]?.status).toBe(200);
  await peeks.until(`tenant=${id}`, 1);
  await peeks.untilExpired(`brief=${id}`, 2, BRIEF_MS, brief);
  kept.calls[1]?.answer(200);
  await peeks.until(`tenant=${id}`, 2);
  brief.open[0]?.abort();
});
