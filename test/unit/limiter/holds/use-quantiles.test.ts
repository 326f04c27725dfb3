import { describe, expect, test } from '@jest/globals';
import { BucketUses, RuleUses, WeightedUses } from '../../../../src/limiter/holds/use-quantiles.js';
import { seededRandom } from '../../../support/limiter/seeded-random.js';

const SETTINGS = { quantile: 0.9, start: 4000, max: 32_000 };

/** Returns the uses of a bucket that used `uses`. */
function bucketOf(uses: readonly number[]): BucketUses {
  const bucket = new BucketUses();
  const all = new WeightedUses();
  for (const used of uses) bucket.add(used, all);
  return bucket;
}

/** Learns `count` equal uses of each of these buckets. */
function learn(rule: RuleUses, keys: readonly string[], used: number, count = 1): void {
  for (const key of keys) for (let i = 0; i < count; i++) rule.learn(key, used);
}

function names(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${i}`);
}

describe('the quantile of a bucket', () => {
  test.each([1, 2, 3, 5, 1000, 4000, 4_294_967_295])(
    'covers equal uses of %d, and is at most 9.1%% above',
    (used) => {
      const quantile = bucketOf([used]).quantile(0.5);
      expect(quantile).toBeGreaterThanOrEqual(used);
      expect(quantile).toBeLessThanOrEqual(used * 1.091);
    },
  );

  test('counts a use of 0 as 1', () => expect(bucketOf([0, 0]).quantile(0.9)).toBe(1));

  test('is close to the quantile of the latest 64 uses', () => {
    const random = seededRandom(7);
    for (const share of [0.05, 0.5, 0.9, 0.99]) {
      const uses = Array.from({ length: 200 }, () => 1 + Math.floor(random() ** 3 * 50_000));
      const latest = uses.slice(-64).sort((one, other) => one - other);
      const exact = latest[Math.ceil(share * 64) - 1] as number;
      const quantile = bucketOf(uses).quantile(share);
      expect(quantile).toBeGreaterThanOrEqual(exact);
      expect(quantile).toBeLessThanOrEqual(exact * 1.091);
    }
  });
});

describe('the estimate of a bucket', () => {
  test('is start until the bucket has 20 uses', () => {
    const rule = new RuleUses(SETTINGS, 512);
    learn(rule, ['one'], 1000, 19);
    expect(rule.estimate('one')).toBe(4000);
    learn(rule, ['one'], 1000);
    expect(rule.estimate('one')).toBe(1024);
    expect(rule.estimate('another')).toBe(4000);
  });

  test('is the quantile of the rule if 20 other buckets have uses', () => {
    const rule = new RuleUses(SETTINGS, 512);
    learn(rule, names('b', 19), 1000);
    expect(rule.estimate('new')).toBe(4000);
    learn(rule, ['b19'], 1000);
    expect(rule.estimate('new')).toBe(1024);
  });

  test('needs more uses and more buckets for a quantile close to 1', () => {
    const rule = new RuleUses({ ...SETTINGS, quantile: 0.98 }, 512);
    learn(rule, ['one'], 1000, 63);
    expect(rule.estimate('one')).toBe(4000);
    learn(rule, ['one'], 1000);
    expect(rule.estimate('one')).toBe(1024);
    learn(rule, names('b', 98), 1000);
    expect(rule.estimate('new')).toBe(4000);
    learn(rule, ['b98'], 1000);
    expect(rule.estimate('new')).toBe(1024);
  });

  test('is at least 1, and at most max', () => {
    const rule = new RuleUses(SETTINGS, 512);
    learn(rule, ['idle'], 0, 20);
    learn(rule, ['busy'], 1_000_000, 20);
    expect([rule.estimate('idle'), rule.estimate('busy')]).toEqual([1, 32_000]);
  });

  test('follows a change of the uses within 64 settlements', () => {
    const rule = new RuleUses(SETTINGS, 512);
    learn(rule, ['one'], 1000, 500);
    learn(rule, ['one'], 8000, 7);
    expect(rule.estimate('one')).toBe(8192);
    learn(rule, ['one'], 500, 64);
    expect(rule.estimate('one')).toBe(512);
  });
});

describe('the estimate of a rule', () => {
  test('gives each bucket the same weight, so that one bucket with enormous uses hardly raises it', () => {
    const random = seededRandom(1);
    const use = (): number => 500 + Math.floor(random() * 1000);
    const rule = new RuleUses(SETTINGS, 512);
    for (const key of names('b', 50)) for (let i = 0; i < 8; i++) rule.learn(key, use());
    const before = rule.estimate('new');
    learn(rule, ['huge'], 32_000, 10_000);
    expect(rule.estimate('new')).toBeLessThanOrEqual(1.1 * before);
    expect(rule.estimate('huge')).toBe(32_000);
    expect(rule.estimate('b1')).toBeLessThanOrEqual(1.1 * before);
  });

  test('is the same whether buckets are added or removed before', () => {
    const rule = new RuleUses(SETTINGS, 100);
    const random = seededRandom(3);
    for (let i = 0; i < 20_000; i++)
      rule.learn(`b${Math.floor(random() * 300)}`, Math.floor(random() * 9000));
    expect(rule.bucketCount).toBe(100);
    // All remaining uses are replaced, so nothing of the earlier ones may be left.
    rule.change(SETTINGS, 30);
    rule.change(SETTINGS, 100);
    const known = names('b', 300).filter((key) => {
      const count = rule.bucketCount;
      learn(rule, [key], 700, 64);
      return rule.bucketCount === count;
    });
    expect(known.length).toBeGreaterThan(0);
    expect(rule.estimateOfAll()).toBe(724);
  });

  test('is start without uses', () => {
    expect(new RuleUses(SETTINGS, 512).estimateOfAll()).toBe(4000);
  });
});

describe('the remembered buckets', () => {
  test('are at most the given number', () => {
    const rule = new RuleUses(SETTINGS, 512);
    learn(rule, names('b', 100_000), 100);
    expect(rule.bucketCount).toBe(512);
  });

  test('stay if other buckets are used once each', () => {
    const rule = new RuleUses(SETTINGS, 64);
    const regular = names('regular', 32);
    learn(rule, regular, 1000, 30);
    for (let round = 0; round < 50; round++) {
      learn(rule, names(`hostile${round}-`, 64), 32_000);
      learn(rule, regular, 1000);
    }
    expect(regular.map((key) => rule.estimate(key))).toEqual(regular.map(() => 1024));
    expect(rule.bucketCount).toBe(64);
  });

  test('are replaced after a while if they are not used', () => {
    const rule = new RuleUses(SETTINGS, 64);
    learn(rule, names('old', 64), 1000, 30);
    for (let round = 0; round < 8; round++) learn(rule, names('new', 64), 2000, 1);
    learn(rule, names('new', 64), 2000, 30);
    expect(rule.estimate('new1')).toBe(2048);
    expect(rule.estimateOfAll()).toBe(2048);
  });

  test('are reduced to a smaller maximum', () => {
    const rule = new RuleUses(SETTINGS, 512);
    learn(rule, names('b', 512), 1000, 30);
    rule.change({ ...SETTINGS, max: 600 }, 10);
    expect(rule.bucketCount).toBe(10);
    expect(rule.estimateOfAll()).toBe(600);
  });
});
