import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  type BucketStore,
  StorageError,
  type Take,
  type TakeOutcome,
  type TakeResult,
} from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import type { Rate } from '../../../src/limiter/rate.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';
import { DenyCache } from '../../../src/storage/deny-cache.js';
import { LeaseStore, type LeaseStoreOptions, MAX_LEASED_KEYS } from '../../../src/storage/leases.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { SlowStore } from '../../support/limiter/slow-store.js';
import { HUNDRED, type ItemOptions, takeItem } from '../../support/limiter/take-items.js';

const MS = 1000;
const LEASE = { forMicros: 50 * MS, max: 100 };
/** 1,000 tokens, refilled at one in a millisecond. */
const BUCKET = tokenBucketRate(1000, 1000, 1_000_000, 0, undefined, LEASE);
/** Too small for its callers. */
const SMALL = tokenBucketRate(20, 100, 1_000_000, 0, undefined, LEASE);
const WINDOW = windowRate('minute', 1000, { lease: LEASE, countsOnlyAllowed: true });

let clock: FakeClock;
let store: SlowStore;
let leases: LeaseStore;

function open(options: Partial<LeaseStoreOptions> = {}): void {
  clock = new FakeClock();
  store = new SlowStore(clock);
  leases = new LeaseStore({ store, monotonicMicros: () => clock.monotonicMicros(), ...options });
}

beforeEach(() => open());

const item = (rate: Rate = BUCKET, options: ItemOptions = {}, key = 'a') => takeItem(key, rate, options);

/** Takes, and lets the store reply if the take reached it. */
async function take(...takes: Take[]): Promise<readonly TakeOutcome[]> {
  const result = leases.take(takes.length === 0 ? [item()] : takes, Infinity);
  await store.answer();
  const outcomes = await result;
  if (outcomes instanceof StorageError) throw outcomes;
  return outcomes;
}

/** Returns whether a take is decided without the store. */
function isLocal(...takes: Take[]): boolean {
  return !(leases.take(takes.length === 0 ? [item()] : takes, Infinity) instanceof Promise);
}

/** Makes a bucket hot: takes 20 times within a millisecond. The last take asks for a lease of at most 10 tokens. */
async function heat(...takes: Take[]): Promise<void> {
  for (let i = 0; i < 20; i++) {
    await take(...takes);
    clock.advance(50);
  }
}

/** Returns the number of tokens of each lease that was asked for. */
const askedFor = (): number[] => store.asked.flatMap(([first]) => first?.count ?? []);

/** Number of tokens that are leased. */
const tokens = (key = 'a'): number => leases.tokensOf(key);

describe('a bucket', () => {
  test('is asked for each take below four takes during a lease', async () => {
    for (let i = 0; i < 20; i++) {
      expect(isLocal()).toBe(false);
      clock.advance(17 * MS);
    }
    expect(askedFor()).toEqual([]);
  });

  test('gets a lease of half of the takes during a lease', async () => {
    await heat();
    expect(askedFor()[0]).toBe(2);
    expect(Math.max(...askedFor())).toBeLessThanOrEqual(10);
    const before = store.asked.length;
    const left = tokens();
    expect(left).toBeGreaterThan(1);
    for (let i = 1; i < left; i++) expect(isLocal()).toBe(true);
    expect(store.asked.slice(before).every(([first]) => first?.count !== undefined)).toBe(true);
  });

  test('gets at most the maximum', async () => {
    for (let i = 0; i < 30; i++) await heat();
    expect(Math.max(...askedFor())).toBe(100);
  });

  test('is not hot because of peeks, which need no tokens', async () => {
    for (let i = 0; i < 50; i++) await take(item(BUCKET, { hits: 0 }));
    expect(askedFor()).toEqual([]);
  });

  test('gets a lease for at least two requests with many hits', async () => {
    const large = item(BUCKET, { hits: 5 });
    for (let i = 0; i < 4; i++) await take(large);
    expect(askedFor()).toEqual([10]);
    expect([isLocal(large), isLocal(large), isLocal(large)]).toEqual([true, true, false]);
    expect(Math.min(...askedFor())).toBeGreaterThanOrEqual(10);
  });

  test('without a lease is asked for every take, and so is a request with another limit', async () => {
    const plain = item(HUNDRED, {}, 'plain');
    for (let i = 0; i < 20; i++) {
      await take(plain);
      await take(item(), plain);
    }
    expect(askedFor()).toEqual([]);
    expect(store.asked).toHaveLength(40);
  });

  test('reports the same outcomes as without leases', async () => {
    const exact = new SlowStore(clock);
    for (const one of [item(), item(WINDOW, {}, 'w'), item(SMALL, {}, 's')]) {
      for (let i = 0; i < 20; i++) {
        const expected = exact.inner.take([one])[0] as TakeOutcome;
        const [found] = await take(one);
        expect({ ...found, grant: undefined }).toEqual({ ...expected, grant: undefined });
      }
    }
  });

  test('reports no more than its capacity after a pause of its callers', async () => {
    await heat();
    clock.advance(45 * MS);
    expect(isLocal()).toBe(true);
    const [outcome] = leases.take([item()], Infinity) as readonly TakeOutcome[];
    expect(outcome?.remaining).toBeLessThan(1000);
  });
});

describe('a lease', () => {
  test('G2: ends its life after it was asked for, however often it is used', async () => {
    await heat();
    // The lease was asked for in this millisecond or the one before.
    for (let waited = 0; waited < 49; waited += 7) {
      clock.advance(7 * MS);
      if (waited < 42) expect(isLocal(item(BUCKET, { hits: 0 }))).toBe(true);
    }
    clock.advance(2 * MS);
    expect(isLocal(item(BUCKET, { hits: 0 }))).toBe(false);
  });

  test('G2: ends during a suspension of the process', async () => {
    await heat();
    const left = tokens();
    clock.advance(LEASE.forMicros);
    expect(isLocal()).toBe(false);
    expect(leases.stats.tokensLapsed).toBe(left);
  });

  test('G2: lapses if it arrives after its end, and the next one waits', async () => {
    for (let i = 0; i < 3; i++) await take();
    const result = leases.take([item()], Infinity);
    expect(askedFor()).toEqual([2]);
    clock.advance(60 * MS);
    await store.answer();
    await result;
    expect([tokens(), leases.stats.tokensLapsed]).toEqual([0, 2]);
    // The process may have been suspended once, so it asks again, and waits if that lease is late, too.
    for (let i = 0; i < 10 && askedFor().length === 1; i++) void leases.take([item()], Infinity);
    expect(askedFor()).toHaveLength(2);
    clock.advance(60 * MS);
    await store.answer();
    await heat();
    expect(askedFor()).toHaveLength(2);
    clock.advance(60 * MS);
    await heat();
    expect(askedFor().length).toBeGreaterThan(2);
  });

  test('G4: ends with its window on the clock of the store', async () => {
    const minute = UNIT_MICROS.minute;
    clock.stepWall(minute - (clock.wall % minute) - 30 * MS);
    const window = item(WINDOW, {}, 'w');
    await heat(window);
    expect(tokens('w')).toBeGreaterThan(0);
    clock.advance(28 * MS);
    expect(isLocal(window)).toBe(true);
    clock.advance(1 * MS);
    expect(isLocal(window)).toBe(false);
  });

  test('gives nothing back, and counts what was not spent', async () => {
    await heat();
    const left = tokens();
    clock.advance(100 * MS);
    expect(leases.stats.tokensLapsed).toBe(left);
    expect(store.asked.flat().some(({ refund }) => refund)).toBe(false);
    const taken = 20 + left;
    const [look] = store.inner.take([item(BUCKET, { hits: 0, refund: true })]);
    // 101 ms refill 101 tokens.
    expect(look?.used).toBe(Math.max(0, taken - 101));
  });

  test('is followed by the next one when a quarter is left', async () => {
    for (let i = 0; i < 5; i++) await heat();
    const before = askedFor().length;
    for (let i = 0; i < 100 && askedFor().length === before; i++) void leases.take([item()], Infinity);
    const granted = askedFor().at(-1) as number;
    const old = tokens();
    await store.answer();
    expect(tokens()).toBe(old + granted);
    expect(old * 4).toBeLessThanOrEqual(100);
    expect(old).toBeGreaterThan(0);
  });

  test('serves larger requests if it has enough tokens', async () => {
    for (let i = 0; i < 5; i++) await heat();
    const left = tokens();
    expect(left).toBeGreaterThan(5);
    expect(isLocal(item(BUCKET, { hits: 3 }))).toBe(true);
    expect(tokens()).toBe(left - 3);
    expect(isLocal(item(BUCKET, { hits: left }))).toBe(false);
    expect(tokens()).toBe(left - 3);
  });

  test('answers a peek while it has tokens', async () => {
    await heat();
    const left = tokens();
    expect(isLocal(item(BUCKET, { hits: 0 }))).toBe(true);
    expect(tokens()).toBe(left);
  });

  test.each<[string, ItemOptions]>([
    ['refunds', { refund: true }],
    ['quotas', { enforcement: 'quota' }],
    ['limits that spill', { enforcement: 'spill' }],
  ])('does not decide %s', async (_, options) => {
    await heat();
    expect(isLocal(item(BUCKET, options))).toBe(false);
  });

  test('ends when its limit changes', async () => {
    await heat();
    const left = tokens();
    const changed = tokenBucketRate(1000, 1000, 1_000_000, 0, undefined, LEASE);
    expect(isLocal(item(changed))).toBe(false);
    expect([tokens(), leases.stats.tokensLapsed]).toEqual([0, left]);
  });

  test('ends when leases are cleared, also if it arrives later', async () => {
    await heat();
    const left = tokens();
    leases.clear();
    expect([tokens(), leases.stats.tokensLapsed, isLocal()]).toEqual([0, left, false]);
    await heat();
    while (tokens() > 0) void leases.take([item()], Infinity);
    const count = askedFor().at(-1) as number;
    const lapsed = leases.stats.tokensLapsed;
    leases.clear();
    await store.answer();
    expect([tokens(), leases.stats.tokensLapsed]).toEqual([0, lapsed + count]);
  });

  test('G5: is not asked for after short bursts until at most a twentieth of the hits has lapsed', async () => {
    let hits = 0;
    for (let burst = 0; burst < 100; burst++) {
      for (let i = 0; i < 20; i++) await take();
      hits += 20;
      clock.advance(1000 * MS);
    }
    expect(leases.stats.tokensLapsed).toBeGreaterThan(0);
    expect(leases.stats.tokensLapsed).toBeLessThanOrEqual(hits / 20 + 10);
  });

  test('G5: is not asked for by a caller whose requests are denied by another limit', async () => {
    const denied = [item(), item(SMALL, {}, 's')];
    for (let i = 0; i < 1000; i++) {
      await take(...denied);
      clock.advance(MS);
    }
    // SMALL allows 20 requests, and 100 in a second.
    expect(leases.stats.tokensLapsed).toBeLessThanOrEqual(120 / 20 + 30);
  });

  test('survives callers who name many buckets once', async () => {
    await heat();
    for (let i = 0; i < 2 * MAX_LEASED_KEYS - 10; i++) {
      void leases.take([item(BUCKET, {}, `other${i}`)], Infinity);
      if (i % (MAX_LEASED_KEYS / 2) === 0) expect(isLocal(item(BUCKET, { hits: 0 }))).toBe(true);
    }
    expect(tokens()).toBeGreaterThan(0);
    for (let i = 0; i < 2 * MAX_LEASED_KEYS; i++) void leases.take([item(BUCKET, {}, `more${i}`)], Infinity);
    expect(tokens()).toBe(0);
    expect(leases.stats.tokensLapsed).toBeGreaterThan(0);
  });

  test('saves trips, which are counted without the first use of each lease', async () => {
    await heat();
    const { tripsSaved } = leases.stats;
    const left = tokens();
    void leases.take([item()], Infinity);
    void leases.take([item()], Infinity);
    expect(leases.stats.tripsSaved - tripsSaved).toBe(left === 2 ? 1 : 2);
  });
});

describe('callers', () => {
  test('wait for a lease that another one asked for', async () => {
    for (let i = 0; i < 20; i++) void leases.take([item()], Infinity);
    await store.answer();
    while (tokens() > 0) void leases.take([item()], Infinity);
    const before = store.asked.length;
    const results = [1, 2, 3].map(() => leases.take([item()], Infinity));
    expect(results.every((result) => result instanceof Promise)).toBe(true);
    // The first caller's take, and the lease.
    expect(store.asked).toHaveLength(before + 2);
    await store.answer();
    for (const result of results) expect(await result).toMatchObject([{ overLimit: false }]);
  });

  test('get the error of a lease that fails at their deadline', async () => {
    const failing = new FailingStore(store);
    open({ store: failing });
    failing.inner = store;
    for (let i = 0; i < 3; i++) await take();
    let fail = (): void => {};
    failing.lease = new Promise((resolve) => {
      fail = () => resolve(new StorageError('timeout', 'no reply'));
    });
    const deadline = clock.monotonicMicros() + 20 * MS;
    void leases.take([item()], deadline);
    const waiting = leases.take([item()], deadline);
    const asked = store.asked.length;
    clock.advance(20 * MS);
    fail();
    expect(await waiting).toMatchObject({ reason: 'timeout' });
    expect(store.asked).toHaveLength(asked);
  });

  test('with an earlier deadline ask the store', async () => {
    for (let i = 0; i < 3; i++) await take();
    const now = clock.monotonicMicros();
    void leases.take([item()], now + 20 * MS);
    expect(askedFor()).toEqual([2]);
    const before = store.asked.length;
    void leases.take([item()], now + 20 * MS);
    expect(store.asked).toHaveLength(before);
    void leases.take([item()], now + 19 * MS);
    expect(store.asked).toHaveLength(before + 1);
  });

  test('ask the store if the lease fails', async () => {
    const failing = new FailingStore(store);
    open({ store: failing });
    failing.inner = store;
    for (let i = 0; i < 3; i++) await take();
    failing.failsLeases = true;
    const first = leases.take([item()], Infinity);
    const second = leases.take([item()], Infinity);
    await store.answer();
    await Promise.resolve();
    await store.answer();
    expect(await first).toMatchObject([{ overLimit: false }]);
    expect(await second).toMatchObject([{ overLimit: false, remaining: 995 }]);
  });
});

/** A store that fails when a test tells it to. */
class FailingStore implements BucketStore {
  inner: BucketStore;
  fails = false;
  failsLeases = false;
  /** Result of leases, if a test sets it. */
  lease: Promise<TakeResult> | undefined;

  constructor(inner: BucketStore) {
    this.inner = inner;
  }

  take(takes: readonly Take[]): TakeResult | Promise<TakeResult> {
    const isLease = takes[0]?.count !== undefined;
    if (isLease && this.lease !== undefined) return this.lease;
    if (isLease ? this.failsLeases : this.fails)
      return Promise.resolve(new StorageError('timeout', 'no reply'));
    return this.inner.take(takes, Infinity);
  }

  async close(): Promise<void> {}
}

describe('after a lease that the store did not grant in full, takes', () => {
  /** Empties the bucket. The last take asks for more than the bucket has. */
  async function exhaust(): Promise<void> {
    for (let i = 0; i < 40; i++) await take(item(SMALL));
  }

  test('G5: are denied without the store for at most half a lease', async () => {
    await exhaust();
    expect(isLocal(item(SMALL))).toBe(true);
    const { earlyDenials } = leases.stats;
    expect(earlyDenials).toBeGreaterThan(0);
    expect(leases.take([item(SMALL)], Infinity)).toMatchObject([
      { overLimit: true, remaining: 0, cached: true },
    ]);
    expect(leases.stats.earlyDenials).toBe(earlyDenials + 1);
    clock.advance(25 * MS);
    expect(isLocal(item(SMALL))).toBe(false);
  });

  test('G5: are denied no longer than half of the bucket needs to refill, so that no tokens overflow', async () => {
    const forMicros = 1000 * MS;
    const tiny = item(tokenBucketRate(10, 100, 1_000_000, 0, undefined, { forMicros, max: 100 }), {}, 't');
    let allowed = 0;
    for (let i = 0; i < 1000; i++) {
      if (!(await take(tiny))[0]?.overLimit) allowed++;
      clock.advance(5 * MS);
    }
    // 10 tokens, and 100 in a second.
    expect(allowed).toBeGreaterThan(500);
  });

  test('G5: are not denied for longer than a lease lives because other processes take all tokens', async () => {
    const shared = tokenBucketRate(600, 400, 1_000_000, 0, undefined, LEASE);
    const processes = [1, 2, 3].map(
      () => new LeaseStore({ store, monotonicMicros: () => clock.monotonicMicros() }),
    );
    const start = clock.monotonicMicros();
    const allowedMicros = processes.map(() => start);
    let longest = 0;
    for (let i = 0; i < 6000; i++) {
      const [index, now] = [i % processes.length, clock.monotonicMicros()];
      const result = processes[index]!.take([item(shared)], Infinity);
      await store.answer();
      longest = Math.max(longest, now - allowedMicros[index]!);
      if (((await result) as readonly TakeOutcome[])[0]?.overLimit === false) allowedMicros[index] = now;
      clock.advance(833);
    }
    expect(longest).toBeLessThanOrEqual(LEASE.forMicros);
  });

  test('report how long to wait', async () => {
    await exhaust();
    clock.advance(3 * MS);
    const [denied] = leases.take([item(SMALL)], Infinity) as readonly TakeOutcome[];
    const [larger] = leases.take([item(SMALL, { hits: 4 })], Infinity) as readonly TakeOutcome[];
    expect(denied?.waitMicros).toBeGreaterThanOrEqual(7 * MS);
    expect(denied?.waitMicros).toBeLessThanOrEqual(25 * MS);
    expect(larger?.waitMicros).toBe(37 * MS);
  });

  test('are not remembered by the deny cache', async () => {
    const cache = new DenyCache({
      store: leases,
      maxAgeMicros: 1_000_000,
      maxEntries: 10,
      monotonicMicros: () => clock.monotonicMicros(),
    });
    await exhaust();
    expect(cache.take([item(SMALL)], Infinity)).toMatchObject([{ overLimit: true }]);
    expect(cache.entries).toBe(0);
  });

  test('may be allowed again after a refund', async () => {
    await exhaust();
    void leases.take([item(SMALL, { hits: 5, refund: true })], Infinity);
    expect(isLocal(item(SMALL))).toBe(false);
  });

  test('reach the store if they only peek', async () => {
    await exhaust();
    expect(isLocal(item(SMALL, { hits: 0 }))).toBe(false);
  });
});

describe('a request with several limits', () => {
  const both = () => [item(), item(WINDOW, {}, 'w')];

  test('is decided without the store if all limits have tokens', async () => {
    await heat(...both());
    while (Math.min(tokens(), tokens('w')) < 2) await take(...both());
    const [left, other] = [tokens(), tokens('w')];
    expect(isLocal(...both())).toBe(true);
    expect([tokens(), tokens('w')]).toEqual([left - 1, other - 1]);
    leases.clear();
    await heat();
    expect(isLocal(item())).toBe(true);
    expect(isLocal(...both())).toBe(false);
  });

  test('spends nothing if one limit denies it', async () => {
    const limits = [item(), item(SMALL, {}, 's')];
    await heat(...limits);
    for (let i = 0; i < 40; i++) await take(item(SMALL, {}, 's'));
    const left = tokens();
    expect(left).toBeGreaterThan(0);
    expect(leases.take(limits, Infinity)).toMatchObject([{ overLimit: false }, { overLimit: true }]);
    expect(tokens()).toBe(left);
    const observed = [item(), item(SMALL, { enforcement: 'observe' }, 's')];
    expect(leases.take(observed, Infinity)).toMatchObject([{ overLimit: false }, { overLimit: true }]);
    expect(tokens()).toBe(left - 1);
  });

  test('is asked for if it takes from a bucket twice', async () => {
    await heat();
    expect(isLocal(item(), item())).toBe(false);
  });

  test('leases nothing if one of its buckets is cold', async () => {
    for (let i = 0; i < 20; i++) await take(item(), item(WINDOW, {}, `w${i}`));
    expect(askedFor()).toEqual([]);
  });
});

describe('if the store fails', () => {
  test('to decide a request, the leases of its buckets end before its caller enforces a share', async () => {
    const failing = new FailingStore(store);
    open({ store: failing });
    failing.inner = store;
    await heat();
    expect(tokens()).toBeGreaterThan(0);
    failing.fails = true;
    const plain = item(HUNDRED, {}, 'plain');
    expect(await leases.take([item(), plain], Infinity)).toBeInstanceOf(StorageError);
    expect(tokens()).toBe(0);
  });

  test('G6: to grant a lease, the tokens that are left are spent', async () => {
    const failing = new FailingStore(store);
    open({ store: failing });
    failing.inner = store;
    await heat();
    failing.fails = true;
    failing.failsLeases = true;
    const left = tokens();
    for (let i = 0; i < left; i++) expect(isLocal()).toBe(true);
    expect(isLocal()).toBe(false);
  });
});
