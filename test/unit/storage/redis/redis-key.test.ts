import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { RedisKeys, redisKey } from '../../../../src/storage/redis/redis-key.js';

const PREFIX = 'weir:1:';

test('cached and uncached keys of any length equal computed ones', () => {
  const keys = new RedisKeys(PREFIX);
  for (const length of [1, 400, 512, 513, 5000]) {
    const parts = { key: `1:d${'ü'.repeat(length)}`, hashTagLength: 4 };
    expect([keys.of(parts), keys.of(parts)]).toEqual([redisKey(parts), redisKey(parts)]);
    expect(keys.uncached.of(parts)).toBe(redisKey(parts));
    for (const frees of [true, false]) {
      expect(keys.uncached.ofHolds(parts, frees)).toBe(keys.ofHolds(parts, frees));
    }
  }
});

test('long keys that callers choose are not cached', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const keys = new RedisKeys(PREFIX);
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 500; i++) keys.of({ key: `${i}`.padEnd(100_000, 'x'), hashTagLength: 50 });
  collect();
  // A cache of all these keys or tags would take 50 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000);
});
