import { getHeapSpaceStatistics } from 'node:v8';
import { systemClock } from '../../../src/limiter/clock.js';
import { tokenBucketRate, UNIT_MICROS } from '../../../src/limiter/rate.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { isQuick, measureWithout, median, report } from './measure.js';

/**
 * Buckets in memory: CPU time of a take among 1, 1,000 and a million buckets, longest pauses while a million new tenants arrive,
 * memory per idle bucket (RSS).
 */
const MANY = isQuick() ? 50_000 : 1_000_000;
const ROUNDS = isQuick() ? 1 : 3;

/** Refills so slowly that no bucket is full again within the run. */
const RATE = tokenBucketRate(800_000, 1, UNIT_MICROS.hour);

function newStore(): MemoryStore {
  return new MemoryStore({ clock: systemClock, maxBuckets: 2 * MANY });
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

/** Takes of tenants at random below `tenants`; without a store only what the loop costs. */
function takes(store: MemoryStore | undefined, tenants: number): (times: number) => number {
  return (times) => {
    let sum = 0;
    for (let i = 0; i < times; i++) {
      const key = keyOf(Math.floor(Math.random() * tenants));
      sum += store === undefined ? key.length : take(store, key);
    }
    return sum;
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
 * Adds `MANY` tenants; returns the times between looks, longest first, in ms: wall time, or the CPU time of the process where that
 * is less, as then something else had the processor.
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

takes(newStore(), 1000)(1_000_000);
const longest: number[] = [];
const above1: number[] = [];
let store = newStore();
for (let round = 0; round < ROUNDS; round++) {
  store = newStore();
  collectGarbage();
  const { gaps, bytesPerBucket } = arrivals(store);
  // Later rounds find the memory of those before.
  if (round === 0) {
    report('memory per idle bucket, key of 65 characters, RSS', bytesPerBucket, 'B');
    report('the same by the estimate', store.bytes / MANY, 'B');
  }
  longest.push(gaps[0] as number);
  above1.push(gaps.findIndex((gap) => gap < 1));
}
report(`longest pause while ${MANY} tenants arrive`, median(longest), 'ms');
report('pauses of 1 ms and more in it', median(above1), '');
for (const tenants of [1, 1000, MANY]) {
  const target = tenants === MANY ? store : newStore();
  measureWithout(`take, ${tenants} buckets at random`, takes(target, tenants), takes(undefined, tenants));
}
