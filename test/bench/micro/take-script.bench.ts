import type { TakeItem } from '../../../src/limiter/bucket-store.js';
import { tokenBucketRate } from '../../../src/limiter/rate.js';
import { parseRedisUrl } from '../../../src/storage/redis/redis-address.js';
import { RedisStore } from '../../../src/storage/redis/redis-store.js';
import { startRedis } from '../../support/redis-server.js';
import { takeItem } from '../../support/take-items.js';
import { cpuMicros } from '../cpu.js';

/**
 * CPU microseconds per decision of the Redis store and of Redis itself, for calls of several sizes, each decision on a bucket of its own or
 * all on one. `node build/test/bench/micro/take-script.bench.js [decisions per row]`
 */
const SIZES = [1, 16, 64, 256];
/** Calls that wait for answers at the same time, as they do under load. */
const CALLS_IN_FLIGHT = 2;
const RATES = {
  '1 µs a token': tokenBucketRate(4_000_000_000, 1_000_000, 1_000_000),
  'a third of a second': tokenBucketRate(4_000_000, 3, 1_000_000),
};

type Takes = readonly (readonly TakeItem[])[];

/** Runs turns of `size` takes until `decisions` are made. */
async function run(store: RedisStore, takes: Takes, size: number, decisions: number): Promise<void> {
  let next = 0;
  let left = Math.ceil(decisions / size);
  const turns = async (): Promise<void> => {
    while (left-- > 0) {
      const waiting = new Array<unknown>(size);
      for (let i = 0; i < size; i++) {
        waiting[i] = store.take(takes[next] as readonly TakeItem[], Infinity);
        next = (next + 1) % takes.length;
      }
      await Promise.all(waiting);
    }
  };
  await Promise.all(Array.from({ length: CALLS_IN_FLIGHT }, turns));
}

async function main(): Promise<void> {
  const decisions = Number(process.argv[2] ?? 60_000);
  const redis = await startRedis();
  const store = new RedisStore({ address: parseRedisUrl(`127.0.0.1:${redis.port}`) });
  await store.reached;
  console.log(`CPU µs per decision, Node ${process.version}`);
  console.log('rate                 keys      takes a turn    weir   Redis   together');
  for (const [name, rate] of Object.entries(RATES)) {
    for (const keys of [1000, 1]) {
      const takes = Array.from({ length: keys }, (_, i) => [
        takeItem(`5:bench6:tenant8:acme${1000 + i}14:resource_group10:user-chats${name}`, rate),
      ]);
      for (const size of SIZES) {
        await run(store, takes, size, decisions / 4);
        const own = process.cpuUsage();
        const theirs = cpuMicros(redis.pid);
        await run(store, takes, size, decisions);
        const { user, system } = process.cpuUsage(own);
        const weir = (user + system) / decisions;
        const server = (cpuMicros(redis.pid) - theirs) / decisions;
        const cells = [weir, server, weir + server].map((micros) => micros.toFixed(2).padStart(7));
        console.log(
          `${name.padEnd(20)} ${String(keys).padEnd(9)} ${String(size).padEnd(12)} ${cells.join(' ')}`,
        );
      }
    }
  }
  await store.close();
  await redis.stop();
}

void main();
