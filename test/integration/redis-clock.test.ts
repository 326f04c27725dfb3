/* Tests REDIS_CLOCK with Redis servers that hide the time from scripts, or from all clients. */

import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { StorageError, type TakeResult } from '../../src/limiter/bucket-store.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import { redisKey } from '../../src/storage/redis/redis-key.js';
import type { RedisClock } from '../../src/storage/redis/redis-store-options.js';
import { SteppingClockTopology } from '../chaos/topology/stepping-clock-topology.js';
import { REDIS } from '../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { toolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';
import { startTwoLoginRelay } from '../support/redis/two-login-relay.js';

// Redis can be slow to start on a busy machine.
jest.setTimeout(60_000);

const USER = { username: 'weir', password: 'pw' };
const LOGIN = `${USER.username}:${USER.password}@`;
const NO_TIME = ['+@all', '-time'];

const SERVERS = ['redis-server', 'redis-server-old', 'valkey-server'] as const;

/** Key of the bucket `stepped`. */
const KEY = redisKey(takeItem('stepped', HUNDRED));

const toStop: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of toStop.splice(0).reverse()) await stop();
});

/** Starts a Redis; returns it with a client of the default user, next to USER with these rights. */
async function start(
  rights: readonly string[] = ['+@all'],
  tool: (typeof SERVERS)[number] = 'redis-server',
  args: readonly string[] = [],
) {
  const server = await startRedis({ args, binary: toolPath(tool) });
  toStop.push(() => server.stop());
  const admin = new Redis(server.port, '127.0.0.1');
  toStop.push(() => admin.disconnect());
  await admin.call('ACL', 'SETUSER', USER.username, 'on', `>${USER.password}`, '~*', ...rights);
  return { port: server.port, admin };
}

interface Opened {
  readonly store: SingleRedisStore;
  readonly log: string[];
  readonly faults: string[];
  take(hits?: number): Promise<string>;
}

function open(port: number, clockOf: RedisClock, login = ''): Opened {
  const log: string[] = [];
  const faults: string[] = [];
  const store = new SingleRedisStore({
    ...REDIS,
    clockOf,
    address: parseRedisUrl(`redis://${login}127.0.0.1:${port}`),
    log: (level, message) => log.push(`${level}: ${message}`),
    observeFault: (fault) => faults.push(fault),
  });
  toStop.push(() => store.close());
  const take = async (hits = 1): Promise<string> => {
    const result: TakeResult = await store.take([takeItem('a', HUNDRED, { hits })], Infinity);
    if (result instanceof StorageError) return result.reason;
    return result[0]?.limited === true ? 'limited' : 'passed';
  };
  return { store, log, faults, take };
}

/** Returns the number of TIME commands outside of scripts. */
async function timesAsked(admin: Redis): Promise<number> {
  return Number(/cmdstat_time:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1] ?? 0);
}

describe.each(SERVERS)('%s', (tool) => {
  test.each([
    ['whose user may not ask for the time', NO_TIME, LOGIN, []],
    ['that has no TIME', ['+@all'], '', ['--rename-command', 'TIME', '']],
  ])("%s: weir uses the machine's clock, and reports it once", async (_, rights, login, args) => {
    const { port, admin } = await start(rights, tool, args);
    const { store, log, faults, take } = open(port, 'auto', login);
    await store.reached;
    expect(await take(100)).toBe('passed');
    expect(await take(100)).toBe('limited');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await waitFor('a new connection', () => store.connections.opened === 2 && store.connected);
    expect(await take(100)).toBe('limited');
    const warnings = log.filter((line) => line.startsWith('warn:') && !line.endsWith('is up'));
    expect(warnings).toEqual([
      expect.stringMatching(
        /does not allow scripts to read the time; weir now passes .* REDIS_CLOCK=caller \(NOTIME .+\)$/,
      ),
      expect.stringMatching(
        /does not report the time; weir uses this machine's clock instead; synchronize .*\)$/,
      ),
    ]);
    expect(faults.filter((fault) => fault !== 'lost')).toEqual([]);
  });

  test('with REDIS_CLOCK=server: fails with an error that names the setting', async () => {
    const { port } = await start(NO_TIME, tool);
    const { log, faults, take } = open(port, 'server', LOGIN);
    await waitFor('the fault', () => faults.includes('no_time'));
    expect(await take()).toMatch(/breaker_open|disconnected/);
    expect(log[0]).toMatch(/does not allow scripts to read the time \(TIME\); set REDIS_CLOCK=caller/);
  });

  test('with REDIS_CLOCK=caller: asks Redis for its time at the start, and not while there are no calls', async () => {
    const { port, admin } = await start(['+@all'], tool);
    const before = await timesAsked(admin);
    const { store, log, take } = open(port, 'caller');
    await store.reached;
    for (let i = 0; i < 100; i++) expect(await take()).toBe('passed');
    expect((await timesAsked(admin)) - before).toBe(1);
    expect(log.filter((line) => !line.includes('is up'))).toEqual([]);
  });
});

test('asks outside of scripts if Redis refuses TIME to scripts only', async () => {
  const { port } = await start(NO_TIME);
  const relay = await startTwoLoginRelay(port, USER, ['time']);
  toStop.push(() => relay.close());
  const { store, log, take } = open(relay.port, 'auto');
  await store.reached;
  expect(await take(100)).toBe('passed');
  expect(await take()).toBe('limited');
  expect(relay.commands.filter((name) => name === 'time')).toHaveLength(1);
  expect(log.filter((line) => line.startsWith('warn:'))).toHaveLength(1);
});

test('survives a Redis that begins to refuse TIME: no call fails, and no bucket changes', async () => {
  const { port, admin } = await start();
  const { store, log, faults, take } = open(port, 'auto', LOGIN);
  await store.reached;
  expect(await take(60)).toBe('passed');
  expect(await timesAsked(admin)).toBeGreaterThan(0);
  await admin.call('ACL', 'SETUSER', USER.username, '-time');
  expect(await Promise.all(Array.from({ length: 4 }, () => take(10)))).toEqual(Array(4).fill('passed'));
  expect(await take(10)).toBe('limited');
  expect(faults).toEqual([]);
  expect(log.filter((line) => line.includes('does not allow scripts to read the time'))).toHaveLength(1);
});

test('servers with and without the time share a bucket in any order', async () => {
  const { port } = await start();
  const perSecond = 2000;
  const rate = tokenBucketRate(10, perSecond, 1_000_000);
  const both = [open(port, 'server').store, open(port, 'caller').store];
  await Promise.all(both.map((store) => store.reached));
  const began = performance.now();
  let passed = 0;
  for (let i = 0; i < 3000; i++) {
    const result = await both[i % 2]?.take([takeItem('shared', rate)], Infinity);
    if (!(result instanceof StorageError) && result?.[0]?.limited === false) passed++;
  }
  const seconds = (performance.now() - began) / 1000;
  expect(passed).toBeLessThanOrEqual(10 + perSecond * (seconds + 0.01));
});

const steppingTest = SteppingClockTopology.isPossible() ? test : test.skip;

steppingTest('with REDIS_CLOCK=caller the steps of its clock are waited for, or followed', async () => {
  const topology = await SteppingClockTopology.start();
  toStop.push(() => topology.stop());
  const { store } = open(topology.master.port, 'caller');
  await store.reached;
  const hourly = tokenBucketRate(100, 100, 3_600_000_000);
  const take = async (hits: number) => {
    const result = await store.take([takeItem('stepped', hourly, { hits })], Infinity);
    if (result instanceof StorageError) throw result;
    return result[0];
  };
  /** A new connection asks for the time, which its calls then use. */
  const ask = async (): Promise<void> => {
    const { opened } = store.connections;
    await topology.master.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await waitFor('a new connection', () => store.connections.opened > opened && store.connected);
  };
  expect(await take(100)).toMatchObject({ limited: false });
  expect(await take(1)).toMatchObject({ limited: true });
  await topology.step(-900);
  await ask();
  // If the time had gone back, the bucket would be at its minimum.
  expect((await take(1))?.waitMicros).toBeLessThan(36_000_000);
  expect(await take(1)).toMatchObject({ limited: true });
  await topology.step(3_600_000);
  await ask();
  expect(await take(100)).toMatchObject({ limited: false });
  await topology.step(0);
  for (let i = 0; i < 3; i++) {
    await ask();
    expect(await take(1)).toMatchObject({ limited: true });
    const before = Number((await topology.master.command('GET', KEY))?.toString().split(':')[1]);
    const ahead = before / 1e6 - Date.now() / 1000;
    // The bucket follows the time after the step once that time is certain, and the earlier time until then.
    if (i < 2) expect(ahead).toBeGreaterThan(7000);
    else expect(ahead).toBeLessThan(3700);
  }
});
