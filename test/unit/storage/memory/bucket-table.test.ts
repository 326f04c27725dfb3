import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { RunningBucket } from '../../../../src/limiter/running-bucket.js';
import { BucketTable, bucketBytes } from '../../../../src/storage/memory/bucket-table.js';
import { expectEqual } from '../../../support/assert/quick-expect.js';
import { runs } from '../../../support/assert/runs.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';

const UNBOUNDED = { maxBuckets: Number.MAX_SAFE_INTEGER, maxBytes: Number.MAX_SAFE_INTEGER };

/** `place` is only a hint. Any value works, even the place of another key. */
let place = 0;
const anyPlace = (): number => place++ % 5;

function stateOf(table: BucketTable, key: string): readonly [number, number, number] {
  const bucket = new RunningBucket();
  table.read(key, bucket, anyPlace());
  return [bucket.unit, bucket.wholeMicros, bucket.remainder];
}

function write(
  table: BucketTable,
  key: string,
  [unit, whole, part]: readonly [number, number, number],
  now = 0,
) {
  const bucket = new RunningBucket();
  bucket.load(unit, whole, part);
  table.write(key, bucket, anyPlace(), now);
}

/** A full token bucket, which need not be stored. */
const BLANK = [1, 0, 0] as const;

/**
 * Keys of many sizes, but few enough that they repeat. Their records have different sizes, and the largest have
 * separate chunks.
 */
const name = fc
  .tuple(fc.constantFrom(0, 1, 3, 17, 60, 61, 300, 900, 5000, 40_000), fc.nat(40), fc.boolean())
  .map(([length, number, wide]) => `${'k'.repeat(length)}${wide ? '\u4e2d' : ''}${number}`);

test('contains the same as a plain map after any additions, changes and removals', () => {
  const state = fc.tuple(
    fc.constantFrom(1, 7, 4_294_967_295),
    fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    fc.nat(),
  );
  const command = fc.record({ key: name, state, drop: fc.boolean() });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 300, size: 'max' }), (commands) => {
      const table = new BucketTable({ clock: new FakeClock(), ...UNBOUNDED });
      const model = new Map<string, readonly [number, number, number]>();
      for (const { key, state, drop } of commands) {
        if (drop) model.delete(key);
        else model.set(key, state);
        write(table, key, drop ? BLANK : state);
        expectEqual(stateOf(table, key), drop ? [0, 0, 0] : state);
      }
      for (const [key, state] of model) expectEqual(stateOf(table, key), state);
      const bytes = [...model.keys()].reduce((sum, key) => sum + bucketBytes(key), 0);
      expect([table.size, table.bytes]).toEqual([model.size, bytes]);
      for (const key of model.keys()) write(table, key, BLANK);
      expect([table.size, table.bytes, table.evictions]).toEqual([0, 0, 0]);
    }),
    runs(180),
  );
});

test('a hundred thousand buckets are added, found, and removed in the order in which they fill', () => {
  const table = new BucketTable({ clock: new FakeClock(), ...UNBOUNDED });
  const count = 100_000;
  // 7919 is prime, so the sequence contains each number once, in mixed order.
  const due = (i: number) => 1 + ((i * 7919) % count);
  for (let i = 0; i < count; i++) write(table, `tenant-${i}`, [1, due(i), 0]);
  expect(table.size).toBe(count);
  for (let i = 0; i < count; i++) if (stateOf(table, `tenant-${i}`)[1] !== due(i)) expect(i).toBe(-1);
  let now = 0;
  while (now < count) {
    now += 3;
    // Every 16th write checks four entries for each write, three of which have expired. The busy bucket has the same
    // size as the expired ones, so it moves.
    write(table, 'tenant-busy', [1, 2 * count, now], now);
    if (stateOf(table, 'tenant-busy')[2] !== now) expect([now]).toBe('there');
    const late = table.size - (Math.max(0, count - now) + 1);
    if (late < 0 || late >= 16 * 3) expect([now, table.size]).toBe('in step');
  }
  for (let i = 0; i < 16; i++) write(table, 'tenant-busy', [1, 2 * count, now + i], now);
  expect([table.size, table.evictions]).toEqual([1, 0]);
});

test('a full table removes expired buckets first, and then evicts the bucket that will be full soonest', () => {
  const maxBuckets = 8;
  const command = fc.record({
    key: fc.nat(20),
    wait: fc.constantFrom(0, 0, 1, 30),
    fullIn: fc.integer({ min: 1, max: 60 }),
  });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 120, size: 'max' }), (commands) => {
      const table = new BucketTable({ clock: new FakeClock(), ...UNBOUNDED, maxBuckets });
      // The time at which each bucket is full.
      const model = new Map<string, number>();
      let now = 0;
      let evictions = 0;
      for (const { key: number, wait, fullIn } of commands) {
        now += wait;
        const key = `tenant-${number}`;
        // A microsecond of its own for each key, so that no two buckets are full at the same time.
        const full = 100 * (now + fullIn) + number;
        const stored = [...model].filter(([name]) => stateOf(table, name)[1] !== 0);
        write(table, key, [1, full, 0], 100 * now);
        const isNew = !stored.some(([name]) => name === key);
        if (isNew && stored.length === maxBuckets) {
          const [soonest, due] = stored.reduce((one, other) => (other[1] < one[1] ? other : one));
          // If several buckets have expired, any of them may be removed.
          if (due > 100 * now) {
            evictions++;
            expectEqual(stateOf(table, soonest), [0, 0, 0]);
            model.delete(soonest);
          }
        }
        model.set(key, full);
        expectEqual(stateOf(table, key), [1, full, 0]);
        expectEqual([table.size <= maxBuckets, table.evictions], [true, evictions]);
        for (const [name, due] of model) if (due > 100 * now) expectEqual(stateOf(table, name), [1, due, 0]);
      }
    }),
    runs(300),
  );
});
