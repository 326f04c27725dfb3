import { StorageError, type TakeItem, type TakeOutcome } from '../../../src/limiter/bucket-store.js';
import { concurrencyRate } from '../../../src/limiter/holds/concurrency.js';
import type { Rate } from '../../../src/limiter/rate.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { parseRedisUrl } from '../../../src/storage/redis/connection/redis-address.js';
import { holdItem, settlementItem } from '../../support/limiter/hold-items.js';
import { REDIS } from '../../support/limiter/store-options.js';
import { takeItem } from '../../support/limiter/take-items.js';
import { startRedis } from '../../support/redis/redis-server.js';
import { SingleRedisStore } from '../../support/redis/single-stores.js';
import { cpuMicros } from '../cpu.js';
import { formatMeasurement, HEADING, type Measurement, median, QUICK } from './measure.js';

/**
 * CPU time per decision of the Redis store and of Redis, in microseconds. The cases differ in the number of decisions
 * in each turn, and use one bucket or 1,000 buckets. In the cases with holds, half of the decisions are settlements.
 * Arguments select cases by parts of their names.
 */
const SIZES = [1, 16, 64, 256];
/** Number of calls that wait for answers at the same time. */
const CALLS_IN_FLIGHT = 2;
const ROUNDS = QUICK ? 1 : 5;
/** The number of decisions is high, because the CPU time of Redis may have a resolution of 10 ms. */
const DECISIONS = QUICK ? 5000 : 40_000;
const RATES = {
  'whole µs a token': tokenBucketRate(4_000_000_000, 1_000_000, 1_000_000),
  'thirds of a µs': tokenBucketRate(4_000_000, 3, 1_000_000),
};

/** Limits of a request, by the prefix of the case's name: one limit, or two limits. */
const LIMITS: Readonly<Record<string, (key: string, rate: Rate) => readonly TakeItem[]>> = {
  '': (key, rate) => [takeItem(key, rate)],
  'two limits, ': (key, rate) => [takeItem(`${key}~5:burst`, rate), takeItem(`${key}~5:daily`, DAILY)],
};
const DAILY = tokenBucketRate(4_000_000_000, 1_000_000, 1_000_000);

/** Limits whose takes hold. Their slots and tokens are never used up. */
const HOLDS: Readonly<Record<string, Rate>> = {
  concurrency: concurrencyRate(4_000_000_000),
  reservation: tokenBucketRate(4_000_000_000, 1_000_000, 1_000_000, 0, Infinity),
};
/** Number of holds that exist at the same time. */
const HELD = 4000;

/** The requests of a case. */
interface Takes {
  next(): readonly TakeItem[];
  ended?(items: readonly TakeItem[], outcomes: readonly TakeOutcome[]): void;
}

/** Sends the same requests again and again. */
function repeated(requests: readonly (readonly TakeItem[])[]): Takes {
  let next = 0;
  return { next: () => requests[next++ % requests.length] as readonly TakeItem[] };
}

/** Starts, each of which is followed by the settlement of an earlier one. */
function startsAndSettlements(keys: readonly string[], rate: Rate): Takes {
  const settlements: TakeItem[] = [];
  let calls = 0;
  let first = 0;
  return {
    next() {
      calls++;
      if (calls % 2 === 0 && settlements.length - first > HELD) return [settlements[first++] as TakeItem];
      return [holdItem(keys[calls % keys.length] as string, rate)];
    },
    ended([item], [outcome]) {
      if (outcome?.hold === 'placed') settlements.push(settlementItem(item as TakeItem, outcome));
    },
  };
}

/** Runs turns of `size` takes until the number of takes reaches `decisions`. */
async function run(store: SingleRedisStore, takes: Takes, size: number, decisions: number): Promise<void> {
  let remainingTurns = Math.ceil(decisions / size);
  const turns = async (): Promise<void> => {
    while (remainingTurns-- > 0) {
      const requests = Array.from({ length: size }, () => takes.next());
      const results = await Promise.all(requests.map((items) => store.take(items, Infinity)));
      if (takes.ended === undefined) continue;
      results.forEach((result, i) => {
        if (result instanceof StorageError) throw result;
        takes.ended?.(requests[i] as readonly TakeItem[], result);
      });
    }
  };
  await Promise.all(Array.from({ length: CALLS_IN_FLIGHT }, turns));
}

async function measure(
  name: string,
  store: SingleRedisStore,
  pid: number,
  takes: Takes,
  size: number,
): Promise<Measurement[]> {
  const weir: number[] = [];
  const redis: number[] = [];
  await run(store, takes, size, DECISIONS / 4);
  for (let round = 0; round < ROUNDS; round++) {
    const weirCpuBefore = process.cpuUsage();
    const redisCpuBefore = cpuMicros(pid);
    await run(store, takes, size, DECISIONS);
    const { user, system } = process.cpuUsage(weirCpuBefore);
    weir.push((user + system) / DECISIONS);
    redis.push((cpuMicros(pid) - redisCpuBefore) / DECISIONS);
  }
  return [
    { name: `${name}: weir`, value: median(weir), min: Math.min(...weir), unit: 'µs' },
    { name: `${name}: Redis`, value: median(redis), min: Math.min(...redis), unit: 'µs' },
  ];
}

/** Returns all cases: the name without the number of decisions in a turn, and the requests. */
function* cases(): Generator<readonly [name: string, takes: () => Takes]> {
  for (const keys of [1000, 1]) {
    const count = keys === 1 ? 'one key' : `${keys} keys`;
    const names = Array.from(
      { length: keys },
      (_, i) => `5:bench6:tenant8:acme${1000 + i}14:resource_group10:user-chats`,
    );
    for (const [rateName, rate] of Object.entries(RATES)) {
      for (const [limits, itemsOf] of Object.entries(LIMITS)) {
        const takes = names.map((name) => itemsOf(name + rateName, rate));
        yield [`${rateName}, ${count}, ${limits}`, () => repeated(takes)];
      }
    }
    for (const [kind, rate] of Object.entries(HOLDS)) {
      const keysOfKind = names.map((name) => name + kind);
      yield [`${kind}, ${count}, `, () => startsAndSettlements(keysOfKind, rate)];
    }
  }
}

async function main(filters: readonly string[], asJson: boolean): Promise<void> {
  const redis = await startRedis();
  const store = new SingleRedisStore({ ...REDIS, address: parseRedisUrl(`127.0.0.1:${redis.port}`) });
  await store.reached;
  if (!asJson) console.log(HEADING);
  for (const [prefix, takes] of cases()) {
    for (const size of SIZES) {
      const name = `${prefix}${size} a turn`;
      if (filters.length > 0 && !filters.some((part) => name.includes(part))) continue;
      for (const measurement of await measure(name, store, redis.pid, takes(), size)) {
        console.log(asJson ? JSON.stringify(measurement) : formatMeasurement(measurement));
      }
    }
  }
  await store.close();
  await redis.stop();
}

void main(process.argv.slice(2), process.env['BENCH_JSON'] === '1');
