/*
 * Ends requests in each possible way behind real Envoys, and checks how their holds end. The tests choose when and how
 * the upstream responds, and read the number of requests in flight from weir.
 */
import { request } from 'node:http';
import type { Duplex } from 'node:stream';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { CALLERS, type Caller, http1Caller, type OpenRequest } from '../../support/envoy/caller.js';
import { EXPORT_KEYS, exportsPolicy, startHoldEnvoy } from '../../support/envoy/hold-envoy.js';
import { HoldPeeks } from '../../support/envoy/hold-peeks.js';
import type { RouteEnvoy } from '../../support/envoy/route-envoy.js';
import { ScriptedUpstream, type UpstreamCall } from '../../support/envoy/scripted-upstream.js';
import { waitFor } from '../../support/process/wait-for.js';
import { scrape, sumOf } from '../../support/prometheus/metrics-text.js';
import { type PausableProxy, startPausableProxy } from '../../support/redis/pausable-proxy.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';

const BRIEF_MS = 1000;

let upstream: ScriptedUpstream;
let weir: WeirServer;
let toWeir: PausableProxy;
let peeks: HoldPeeks;
/** The first one calls weir through `toWeir`. */
let envoys: readonly [RouteEnvoy, RouteEnvoy];

beforeAll(async () => {
  [upstream, weir] = await Promise.all([
    ScriptedUpstream.start(),
    startWeir({ policy: exportsPolicy(BRIEF_MS) }),
  ]);
  toWeir = await startPausableProxy(weir.grpcPort);
  peeks = new HoldPeeks('exports', weir.grpcPort);
  const options = { domain: 'exports', upstreamPort: upstream.port, keys: EXPORT_KEYS };
  envoys = await Promise.all([
    startHoldEnvoy({ ...options, weirPort: toWeir.port }),
    startHoldEnvoy({ ...options, weirPort: weir.grpcPort }),
  ]);
});

let callers = 0;
/** Returns the name of a caller that no other test uses. */
const freshName = () => `caller-${callers++}`;
const headers = (id: string, key = 'tenant') => ({ [key]: id, 'x-id': id });

/** A way in which a request ends. */
interface Ending {
  readonly name: string;
  readonly path?: string;
  readonly status: number | undefined;
  /** Number of holds of the request, one after the other; default 1. */
  readonly holds?: number;
  /** Ends a request; `left` returns the number of free slots of two. */
  end(call: UpstreamCall, open: OpenRequest, id: string): void | Promise<void>;
}

const left = (id: string) => peeks.left(`tenant=${id}`);

/** Returns how many holds weir placed, and how many ended in which way. */
async function holdCounts() {
  const metrics = await scrape(weir);
  const count = (event: string) => (metrics ? sumOf(metrics, `weir_holds_${event}_total`) : Number.NaN);
  return { placed: count('placed'), settled: count('settled'), released: count('released') };
}

const ENDINGS: readonly Ending[] = [
  { name: 'a response 200', status: 200, end: (call) => call.answer(200) },
  { name: 'a response 503', status: 503, end: (call) => call.answer(503) },
  { name: 'a client that leaves before the response', status: undefined, end: (_call, open) => open.abort() },
  {
    name: 'a client that leaves during the response',
    status: 200,
    async end(call, open) {
      call.begin(200);
      await open.status;
      open.abort();
    },
  },
  { name: 'an upstream that resets before its response', status: 503, end: (call) => call.reset() },
  {
    name: 'an upstream that resets during its response',
    status: 200,
    async end(call, open) {
      call.begin(200);
      await open.status;
      call.reset();
    },
  },
  { name: 'the timeout of the route', path: '/timeout', status: 504, end: () => {} },
  {
    name: 'a retry, which needs no further slot',
    path: '/retry',
    status: 200,
    async end(call, _open, id) {
      call.answer(503);
      const retried = await upstream.next(id);
      expect(await left(id)).toBe(1);
      retried.answer(200);
    },
  },
  {
    name: 'an internal redirect, whose first request ends before the second one starts',
    path: '/redirect',
    status: 200,
    holds: 2,
    async end(call, _open, id) {
      call.answer(302, { location: `http://127.0.0.1:${envoys[0].port}/redirect/again` });
      const redirected = await upstream.next(id);
      expect(redirected.path).toBe('/redirect/again');
      expect(await left(id)).toBe(1);
      redirected.answer(200);
    },
  },
];

describe.each(CALLERS)('over %s', (_protocol, callerOf) => {
  let caller: Caller;
  beforeAll(() => {
    caller = callerOf(envoys[0].port);
  });

  test.each(ENDINGS)('frees the slot after $name', async ({ path = '/', status, holds = 1, end }) => {
    const id = freshName();
    const { placed, settled, released } = await holdCounts();
    const open = caller.get(path, headers(id));
    const call = await upstream.next(id);
    expect(await left(id)).toBe(1);
    await end(call, open, id);
    expect(await open.status).toBe(status);
    await peeks.until(`tenant=${id}`, 2);
    expect(await holdCounts()).toEqual({ placed: placed + holds, settled: settled + holds, released });
  });

  test('denies a request without a free slot, whose end frees nothing', async () => {
    const id = freshName();
    const open = [caller.get('/', headers(id)), caller.get('/', headers(id))];
    const calls = [await upstream.next(id), await upstream.next(id)];
    const denied = caller.get('/', headers(id));
    expect(await denied.status).toBe(429);
    await denied.over;
    expect(await left(id)).toBe(0);
    for (const [ended, call] of calls.entries()) {
      call.answer(200);
      await peeks.until(`tenant=${id}`, ended + 1);
    }
    expect(await Promise.all(open.map(({ status }) => status))).toEqual([200, 200]);
    expect(upstream.waiting(id)).toEqual([]);
  });

  test('frees the holds of a client that leaves after the answer of weir, before Envoy receives it', async () => {
    const id = freshName();
    const { placed, settled, released } = await holdCounts();
    toWeir.pause('replies');
    try {
      const open = caller.get('/', { ...headers(id), budget: id });
      await peeks.until(`tenant=${id}`, 1);
      expect(await peeks.left(`budget=${id}`)).toBe(95);
      open.abort();
      await peeks.until(`tenant=${id}`, 2);
      await peeks.until(`budget=${id}`, 100);
    } finally {
      toWeir.resume();
    }
    expect(await holdCounts()).toEqual({ placed: placed + 2, settled, released: released + 2 });
    expect(upstream.waiting(id)).toEqual([]);
  });
});

test('counts the requests of two Envoys together', async () => {
  const id = freshName();
  const both = envoys.map((envoy) => http1Caller(envoy.port));
  const open = both.map((caller) => caller.get('/', headers(id)));
  const calls = [await upstream.next(id), await upstream.next(id)];
  for (const caller of both) expect(await caller.get('/', headers(id)).status).toBe(429);
  for (const call of calls) call.answer(200);
  expect(await Promise.all(open.map(({ status }) => status))).toEqual([200, 200]);
  await peeks.until(`tenant=${id}`, 2);
});

/** Opens a WebSocket, and returns it with the times between which its hold was placed. */
async function openSocket(id: string, key?: string) {
  const before = performance.now();
  const outgoing = request({
    host: '127.0.0.1',
    port: envoys[0].port,
    path: '/socket',
    headers: { ...headers(id, key), connection: 'Upgrade', upgrade: 'websocket' },
  });
  const opened = new Promise<Duplex>((resolve, reject) => {
    outgoing.once('upgrade', (_answer, socket) => resolve(socket)).once('error', reject);
  });
  outgoing.end();
  const call = await upstream.next(id);
  const after = performance.now();
  call.upgrade();
  const socket = await opened;
  return { socket, call, before, after };
}

/** Sends a text through the socket, and waits for its echo. */
async function echo(socket: Duplex, text: string): Promise<void> {
  socket.write(text);
  await waitFor(`the echo of ${text}`, () => String(socket.read() ?? '').includes(text) || undefined);
}

test('holds the slot of a WebSocket until it is closed', async () => {
  const id = freshName();
  const { socket, call } = await openSocket(id);
  await echo(socket, 'hello');
  expect(await left(id)).toBe(1);
  socket.destroy();
  await call.over;
  await peeks.until(`tenant=${id}`, 2);
});

test('frees the slot of a WebSocket that outlives expires_after, and its end frees no other slot', async () => {
  const id = freshName();
  const { socket, call, before, after } = await openSocket(id, 'brief');
  await peeks.untilExpired(`brief=${id}`, 2, BRIEF_MS, { before, after });
  await echo(socket, 'still open');
  const others = [await openSocket(id, 'brief'), await openSocket(id, 'brief')];
  socket.destroy();
  await call.over;
  // Both slots are occupied until they expire.
  for (const [expired, times] of others.entries()) {
    await peeks.untilExpired(`brief=${id}`, expired + 1, BRIEF_MS, times);
  }
  for (const other of others) other.socket.destroy();
});

test('frees the slots of a killed Envoy when they expire', async () => {
  const id = freshName();
  const caller = http1Caller(envoys[1].port);
  const before = performance.now();
  const open = [caller.get('/', headers(id, 'brief')), caller.get('/', headers(id, 'brief'))];
  await upstream.next(id);
  await upstream.next(id);
  const after = performance.now();
  await envoys[1].stop('SIGKILL');
  expect(await Promise.all(open.map(({ status }) => status))).toEqual([undefined, undefined]);
  await peeks.untilExpired(`brief=${id}`, 2, BRIEF_MS, { before, after });
  caller.close();
});
