import type { Take, TakeOutcome } from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { settlingRate } from '../../../src/limiter/local-rate.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { HUNDRED, takeItem } from './take-items.js';

/** The recorded fields of an outcome. */
export type RecordedOutcome = Pick<TakeOutcome, 'overLimit' | 'remaining' | 'waitMicros' | 'used'> &
  Partial<Pick<TakeOutcome, 'uncollectedHits'>>;

/** One recorded decision: stored values before, request, answer, and stored values after. */
export interface TakeVector {
  readonly name: string;
  /** Default: {@link NOW}. */
  readonly nowMicros?: number;
  readonly countDeniedHits?: boolean;
  /** Stored values by key, in the format of take.lua. */
  readonly before: Readonly<Record<string, string>>;
  readonly items: readonly Take[];
  readonly outcomes: readonly RecordedOutcome[];
  /** Absent if nothing changes. */
  readonly after?: Readonly<Record<string, string>>;
}

export const NOW = 1_700_000_000_000_000;
const THREE_TOKENS = tokenBucketRate(3, 3, 1_000_000);
const HUGE = tokenBucketRate(0xffff_ffff, 0xffff_fffb, 86_400_000_000);
export const MINUTE = windowRate('minute', 5);
const DEBT_BUCKET = tokenBucketRate(100, 10, 1_000_000, 50);
const DEBT_MINUTE = windowRate('minute', 5, { maxDebt: 5 });
const PLAIN_MINUTE = windowRate('minute', 20);
const BERLIN_DAY = windowRate('day', 5, { timeZone: 'Europe/Berlin' });
/** Start of the minute that contains NOW, 20 s before it. */
export const START = 1_699_999_980_000_000;

export function ok(remaining: number, waitMicros: number, used: number): RecordedOutcome {
  return { overLimit: false, remaining, waitMicros, used, uncollectedHits: 0 };
}

export function overLimit(remaining: number, waitMicros: number, used: number): RecordedOutcome {
  return { overLimit: true, remaining, waitMicros, used };
}

/** Vectors that both implementations of the arithmetic run: TypeScript and Lua. */
export const TAKE_VECTORS: readonly TakeVector[] = [
  {
    name: 'a first hit',
    before: {},
    items: [takeItem('a', HUNDRED)],
    outcomes: [ok(99, 100_000, 1)],
    after: { a: 't1:1700000000100000:0:1' },
  },
  {
    name: 'a hit that fits to the microsecond',
    before: { a: 't1:1700000009900000:0:1' },
    items: [takeItem('a', HUNDRED)],
    outcomes: [ok(0, 100_000, 100)],
    after: { a: 't1:1700000010000000:0:1' },
  },
  {
    name: 'a hit that misses by a microsecond',
    before: { a: 't1:1700000009900001:0:1' },
    items: [takeItem('a', HUNDRED)],
    outcomes: [overLimit(0, 1, 100)],
  },
  {
    name: 'a hit that misses by a third of a microsecond',
    before: { a: 't1:1700000000666667:0:3' },
    items: [takeItem('a', THREE_TOKENS)],
    outcomes: [overLimit(0, 1, 3)],
  },
  {
    name: 'carries that run over',
    before: { a: 't1:1700000000333333:2:3' },
    items: [takeItem('a', THREE_TOKENS)],
    // 333,333 2/3 + 333,333 1/3: the remainder of the second is a third of a microsecond short of a token.
    outcomes: [ok(0, 1, 3)],
    after: { a: 't1:1700000000666667:0:3' },
  },
  {
    name: 'a bucket that is full but for a carry',
    before: { a: 't1:1700000000000000:1:3' },
    items: [takeItem('a', THREE_TOKENS, { hits: 0 })],
    outcomes: [ok(2, 1, 1)],
  },
  {
    name: 'a state in the past',
    before: { a: 't1:1600000000000000:1:3' },
    items: [takeItem('a', THREE_TOKENS, { hits: 3 })],
    outcomes: [ok(0, 333_334, 3)],
    after: { a: 't1:1700000001000000:0:3' },
  },
  {
    name: 'products beyond 2^53',
    before: {},
    items: [takeItem('a', HUGE, { hits: 4_294_967_290 })],
    // 4,294,967,290 x 86,400,000,000 / 4,294,967,291 = 86,399,999,979 and a carry of 3,794,313,111.
    outcomes: [ok(5, 21, 4_294_967_290)],
    after: { a: 't1:1700086399999979:3794313111:4294967291' },
  },
  {
    name: 'a state above empty, which a request that is denied leaves as it is',
    before: { a: 't1:1800000000000000:0:1' },
    items: [takeItem('a', HUNDRED)],
    outcomes: [overLimit(0, 100_000, 100)],
  },
  {
    name: 'a carry of another limit, rounded against the caller',
    before: { a: 't1:1700000000333333:1:3' },
    items: [takeItem('a', HUNDRED)],
    outcomes: [ok(95, 33_334, 5)],
    after: { a: 't1:1700000000433334:0:1' },
  },
  {
    name: 'a carry of another limit that has parts too',
    before: { a: 't1:1700000000000001:6:7' },
    // The result is 2 microseconds, not 1 and 6 thirds.
    items: [takeItem('a', THREE_TOKENS)],
    outcomes: [ok(1, 2, 2)],
    after: { a: 't1:1700000000333335:1:3' },
  },
  {
    name: 'a refund across a carry',
    before: { a: 't1:1700000000667000:0:3' },
    items: [takeItem('a', THREE_TOKENS, { refund: true })],
    outcomes: [ok(1, 334, 2)],
    after: { a: 't1:1700000000333666:2:3' },
  },
  {
    name: 'a refund to exactly full',
    before: { a: 't1:1700000000333333:1:3' },
    items: [takeItem('a', THREE_TOKENS, { refund: true })],
    outcomes: [ok(3, 0, 0)],
    after: {},
  },
  {
    name: 'together: the request takes from all of them or from none',
    before: { a: 't1:1700000005000000:0:1', b: 't1:1700000010000000:0:1', w: `w1:${START}:4:60000000` },
    items: [
      takeItem('a', HUNDRED),
      takeItem('w', MINUTE),
      takeItem('b', HUNDRED),
      takeItem('w', MINUTE),
      takeItem('c', HUNDRED, { refund: true }),
    ],
    outcomes: [
      ok(50, 100_000, 50),
      ok(0, 40_000_000, 5),
      overLimit(0, 100_000, 100),
      overLimit(0, 40_000_000, 6),
      ok(100, 0, 0),
    ],
    after: { a: 't1:1700000005000000:0:1', b: 't1:1700000010000000:0:1', w: `w1:${START}:6:60000000` },
  },
  {
    name: 'all or nothing, denied hits not counted',
    countDeniedHits: false,
    before: { w: `w1:${START}:4:60000000`, x: `w1:${START}:1:60000000` },
    items: [takeItem('x', MINUTE), takeItem('w', MINUTE, { hits: 2 })],
    outcomes: [ok(4, 40_000_000, 1), overLimit(0, 40_000_000, 4)],
  },
  {
    name: 'a window of the past',
    before: { w: `w1:${START - 60_000_000}:5:60000000` },
    items: [takeItem('w', MINUTE)],
    outcomes: [ok(4, 40_000_000, 1)],
    after: { w: `w1:${START}:1:60000000` },
  },
  {
    name: 'a window counted to the end of numbers',
    before: { w: `w1:${START}:9007199254740990:60000000` },
    items: [takeItem('w', MINUTE, { hits: 5 })],
    outcomes: [overLimit(0, 40_000_000, 9_007_199_254_740_991)],
    after: { w: `w1:${START}:9007199254740991:60000000` },
  },
  {
    name: 'a window over its limit, watched only: what is counted is told',
    before: { w: `w1:${START}:5:60000000` },
    items: [takeItem('w', MINUTE, { hits: 3, enforcement: 'observe' })],
    outcomes: [overLimit(0, 40_000_000, 8)],
    after: { w: `w1:${START}:8:60000000` },
  },
  {
    name: 'a window over its limit, denied hits not counted',
    countDeniedHits: false,
    before: { w: `w1:${START}:4:60000000` },
    items: [takeItem('w', MINUTE, { hits: 3 })],
    outcomes: [overLimit(0, 40_000_000, 4)],
  },
  {
    name: 'a charge without debt: what is there goes, and the rest is forgiven',
    before: { a: 't1:1700000007000000:0:1' },
    items: [takeItem('a', settlingRate(HUNDRED), { hits: 50 })],
    outcomes: [{ ...ok(0, 100_000, 100), uncollectedHits: 20 }],
    after: { a: 't1:1700000010000000:0:1' },
  },
  {
    name: 'a charge without debt of a single hit, on an empty bucket',
    before: { a: 't1:1700000010000000:0:1' },
    items: [takeItem('a', settlingRate(HUNDRED))],
    outcomes: [{ ...ok(0, 100_000, 100), uncollectedHits: 1 }],
  },
  {
    name: 'the same on a bucket in debt, which stays as it is',
    before: { a: 't1:1700000012000000:0:1' },
    items: [takeItem('a', settlingRate(HUNDRED), { hits: 3 })],
    outcomes: [{ ...ok(0, 100_000, 100), uncollectedHits: 3 }],
  },
  {
    name: 'the same on a window in debt, which stays as it is',
    before: { w: `d1:${START + 60_000_000}:2:60000000` },
    items: [takeItem('w', settlingRate(MINUTE), { hits: 3 })],
    outcomes: [{ ...ok(0, 40_000_000, Number.MAX_SAFE_INTEGER), uncollectedHits: 3 }],
  },
  {
    name: 'the same on a window: down to its limit',
    before: { w: `w1:${START}:4:60000000` },
    items: [takeItem('w', settlingRate(MINUTE), { hits: 3 })],
    outcomes: [{ ...ok(0, 40_000_000, 5), uncollectedHits: 2 }],
    after: { w: `w1:${START}:5:60000000` },
  },
  {
    name: 'a charge past empty, on a bucket with debt',
    before: { a: 't1:1700000009950000:0:1' },
    items: [takeItem('a', DEBT_BUCKET, { hits: 30 })],
    // The bucket had half a token: 100 - 0.5 + 30.
    outcomes: [ok(0, 3_050_000, 100)],
    after: { a: 't1:1700000012950000:0:1' },
  },
  {
    name: 'a charge past the deepest debt: the rest is forgiven',
    before: { a: 't1:1700000012950000:0:1' },
    items: [takeItem('a', DEBT_BUCKET, { hits: 30 })],
    outcomes: [{ ...ok(0, 5_100_000, 100), uncollectedHits: 10 }],
    after: { a: 't1:1700000015000000:0:1' },
  },
  {
    name: 'a plain hit and a peek on a bucket in debt',
    before: { a: 't1:1700000012950000:0:1' },
    items: [takeItem('a', DEBT_BUCKET, { enforcement: 'observe' }), takeItem('a', DEBT_BUCKET, { hits: 0 })],
    outcomes: [overLimit(0, 3_050_000, 100), overLimit(0, 3_050_000, 100)],
  },
  {
    name: 'a charge beside a limit that denies: nothing is taken',
    before: { b: 't1:1700000010000000:0:1' },
    items: [takeItem('a', DEBT_BUCKET, { hits: 30 }), takeItem('b', HUNDRED)],
    outcomes: [ok(100, 0, 0), overLimit(0, 100_000, 100)],
  },
  {
    name: 'a window with debt: what is too much counts in the next one',
    before: { w: `w1:${START}:4:60000000` },
    items: [takeItem('w', DEBT_MINUTE, { hits: 3 })],
    outcomes: [ok(0, 40_000_000, 7)],
    after: { w: `d1:${START + 60_000_000}:2:60000000` },
  },
  {
    name: 'a window with debt: more than the next one can pay is forgiven',
    before: { w: `d1:${START + 60_000_000}:2:60000000` },
    items: [takeItem('w', DEBT_MINUTE, { hits: 9 })],
    outcomes: [{ ...ok(0, 40_000_000, 10), uncollectedHits: 6 }],
    after: { w: `d1:${START + 60_000_000}:5:60000000` },
  },
  {
    name: 'a window whose debt uses up the next one, too',
    before: { w: `d1:${START + 60_000_000}:5:60000000` },
    items: [takeItem('w', DEBT_MINUTE)],
    outcomes: [overLimit(0, 100_000_000, 10)],
  },
  {
    name: 'a window that begins with a debt',
    nowMicros: NOW + 60_000_000,
    before: { w: `d1:${START + 60_000_000}:4:60000000` },
    items: [takeItem('w', DEBT_MINUTE)],
    outcomes: [ok(0, 40_000_000, 5)],
    after: { w: `w1:${START + 60_000_000}:5:60000000` },
  },
  {
    name: 'a window in debt and a rule without: used up, and the debt stays',
    before: { w: `d1:${START + 60_000_000}:2:60000000` },
    items: [takeItem('w', PLAIN_MINUTE)],
    outcomes: [overLimit(0, 40_000_000, Number.MAX_SAFE_INTEGER)],
  },
  {
    name: 'a refund to a window in debt by a rule without, beside one hit more',
    before: { w: `d1:${START + 60_000_000}:2:60000000` },
    items: [takeItem('w', PLAIN_MINUTE, { hits: 7, refund: true }), takeItem('w', PLAIN_MINUTE)],
    outcomes: [ok(0, 40_000_000, Number.MAX_SAFE_INTEGER), overLimit(0, 40_000_000, Number.MAX_SAFE_INTEGER)],
  },
  {
    name: 'a window that begins with a debt, and a rule without',
    nowMicros: NOW + 60_000_000,
    before: { w: `d1:${START + 60_000_000}:4:60000000` },
    items: [takeItem('w', PLAIN_MINUTE)],
    outcomes: [ok(15, 40_000_000, 5)],
    after: { w: `w1:${START + 60_000_000}:5:60000000` },
  },
  {
    name: 'a window of the future that is no debt, and a rule without: the clock stepped back',
    before: { w: `w1:${START + 60_000_000}:2:60000000` },
    items: [takeItem('w', PLAIN_MINUTE)],
    outcomes: [ok(19, 40_000_000, 1)],
    after: { w: `w1:${START}:1:60000000` },
  },
  {
    name: 'a day of a calendar: the window is that of Berlin',
    before: {},
    items: [takeItem('w', BERLIN_DAY)],
    // 14 November 2023, 23:13:20 in Berlin.
    outcomes: [ok(4, 2_800_000_000, 1)],
    after: { w: 'w1:1699916400000000:1:86400000000' },
  },
  {
    name: 'the night clocks went back: a day of 25 hours',
    nowMicros: 1_698_544_800_000_000,
    before: { w: 'w1:1698530400000000:4:90000000000' },
    items: [takeItem('w', BERLIN_DAY)],
    outcomes: [ok(0, 75_600_000_000, 5)],
    after: { w: 'w1:1698530400000000:5:90000000000' },
  },
  {
    name: 'a refund to the window that holds, and to others',
    before: { w: `w1:${START}:4:60000000`, x: `w1:${START}:4:60000000` },
    items: [
      { ...takeItem('w', MINUTE, { hits: 3, refund: true }), undoAtMicros: START },
      { ...takeItem('x', MINUTE, { hits: 3, refund: true }), undoAtMicros: START - 60_000_000 },
      { ...takeItem('x', MINUTE, { refund: true }), undoAtMicros: START + 60_000_000 },
    ],
    outcomes: [ok(4, 40_000_000, 1), ok(1, 40_000_000, 4), ok(1, 40_000_000, 4)],
    after: { w: `w1:${START}:1:60000000`, x: `w1:${START}:4:60000000` },
  },
  {
    name: 'takes that are undone: in time, as far as the bucket would not have been full, and later',
    before: { a: 't1:1700000000500000:0:1', b: 't1:1700000000500000:0:1', c: 't1:1700000000500000:0:1' },
    items: [
      { ...takeItem('a', HUNDRED, { hits: 3, refund: true }), undoAtMicros: NOW },
      { ...takeItem('b', HUNDRED, { hits: 3, refund: true }), undoAtMicros: NOW - 200_001 },
      { ...takeItem('c', HUNDRED, { hits: 3, refund: true }), undoAtMicros: NOW - 300_000 },
    ],
    outcomes: [ok(98, 100_000, 2), ok(95, 1, 5), ok(95, 100_000, 5)],
    after: { a: 't1:1700000000200000:0:1', b: 't1:1700000000400001:0:1', c: 't1:1700000000500000:0:1' },
  },
  {
    name: 'a take that is undone, in thirds of a microsecond',
    before: { a: 't1:1700000000666666:2:3' },
    items: [{ ...takeItem('a', THREE_TOKENS, { refund: true }), undoAtMicros: NOW - 333_333 }],
    outcomes: [ok(1, 333_333, 2)],
    after: { a: 't1:1700000000666666:1:3' },
  },
  {
    name: 'takes that are undone from buckets with debt: above its bound, and at it since the take',
    before: { a: 't1:1700000014999998:0:1', b: 't1:1700000014999999:0:1' },
    items: [
      { ...takeItem('a', DEBT_BUCKET, { hits: 20, refund: true }), undoAtMicros: NOW - 1 },
      { ...takeItem('b', DEBT_BUCKET, { hits: 20, refund: true }), undoAtMicros: NOW - 1 },
    ],
    outcomes: [ok(0, 3_099_999, 100), ok(0, 5_099_999, 100)],
    after: { a: 't1:1700000012999999:0:1', b: 't1:1700000014999999:0:1' },
  },
  {
    name: 'takes that are undone from a bucket of a larger limit',
    before: { a: 't1:1700000012000000:0:1' },
    items: [
      { ...takeItem('a', HUNDRED, { hits: 3, refund: true }), undoAtMicros: NOW },
      { ...takeItem('a', HUNDRED, { hits: 3, refund: true }), undoAtMicros: NOW },
    ],
    outcomes: [ok(0, 100_000, 100), ok(0, 100_000, 100)],
    after: { a: 't1:1700000011400000:0:1' },
  },
  {
    name: 'refunds to a bucket of a larger limit: some of its hits, and all of them',
    before: { a: 't1:1700000012000000:0:1', b: 't1:1800000000000000:0:1' },
    items: [
      takeItem('a', HUNDRED, { hits: 30, refund: true }),
      takeItem('b', HUNDRED, { hits: Number.MAX_SAFE_INTEGER, refund: true }),
    ],
    outcomes: [ok(10, 100_000, 90), ok(100, 0, 0)],
    after: { a: 't1:1700000009000000:0:1' },
  },
  {
    name: 'a refund and a peek on a window that a larger limit has filled',
    before: { w: `w1:${START}:17:60000000` },
    items: [
      takeItem('w', DEBT_MINUTE, { hits: 2, refund: true }),
      takeItem('w', DEBT_MINUTE, { hits: 0, enforcement: 'observe' }),
    ],
    outcomes: [ok(0, 40_000_000, 10), overLimit(0, 100_000_000, 10)],
    after: { w: `w1:${START}:15:60000000` },
  },
  {
    name: 'a charge on a window that a larger limit has filled: the deepest debt',
    before: { w: `w1:${START}:17:60000000` },
    items: [takeItem('w', DEBT_MINUTE, { hits: 3 })],
    outcomes: [{ ...ok(0, 40_000_000, 10), uncollectedHits: 3 }],
    after: { w: `d1:${START + 60_000_000}:5:60000000` },
  },
  {
    name: 'a refund to the window before one that begins with its debt',
    nowMicros: NOW + 60_000_000,
    before: { w: `d1:${START + 60_000_000}:4:60000000` },
    items: [{ ...takeItem('w', DEBT_MINUTE, { hits: 4, refund: true }), undoAtMicros: START }],
    outcomes: [ok(1, 40_000_000, 4)],
  },
  {
    name: 'a charge without debt in a request that is denied',
    before: { a: 't1:1700000010000000:0:1', w: `w1:${START}:2:60000000` },
    items: [takeItem('a', HUNDRED), takeItem('w', settlingRate(MINUTE), { hits: 3 })],
    outcomes: [overLimit(0, 100_000, 100), ok(3, 40_000_000, 2)],
  },
  {
    name: 'a refund to a day of a calendar',
    before: { w: 'w1:1699916400000000:3:86400000000' },
    items: [{ ...takeItem('w', BERLIN_DAY, { hits: 2, refund: true }), undoAtMicros: 1_699_916_400_000_000 }],
    outcomes: [ok(4, 2_800_000_000, 1)],
    after: { w: 'w1:1699916400000000:1:86400000000' },
  },
];
