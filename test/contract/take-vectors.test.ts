import { beforeAll, describe, expect, test } from '@jest/globals';
import { decide } from '../../src/limiter/decide.js';
import { RunningBucket, TakeSnapshot } from '../../src/limiter/running-bucket.js';
import { redisKey } from '../../src/storage/redis/redis-key.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { NOW, TAKE_VECTORS } from '../support/limiter/take-vectors.js';
import { redisBenches, takeFrom } from '../support/limiter/test-stores.js';

function loaded(value: string | undefined): RunningBucket {
  const bucket = new RunningBucket();
  const [form = '', a, b, c] = (value ?? 't1:0:0:0').split(':');
  bucket.load(form === 't1' ? Number(c) : -Number(c), Number(a), form === 'd1' ? -Number(b) : Number(b));
  return bucket;
}

function text(bucket: RunningBucket): string {
  const form = bucket.unit > 0 ? 't1' : bucket.remainder < 0 ? 'd1' : 'w1';
  return `${form}:${bucket.wholeMicros}:${Math.abs(bucket.remainder)}:${Math.abs(bucket.unit)}`;
}

const VECTORS = TAKE_VECTORS.map((vector) => ({ nowMicros: NOW, after: vector.before, ...vector }));

test.each(VECTORS)('decide: $name', ({ nowMicros, before, items, outcomes, after, countDeniedHits }) => {
  const stored: Record<string, string> = { ...before };
  const byKey = new Map<string, RunningBucket>();
  const buckets = items.map(({ key }) => {
    const bucket = byKey.get(key) ?? loaded(before[key]);
    byKey.set(key, bucket);
    return bucket;
  });
  const findings = items.map(() => new TakeSnapshot());
  const denied = decide(items, buckets, findings, nowMicros, nowMicros, countDeniedHits ?? true);
  expect(denied).toBe(outcomes.some(({ overLimit }, i) => overLimit && items[i]!.enforcement === 'enforce'));
  const found = items.map(({ rate, hits }, i) => rate.outcome(hits, findings[i]!, nowMicros));
  expect(found).toMatchObject(outcomes);
  for (const [key, bucket] of byKey) {
    if (!bucket.dirty) continue;
    delete stored[key];
    if (!bucket.isBlank(nowMicros)) stored[key] = text(bucket);
  }
  expect(stored).toEqual(after);
});

describe.each(redisBenches())('take.lua on $name', (bench) => {
  beforeAll(() => bench.start());
  const key = (name: string) => redisKey(takeItem(name, HUNDRED));

  test.each(VECTORS)('$name', async ({ nowMicros, before, items, outcomes, after, countDeniedHits }) => {
    await bench.reset();
    bench.clock.wall = nowMicros;
    const store = await bench.open({ countDeniedHits: countDeniedHits ?? true });
    for (const [name, value] of Object.entries(before)) await bench.redis.set(key(name), value);
    expect(await takeFrom(store, ...items)).toMatchObject(outcomes);
    for (const name of ['a', 'b', 'c', 'w', 'x']) {
      const value = after[name] ?? null;
      expect([name, await bench.redis.get(key(name))]).toEqual([name, value]);
    }
  });
});
