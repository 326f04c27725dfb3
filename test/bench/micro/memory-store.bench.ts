/*
 * Buckets in memory: a take among 1, 1,000 and a million buckets, longest pauses while a million new tenants arrive,
 * memory per idle bucket. Requests make their bucket's name from its parts, so the takes do too; what that costs alone
 * stands beside them. `node build/test/bench/micro/memory-store.bench.js [part of a name …]`
 */

import { getHeapSpaceStatistics } from 'node:v8';
import { systemClock } from '../../../src/limiter/clock.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { type Figure, type MicroCase, median, QUICK, runCases } from './measure.js';

const MANY = QUICK ? 50_000 : 1_000_000;
const ROUNDS = QUICK ? 1 : 3;

/** Refills so slowly that no bucket is full again within the run. */
const RATE = tokenBucketRate(800_000, 1, UNIT_MICROS.hour);

function newStore(): MemoryStore {
  return new MemoryStore({ ...MEMORY, clock: systemClock, maxBuckets: 2 * MANY });
}

/** A name as requests make it, never the same string object twice. */
function keyOf(tenant: number): string {
  const name = `tenant-${1_000_000 + tenant}`;
  return `8:open-api6:tenant${name.length}:${name}14:resource_group10:user-chats`;
}

function take(store: MemoryStore, key: string): number {
  return store.take([{ key, tagLength: 33, rate: RATE, hits: 1, refund: false, enforcement: 'enforce' }])[0]!
    .remaining;
}

function takes(tenants: number): MicroCase {
  return () => {
    const store = newStore();
    for (let tenant = 0; tenant < tenants; tenant++) take(store, keyOf(tenant));
    return () => take(store, keyOf(Math.floor(Math.random() * tenants)));
  };
}

/** Resident memory without V8's young generation, which grows and shrinks as it likes. */
function settledBytes(): number {
  const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
  return process.memoryUsage.rss() - (young?.physical_space_size ?? 0);
}

/** Takes between two looks at the clocks. */
const STEP = 16;

/**
 * Adds `MANY` tenants; returns the times between looks, longest first, in ms: wall time, or the CPU time of the process
 * where that is less, as then something else had the processor.
 */
function arrivals(store: MemoryStore): { gaps: Float64Array; bytesPerBucket: number } {
  const gaps = new Float64Array(MANY / STEP);
  let half = 0;
  let last = performance.now();
  let lastCpu = process.cpuUsage();
  for (let i = 0; i < MANY; i++) {
    take(store, keyOf(i));
    if (i % STEP !== STEP - 1) continue;
    const cpu = process.cpuUsage(lastCpu);
    const wall = performance.now() - last;
    gaps[(i - (STEP - 1)) / STEP] = Math.min(wall, (cpu.user + cpu.system) / 1000);
    // By now the process has all that is no part of a bucket.
    if (i === MANY / 2 - 1) half = settledBytes();
    last = performance.now();
    lastCpu = process.cpuUsage();
  }
  const bytesPerBucket = (settledBytes() - half) / (MANY / 2);
  return { gaps: gaps.sort().reverse(), bytesPerBucket };
}

function collectGarbage(): void {
  (globalThis as { gc?: () => void }).gc?.();
}

function growth(): Figure[] {
  const warm = takes(1000)();
  for (let call = 0; call < 300_000; call++) warm(call);
  const longest: number[] = [];
  const long: number[] = [];
  let memory = 0;
  let estimate = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const store = newStore();
    collectGarbage();
    const { gaps, bytesPerBucket } = arrivals(store);
    // Later rounds find the memory of those before.
    if (round === 0) memory = bytesPerBucket;
    estimate = store.bytes / MANY;
    longest.push(gaps[0] as number);
    long.push(gaps.findIndex((gap) => gap < 1));
  }
  return [
    { name: 'memory per idle bucket, key of 65 characters', value: memory, unit: 'bytes' },
    { name: 'the same by the estimate', value: estimate, unit: 'bytes' },
    { name: `longest pause while ${MANY} tenants arrive`, value: median(longest), unit: 'ms' },
    { name: 'pauses of a millisecond and more in it', value: median(long), unit: '' },
  ];
}

runCases(__filename, {
  'the name alone': () => (call) => keyOf(call % 1000).charCodeAt(0),
  'take, 1 bucket': takes(1),
  'take, 1,000 buckets': takes(1000),
  [`take, ${MANY} buckets`]: takes(MANY),
  'a million tenants arrive': { figures: growth },
});
