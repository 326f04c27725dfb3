/*
 * The memory store: a take with 1, 1,000 and a million buckets, the longest pauses while a million new tenants arrive,
 * and the memory of an idle bucket. Each take builds the name of its bucket, as a request does. Another case measures
 * the cost of the names. To run it: `node build/test/bench/micro/memory-store.bench.js [part of a name …]`.
 */

import { getHeapSpaceStatistics } from 'node:v8';
import { systemClock } from '../../../src/limiter/clock.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { type Measurement, type MicroCase, median, QUICK, runCases } from './measure.js';

const MANY = QUICK ? 50_000 : 1_000_000;
const ROUNDS = QUICK ? 1 : 3;

/** Refills so slowly that no bucket becomes full during the run. */
const RATE = tokenBucketRate(800_000, 1, UNIT_MICROS.hour);

function newStore(): MemoryStore {
  return new MemoryStore({ ...MEMORY, clock: systemClock, maxBuckets: 2 * MANY });
}

/** Builds the name of a bucket, as a request does, as a new string object. */
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

/** Returns the resident memory without V8's young generation, whose size varies. */
function settledBytes(): number {
  const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
  return process.memoryUsage.rss() - (young?.physical_space_size ?? 0);
}

/** Number of takes between two readings of the clocks. */
const TAKES_PER_SAMPLE = 16;

/**
 * Adds `MANY` tenants. Returns the times between samples in milliseconds, in descending order. A time is the wall time,
 * or the CPU time of the process if that is less, because other processes used the processor then.
 */
function addTenants(store: MemoryStore): { gaps: Float64Array; bytesPerBucket: number } {
  const gaps = new Float64Array(MANY / TAKES_PER_SAMPLE);
  let bytesAtHalf = 0;
  let last = performance.now();
  let lastCpu = process.cpuUsage();
  for (let i = 0; i < MANY; i++) {
    take(store, keyOf(i));
    if (i % TAKES_PER_SAMPLE !== TAKES_PER_SAMPLE - 1) continue;
    const cpu = process.cpuUsage(lastCpu);
    const wall = performance.now() - last;
    gaps[(i - (TAKES_PER_SAMPLE - 1)) / TAKES_PER_SAMPLE] = Math.min(wall, (cpu.user + cpu.system) / 1000);
    // The memory that the process needs for purposes other than buckets no longer grows.
    if (i === MANY / 2 - 1) bytesAtHalf = settledBytes();
    last = performance.now();
    lastCpu = process.cpuUsage();
  }
  const bytesPerBucket = (settledBytes() - bytesAtHalf) / (MANY / 2);
  return { gaps: gaps.sort().reverse(), bytesPerBucket };
}

function collectGarbage(): void {
  (globalThis as { gc?: () => void }).gc?.();
}

function measureArrivals(): Measurement[] {
  const warm = takes(1000)();
  for (let call = 0; call < 300_000; call++) warm(call);
  const longest: number[] = [];
  const longCount: number[] = [];
  let memory = 0;
  let estimate = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const store = newStore();
    collectGarbage();
    const { gaps, bytesPerBucket } = addTenants(store);
    // Later rounds reuse the memory of the first round.
    if (round === 0) memory = bytesPerBucket;
    estimate = store.bytes / MANY;
    longest.push(gaps[0] as number);
    longCount.push(gaps.findIndex((gap) => gap < 1));
  }
  return [
    { name: 'memory per idle bucket, key of 65 characters', value: memory, unit: 'bytes' },
    { name: 'memory per idle bucket, as estimated by the store', value: estimate, unit: 'bytes' },
    { name: `longest pause while ${MANY} tenants arrive`, value: median(longest), unit: 'ms' },
    { name: 'number of pauses of at least a millisecond', value: median(longCount), unit: '' },
  ];
}

runCases(__filename, {
  'the name alone': () => (call) => keyOf(call % 1000).charCodeAt(0),
  'take, 1 bucket': takes(1),
  'take, 1,000 buckets': takes(1000),
  [`take, ${MANY} buckets`]: takes(MANY),
  'a million tenants arrive': { measure: measureArrivals },
});
