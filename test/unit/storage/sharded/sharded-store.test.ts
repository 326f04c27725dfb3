import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  StorageError,
  type Take,
  type TakeOutcome,
  type TakeResult,
} from '../../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../../src/limiter/fixed-window.js';
import { concurrencyRate } from '../../../../src/limiter/holds/concurrency.js';
import { tokenBucketRate } from '../../../../src/limiter/token-bucket.js';
import type { RollbackResult } from '../../../../src/storage/sharded/shard.js';
import { ShardedStore } from '../../../../src/storage/sharded/sharded-store.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';
import { abandonedEnds, holdItem, settlementTake } from '../../../support/limiter/hold-items.js';
import { HUNDRED, type ItemOptions, takeItem } from '../../../support/limiter/take-items.js';
import { MemoryShards } from '../../../support/sharded/memory-shards.js';

const MINUTE = windowRate('minute', 5);
const UNAVAILABLE = new StorageError('disconnected', 'unavailable');
const TIMEOUT = 1000;

let clock: FakeClock;
let map: MemoryShards;
let store: ShardedStore;
const told: (readonly Take[])[] = [];

function open(countDeniedHits = false): void {
  clock = new FakeClock();
  map = new MemoryShards(clock, countDeniedHits);
  told.length = 0;
  store = new ShardedStore({
    main: map,
    timeoutMicros: TIMEOUT,
    countDeniedHits,
    monotonicMicros: () => clock.monotonicMicros(),
    onRollback: (refunds) => told.push(refunds),
  });
}
beforeEach(() => open());

const tokens = (key: string, options: ItemOptions = {}) => takeItem(key, HUNDRED, options);
const window = (key: string, options: ItemOptions = {}) => takeItem(key, MINUTE, options);
const take = (...takes: Take[]) => store.take(takes, Infinity);
const used = (take: Take) =>
  map.of(take.key.charAt(0)).memory.take([{ ...take, hits: 0, refund: false }])[0]?.used;
const fill = (...takes: Take[]) => {
  for (const take of takes) map.of(take.key.charAt(0)).memory.take([take]);
};
const turn = () => new Promise((resolve) => setImmediate(resolve));
const asked = (part: string) => map.of(part).asked.map(({ items }) => items);
const resolvedWith = (result: RollbackResult) => () => Promise.resolve(result);
const NONE = { made: 0, failed: 0, skipped: 0 };

describe('a request whose buckets share a partition', () => {
  test('is forwarded unchanged, and each item is read once', async () => {
    const takes = [tokens('a1'), tokens('a2', { refund: true }), window('a3', { enforcement: 'quota' })];
    await store.take(takes, 77, false);
    expect(map.of('a').asked).toEqual([{ partition: 'a', items: takes, deadlineMicros: 77, mayWait: false }]);
    expect(map.of('a').asked[0]?.items).toBe(takes);
    expect(map.looks).toBe(3);
  });

  test('gets a synchronous result if the shard has one', () => {
    map.of('a').answer = ({ items }) => map.of('a').memory.take(items);
    expect(take(tokens('a1'))).toMatchObject([{ remaining: 99 }]);
  });

  test('gets the error of a partition without a server', () => {
    map.errors.set('a', UNAVAILABLE);
    expect(take(tokens('a1'))).toBe(UNAVAILABLE);
  });
});

describe('a request to several partitions', () => {
  test('is sent to all at once, with the sooner of its own deadline and the timeout', async () => {
    const answers: (() => void)[] = [];
    for (const part of 'ab') {
      map.of(part).answer = ({ items }) =>
        new Promise((resolve) => answers.push(() => resolve(map.of(part).memory.take(items))));
    }
    const now = clock.monotonicMicros();
    const taking = [take(tokens('a1'), tokens('b1')), store.take([tokens('a1'), tokens('b1')], now + 7)];
    await turn();
    expect(answers).toHaveLength(4);
    for (const answer of answers) answer();
    await Promise.all(taking);
    const deadlines = ['a', 'b'].map((part) => map.of(part).asked.map((one) => one.deadlineMicros));
    expect(deadlines).toEqual([
      [now + TIMEOUT, now + 7],
      [now + TIMEOUT, now + 7],
    ]);
  });

  test('gets back the hits from the other partitions if one partition denies it', async () => {
    fill(tokens('a1', { hits: 100 }), tokens('b1', { hits: 10 }), window('b2', { hits: 2 }));
    expect(await take(tokens('b1'), tokens('a1'), window('b2'), tokens('b1', { hits: 5 }))).toMatchObject([
      { overLimit: false, remaining: 90, used: 10, waitMicros: 100_000 },
      { overLimit: true },
      { overLimit: false, remaining: 3, used: 2 },
      { overLimit: false, remaining: 90, used: 10 },
    ]);
    await turn();
    expect([used(tokens('b1')), used(window('b2'))]).toEqual([10, 2]);
    expect(map.of('a').returned).toEqual([]);
    expect(map.of('b').returned).toMatchObject([{ partition: 'b', mayWait: true }]);
    expect(store.rollbackStats).toEqual({ ...NONE, made: 1 });
    expect(told).toHaveLength(2);
    expect(told[0]).toBe(map.of('b').returned[0]?.items);
  });
});

describe('denials', () => {
  test('a request that cannot be denied takes one step, including refunds', async () => {
    fill(tokens('a1', { hits: 50 }), tokens('b1', { hits: 50 }));
    const owing = tokenBucketRate(100, 10, 1_000_000, 50);
    const takes = [
      tokens('a1', { hits: 20, refund: true }),
      tokens('b1', { enforcement: 'observe' }),
      tokens('b2', { refund: true, enforcement: 'quota' }),
      takeItem('c1', owing, { hits: 120 }),
    ];
    expect(await take(...takes)).toMatchObject([{ used: 30 }, { used: 51 }, { used: 0 }, { used: 100 }]);
    for (const part of 'abc') expect(asked(part)).toEqual([takes.filter(({ key }) => key[0] === part)]);
  });

  test('refunds follow together when all partitions have allowed the request', async () => {
    fill(tokens('a1', { hits: 50 }), tokens('b1', { hits: 50 }));
    const refunds = [tokens('a1', { hits: 20, refund: true }), tokens('b1', { hits: 30, refund: true })];
    expect(await take(refunds[0]!, tokens('c1'), refunds[1]!, tokens('b2'))).toMatchObject([
      { used: 30 },
      { used: 1 },
      { used: 20 },
      { used: 1 },
    ]);
    expect(asked('a')).toEqual([[{ ...refunds[0], hits: 0 }], [refunds[0]]]);
    expect(asked('b')).toEqual([[{ ...refunds[1], hits: 0 }, tokens('b2')], [refunds[1]]]);
    expect(asked('c')).toHaveLength(1);
  });

  test('more hits than a limit can ever allow leave no tokens taken', async () => {
    const owing = tokenBucketRate(100, 10, 1_000_000, 50);
    const takes = [tokens('a1', { hits: 101 }), takeItem('b1', owing), window('c1', { hits: 2 })];
    expect(await take(...takes)).toMatchObject([
      { overLimit: true },
      { overLimit: false, used: 0 },
      { overLimit: false, used: 0 },
    ]);
    await turn();
    expect([store.rollbackStats, map.size]).toEqual([{ ...NONE, made: 1 }, 0]);
  });
});

describe('an error', () => {
  const unavailableCases: [string, () => void][] = [
    ['without a server', () => map.errors.set('b', UNAVAILABLE)],
    ['that refuses', () => (map.of('b').refuses = UNAVAILABLE)],
  ];

  test.each(unavailableCases)(
    'of a partition %s is returned at once if no other partition can deny',
    async (_, goAway) => {
      goAway();
      const watched = tokens('a1', { enforcement: 'observe' });
      expect(await take(watched, tokens('a2', { refund: true }), tokens('b1'))).toBe(UNAVAILABLE);
      expect([asked('a'), asked('b')]).toEqual([[], []]);
    },
  );

  test.each([
    ...unavailableCases,
    ['that breaks', () => (map.of('b').answer = () => UNAVAILABLE)],
    ['that is late', () => (map.of('b').answer = () => Promise.resolve(UNAVAILABLE))],
  ] as const)('of a partition %s cannot be used to get around a limit that is used up', async (_, goAway) => {
    fill(tokens('a1', { hits: 100 }));
    goAway();
    expect(await take(tokens('b1'), tokens('a1'), tokens('c1'))).toMatchObject([
      { overLimit: false, remaining: 0 },
      { overLimit: true, remaining: 0 },
      { overLimit: false, remaining: 100 },
    ]);
    await turn();
    expect(used(tokens('c1'))).toBe(0);
    // An observed item cannot deny the request.
    expect(await take(tokens('b1'), tokens('a1', { enforcement: 'observe' }))).toBe(UNAVAILABLE);
  });

  test('of a refund is the result of the request, and its hits are given back', async () => {
    fill(tokens('a1', { hits: 50 }), tokens('b1', { hits: 50 }));
    map.of('b').answer = ({ items }) => (items[0]?.hits === 0 ? undefined : UNAVAILABLE);
    const refunds = ['a1', 'b1'].map((key) => tokens(key, { hits: 20, refund: true }));
    expect(await take(...refunds, tokens('a2'), tokens('c1'))).toBe(UNAVAILABLE);
    await turn();
    expect(['a1', 'a2', 'b1', 'c1'].map((key) => used(tokens(key)))).toEqual([30, 0, 50, 0]);
  });
});

describe('giving back', () => {
  beforeEach(() => fill(tokens('a1', { hits: 100 })));

  test('delays no answer, has its own timeout, and ends before the store is closed', async () => {
    let answer: (result: RollbackResult) => void = () => {};
    map.of('b').answerReturn = () => new Promise((resolve) => (answer = resolve));
    map.of('b').answer = ({ items }) => {
      clock.advance(10);
      return map.of('b').memory.take(items);
    };
    const now = clock.monotonicMicros();
    expect(await store.take([tokens('a1'), tokens('b1')], now + 5)).toMatchObject([{ overLimit: true }, {}]);
    expect(map.of('b').returned[0]?.deadlineMicros).toBe(now + 10 + TIMEOUT);
    const closing = store.close();
    await turn();
    expect([map.of('b').closed, store.rollbackStats.made, told.length]).toEqual([false, 0, 1]);
    answer('made');
    await closing;
    expect([map.of('b').closed, store.rollbackStats.made, told.length]).toEqual([true, 1, 2]);
  });

  test.each([[2], [undefined]])('is skipped if the connection has changed (%s)', async (holds) => {
    let answer: () => void = () => {};
    map.of('a').answer = ({ items }) =>
      new Promise((resolve) => (answer = () => resolve(map.of('a').memory.take(items))));
    const taking = take(tokens('a1'), tokens('b1'), tokens('c1'));
    await turn();
    // The connection epoch of b's earlier reply.
    map.of('b').connectionId = holds;
    answer();
    expect(await taking).toMatchObject([{ overLimit: true }, {}, {}]);
    await turn();
    expect([used(tokens('b1')), used(tokens('c1'))]).toEqual([1, 0]);
    expect(store.rollbackStats).toEqual({ ...NONE, skipped: 1 });
  });

  test('counts a request once, with the worst result of its partitions', async () => {
    map.of('b').answerReturn = resolvedWith('failed');
    map.of('c').answerReturn = resolvedWith('skipped');
    await take(tokens('a1'), tokens('b1'), tokens('c1'), tokens('d1'));
    await turn();
    expect(store.rollbackStats).toEqual({ ...NONE, failed: 1 });
    await take(tokens('a1'), tokens('c1'), tokens('d1'));
    await turn();
    expect(store.rollbackStats).toEqual({ ...NONE, failed: 1, skipped: 1 });
    expect(map.of('b').returned).toHaveLength(1);
  });
});

describe('holds', () => {
  const SLOTS = concurrencyRate(2);
  const slot = (key: string, options: ItemOptions = {}) => holdItem(key, SLOTS, options);

  test('of a denied request are left to the caller to end, with all their values', async () => {
    fill(tokens('a1', { hits: 100 }), slot('c1'), slot('c1'));
    let answer: () => void = () => {};
    map.of('a').answer = ({ items }) =>
      new Promise((resolve) => (answer = () => resolve(map.of('a').memory.take(items))));
    const request = [
      tokens('a1'),
      slot('b1'),
      holdItem('b2', HUNDRED, { hits: 5 }),
      slot('c1', { enforcement: 'observe' }),
    ];
    const taking = take(...request);
    await turn();
    map.of('b').connectionId = 2;
    answer();
    const found = await taking;
    expect(found).toMatchObject([
      { overLimit: true },
      { overLimit: false, remaining: 2, used: 0, waitMicros: 0 },
      { overLimit: false, remaining: 100 },
      { overLimit: true, remaining: 0, used: 2, waitMicros: Number.POSITIVE_INFINITY },
    ]);
    const outcomes = found as readonly TakeOutcome[];
    expect(outcomes.map(({ hold }) => hold)).toEqual([undefined, 'abandoned', 'abandoned', 'abandoned']);
    await take(...abandonedEnds(request, outcomes));
    expect(['b1', 'c1'].map((key) => used(slot(key)))).toEqual([0, 2]);
    expect(used(tokens('b2'))).toBe(0);
    expect(store.rollbackStats).toEqual(NONE);
    expect(map.of('b').returned).toEqual([]);
  });

  const held = (result: TakeResult) =>
    (result instanceof StorageError ? result.abandoned : result)?.map(({ hold }) => hold);

  test.each([
    { unsent: false, left: [undefined, 'abandoned', undefined, 'abandoned'] },
    { unsent: true, left: [undefined, undefined, undefined, 'abandoned'] },
  ])('may be placed by a partition without an answer (unsent: $unsent)', async ({ unsent, left }) => {
    const failure = new StorageError('timeout', 'no answer', { unsent });
    map.of('b').answer = () => failure;
    const request = [tokens('a1'), slot('b1'), tokens('b2'), slot('c1')];
    const failed = await take(...request);
    expect(failed).toMatchObject({ reason: 'timeout', message: 'no answer', unsent });
    expect(held(failed)).toEqual(left);
    // The error of one partition hides no hold if another one denies the request.
    await turn();
    fill(tokens('a1', { hits: 100 }));
    expect(held(await take(...request))).toEqual(left);
    map.of('c').answer = () => new StorageError('timeout', 'no answer');
    expect(held(await take(tokens('b1'), slot('c1')))).toEqual([undefined, 'abandoned']);
  });

  test('are settled in each partition that is available, and stay settled', async () => {
    const starts = [slot('a1'), holdItem('b1', HUNDRED, { hits: 5 }), slot('c1')];
    const found = (await take(...starts)) as readonly TakeOutcome[];
    const settlements = starts.map((start, i) => settlementTake(start, found[i] as TakeOutcome, 9));
    map.of('c').refuses = UNAVAILABLE;
    expect(await take(...settlements)).toBe(UNAVAILABLE);
    await turn();
    expect([used(slot('a1')), used(tokens('b1')), used(slot('c1'))]).toEqual([0, 9, 1]);
    map.of('c').refuses = undefined;
    expect(await take(...settlements)).toMatchObject([
      { hold: 'unknown' },
      { hold: 'unknown' },
      { hold: 'settled' },
    ]);
    expect([used(slot('a1')), used(tokens('b1')), used(slot('c1'))]).toEqual([0, 9, 0]);
    expect(store.rollbackStats).toEqual(NONE);
  });
});

test('a take settles once, even if results of its partitions arrive late', async () => {
  const late: ((result: TakeResult) => void)[] = [];
  map.of('a').answer = () => new Promise((resolve) => late.push(resolve));
  const taking = take(tokens('a1'), tokens('b1'));
  await turn();
  late[0]?.(UNAVAILABLE);
  expect(await taking).toBe(UNAVAILABLE);
  await turn();
  expect(used(tokens('b1'))).toBe(0);
});
