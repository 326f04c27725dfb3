/*
 * Holds: the memory of a hold, and the longest pause while 100,000 holds of one bucket expire. To run it: `node
 * build/test/bench/micro/holds.bench.js [part of a name …]`.
 */

import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import type { TakeItem } from '../../../src/limiter/bucket-store.js';
import { systemClock } from '../../../src/limiter/clock.js';
import { concurrencyRate } from '../../../src/limiter/holds/concurrency.js';
import { HOLD_ID_DIGITS, MAX_SLOTS_PER_ITEM } from '../../../src/limiter/holds/hold.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { turn } from '../../../src/runtime/turns.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { parseRedisUrl } from '../../../src/storage/redis/connection/redis-address.js';
import { holdsKey, redisKey } from '../../../src/storage/redis/redis-key.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { holdItem } from '../../support/limiter/hold-items.js';
import { MEMORY, REDIS } from '../../support/limiter/store-options.js';
import { takeItem } from '../../support/limiter/take-items.js';
import { startRedis } from '../../support/redis/redis-server.js';
import { SingleRedisStore } from '../../support/redis/single-stores.js';
import { type Measurement, QUICK, runCases } from './measure.js';

const BUCKET = tokenBucketRate(4_000_000_000, 1_000_000, 1_000_000, 0, Infinity);
const SLOTS = concurrencyRate(4_000_000_000);
const COUNT = QUICK ? 10_000 : 100_000;

const KEYS = Array.from(
  { length: 1000 },
  (_, i) => `5:bench6:tenant8:acme${1000 + i}14:resource_group10:user-chats`,
);

const newId = () => randomBytes(HOLD_ID_DIGITS / 2).toString('hex');
const newStore = (maxBytes = MEMORY.maxBytes) => new MemoryStore({ ...MEMORY, maxBytes, clock: systemClock });

function measureBytes(): Measurement[] {
  const store = newStore(4_000_000_000);
  const bytes = () => process.memoryUsage().arrayBuffers;
  const many = 10 * COUNT;
  const before = bytes();
  for (let i = 0; i < many; i++)
    store.take([holdItem(KEYS[i % KEYS.length] as string, SLOTS, { id: newId() })]);
  return [
    { name: `memory of a hold, ${many} holds`, value: (bytes() - before) / many, unit: 'bytes' },
    { name: 'memory of a hold, as estimated by the store', value: store.bytes / many, unit: 'bytes' },
  ];
}

/** Starts requests with `COUNT` holds of one bucket, 1,000 at a time. */
async function fill(take: (items: readonly TakeItem[]) => unknown, lifetimeMillis: number): Promise<void> {
  for (let count = 0; count < COUNT; count += MAX_SLOTS_PER_ITEM)
    await take([holdItem('a', SLOTS, { id: newId(), hits: MAX_SLOTS_PER_ITEM, lifetimeMillis })]);
}

async function measureExpiryInMemory(): Promise<Measurement[]> {
  const clock = new FakeClock();
  const store = new MemoryStore({ ...MEMORY, clock });
  await fill((items) => store.take(items), 1000);
  clock.advance(1_000_000);
  let longest = 0;
  let turns = 0;
  for (; store.holdCount > 0; turns++) {
    const before = performance.now();
    const cpuBefore = process.cpuUsage();
    // Twenty requests arrive in each turn.
    for (let i = 0; i < 20; i++) store.take([takeItem('a', SLOTS, { hits: 0 })]);
    await turn();
    const cpu = process.cpuUsage(cpuBefore);
    // Other processes used the processor in the rest of the time.
    longest = Math.max(longest, Math.min(performance.now() - before, (cpu.user + cpu.system) / 1000));
  }
  return [
    { name: `longest turn while ${COUNT} holds expire in memory`, value: longest, unit: 'ms' },
    { name: 'turns until their memory is free', value: turns, unit: '' },
  ];
}

async function measureExpiryInRedis(): Promise<Measurement[]> {
  const server = await startRedis();
  const admin = new Redis(server.port, '127.0.0.1');
  const store = new SingleRedisStore({ ...REDIS, address: parseRedisUrl(`127.0.0.1:${server.port}`) });
  await store.reached;
  const usedMemory = async () => Number(/^used_memory:(\d+)/m.exec(await admin.info('memory'))?.[1]);
  const before = await usedMemory();
  const lifetimeMillis = 5000;
  await fill((items) => store.take(items, Infinity), lifetimeMillis);
  const bytes = ((await usedMemory()) - before) / COUNT;
  await admin.flushall('SYNC');
  for (let i = 0; i < COUNT; i += 1000) {
    const reservations = Array.from({ length: 1000 }, () =>
      holdItem('b', BUCKET, { id: newId(), lifetimeMillis: 60_000 }),
    );
    await Promise.all(reservations.map((item) => store.take([item], Infinity)));
  }
  const reservationBytes = ((await usedMemory()) - before) / COUNT;
  await admin.del(redisKey({ key: holdsKey('b'), tagLength: 1 }));
  await fill((items) => store.take(items, Infinity), lifetimeMillis);
  const set = redisKey({ key: 'a', tagLength: 1 });
  while (Number(await admin.zcount(set, `(${Date.now() * 1000}`, '+inf')) > 0)
    await new Promise((resolve) => setTimeout(resolve, 20));
  await admin.config('SET', 'slowlog-log-slower-than', '0');
  await admin.config('SET', 'slowlog-max-len', '10000');
  await admin.slowlog('RESET');
  for (let i = 0; i < 500; i++)
    await store.take([holdItem('a', SLOTS, { id: newId(), lifetimeMillis: 60_000 })], Infinity);
  const calls = (await admin.slowlog('GET', '10000')) as readonly (readonly [
    number,
    number,
    number,
    string[],
  ])[];
  const scripts = calls
    .filter(([, , , [command]]) => command?.toLowerCase() === 'evalsha')
    .map(([, , micros]) => micros);
  await store.close();
  admin.disconnect();
  await server.stop();
  return [
    { name: `memory of a slot in Redis, ${COUNT} in a set`, value: bytes, unit: 'bytes' },
    { name: `memory of a reservation in Redis, ${COUNT} in a set`, value: reservationBytes, unit: 'bytes' },
    {
      name: `longest call while ${COUNT} holds expire in Redis`,
      value: Math.max(...scripts) / 1000,
      unit: 'ms',
    },
  ];
}

runCases(__filename, {
  'memory of a hold': { measure: measureBytes },
  '100,000 holds expire in memory': { measure: measureExpiryInMemory },
  '100,000 holds expire in Redis': { measure: measureExpiryInRedis },
});
