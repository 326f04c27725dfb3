import { windowRate } from '../../../src/limiter/fixed-window.js';
import { HUNDRED, takeItem } from './take-items.js';
import {
  DEBT_BUCKET,
  DEBT_MINUTE,
  MINUTE,
  NOW,
  ok,
  overLimit,
  START,
  type TakeVector,
  THREE_TOKENS,
} from './take-vectors.js';

const DAY = 86_400_000_000;
/** Time at which a surplus granted now expires, and time at which an earlier surplus expires. */
const VOID = NOW + DAY;
const SOON = NOW + 1;
const NOTHING = windowRate('minute', 0);
const LEFT = 40_000_000;
const MANY = Number.MAX_SAFE_INTEGER;

function grant(hits: number): { readonly hits: number; readonly refund: true; readonly over: true } {
  return { hits, refund: true, over: true };
}

/** Refunds beyond the capacity, and later changes of the surplus; see TakeItem. */
export const OVER_VECTORS: readonly TakeVector[] = [
  {
    name: 'refunds past full: of a full bucket, of one that stays below, and one in thirds of a microsecond',
    before: { b: `t1:${NOW + 10_000_000}:0:1` },
    items: [
      takeItem('a', HUNDRED, grant(5)),
      takeItem('b', HUNDRED, grant(40)),
      takeItem('c', THREE_TOKENS, grant(1)),
    ],
    outcomes: [ok(105, 0, 0), ok(40, 100_000, 60), ok(4, 0, 0)],
    after: { a: `o1:${VOID}:500000:0:1`, b: `t1:${NOW + 6_000_000}:0:1`, c: `o1:${VOID}:333334:2:3` },
  },
  {
    name: 'a refund past full of more than any bucket holds, and two that are no such refund',
    before: { b: `o1:${SOON}:500000:0:1`, c: `o1:${SOON}:500000:0:1` },
    items: [
      takeItem('a', HUNDRED, grant(MANY)),
      takeItem('b', HUNDRED, { hits: 7, refund: true }),
      takeItem('c', HUNDRED, grant(0)),
    ],
    outcomes: [ok(3_153_600_100, 0, 0), ok(105, 0, 0), ok(105, 0, 0)],
    after: { a: `o1:${VOID}:315360000000000:0:1`, b: `o1:${SOON}:500000:0:1`, c: `o1:${SOON}:500000:0:1` },
  },
  {
    name: 'takes use up what is over first, and the rest is taken from a full bucket',
    before: { a: `o1:${SOON}:500000:0:1`, b: `o1:${SOON}:500000:0:1`, c: `o1:${SOON}:333334:2:3` },
    items: [
      takeItem('a', HUNDRED, { hits: 3 }),
      takeItem('b', HUNDRED, { hits: 7 }),
      takeItem('c', THREE_TOKENS),
    ],
    outcomes: [ok(102, 0, 0), ok(98, 100_000, 2), ok(3, 0, 0)],
    after: { a: `o1:${SOON}:200000:0:1`, b: `t1:${NOW + 200_000}:0:1` },
  },
  {
    name: 'what is over is void when its time has come, and has a longer one with more of it',
    before: { a: `o1:${NOW}:500000:0:1`, b: `o1:${SOON}:500000:0:1` },
    items: [takeItem('a', HUNDRED), takeItem('b', HUNDRED, grant(1))],
    outcomes: [ok(99, 100_000, 1), ok(106, 0, 0)],
    after: { a: `t1:${NOW + 100_000}:0:1`, b: `o1:${VOID}:600000:0:1` },
  },
  {
    name: 'one request may not take more than the limit from a bucket past full',
    before: { a: `o1:${SOON}:5000000:0:1` },
    items: [takeItem('a', HUNDRED, { hits: 101 })],
    outcomes: [overLimit(150, 0, 0)],
  },
  {
    name: 'a take is undone on a bucket past full, however late, and on one that was',
    before: { a: `o1:${SOON}:200000:0:1`, b: `t1:${NOW + 200_000}:0:1` },
    items: [
      { ...takeItem('a', HUNDRED, { hits: 3, refund: true }), undoMark: NOW - 300_000 },
      { ...takeItem('b', HUNDRED, { hits: 7, refund: true }), undoMark: NOW },
    ],
    outcomes: [ok(105, 0, 0), ok(100, 0, 0)],
    after: { a: `o1:${SOON}:500000:0:1` },
  },
  {
    name: 'a refund past full to a bucket that a smaller limit cuts off',
    before: { a: `t1:${NOW + 12_000_000}:0:1` },
    items: [takeItem('a', HUNDRED, grant(105))],
    outcomes: [ok(105, 0, 0)],
    after: { a: `o1:${VOID}:500000:0:1` },
  },
  {
    name: 'charges on buckets past full: with more than enough, and down to the deepest debt',
    before: { a: `o1:${SOON}:40000000:0:1`, b: `o1:${SOON}:500000:0:1` },
    items: [takeItem('a', DEBT_BUCKET, { hits: 300 }), takeItem('b', DEBT_BUCKET, { hits: 300 })],
    outcomes: [ok(200, 0, 0), { ...ok(0, 5_100_000, 100), forgiven: 145 }],
    after: { a: `o1:${SOON}:10000000:0:1`, b: `t1:${NOW + 15_000_000}:0:1` },
  },
  {
    name: 'a denied request gives nothing past full',
    before: { a: `o1:${SOON}:500000:0:1`, b: `t1:${NOW + 10_000_000}:0:1` },
    items: [takeItem('a', HUNDRED, grant(5)), takeItem('b', HUNDRED), takeItem('a', HUNDRED)],
    outcomes: [ok(105, 0, 0), overLimit(0, 100_000, 100), ok(105, 0, 0)],
  },
  {
    name: 'hits beyond the limit of a window: granted, used up first, and no more than the limit at once',
    countDeniedHits: false,
    before: { w: `w1:${START}:4:60000000` },
    items: [
      takeItem('w', MINUTE, grant(10)),
      takeItem('w', MINUTE, { hits: 5 }),
      takeItem('w', MINUTE, { hits: 6, enforcement: 'observe' }),
      takeItem('w', MINUTE, { hits: 3 }),
    ],
    outcomes: [ok(11, LEFT, 0), ok(6, LEFT, 0), overLimit(0, LEFT, 0), ok(3, LEFT, 2)],
    after: { w: `w1:${START}:2:60000000` },
  },
  {
    name: 'hits beyond the limit of a window are kept, counted when denied, and end with it',
    before: { w: `g1:${START}:8:60000000`, x: `g1:${START - 60_000_000}:8:60000000` },
    items: [
      takeItem('w', MINUTE, { hits: 6, enforcement: 'observe' }),
      takeItem('x', MINUTE),
      takeItem('w', MINUTE, { hits: 9, refund: true }),
    ],
    outcomes: [overLimit(0, LEFT, 0), ok(4, LEFT, 1), ok(7, LEFT, 0)],
    after: { w: `g1:${START}:2:60000000`, x: `w1:${START}:1:60000000` },
  },
  {
    name: 'hits beyond the limit of a window: the most there are, and none of a limit that lets nothing pass',
    before: { x: `w1:${START}:3:60000000` },
    items: [takeItem('w', MINUTE, grant(MANY)), takeItem('x', NOTHING, grant(MANY))],
    outcomes: [ok(0xffff_ffff, LEFT, 0), ok(0, LEFT, 0)],
    after: { w: `g1:${START}:4294967290:60000000` },
  },
  {
    name: 'hits beyond the limit of windows in debt: of one that has begun with it, and of the one before',
    before: { w: `d1:${START}:4:60000000`, x: `d1:${START + 60_000_000}:4:60000000` },
    items: [takeItem('w', DEBT_MINUTE, grant(10)), takeItem('x', DEBT_MINUTE, grant(10))],
    outcomes: [ok(11, LEFT, 0), ok(6, LEFT, 0)],
    after: { w: `g1:${START}:6:60000000`, x: `g1:${START}:1:60000000` },
  },
  {
    name: 'a take is undone on a window of which more than the limit may pass, and on one of which no more may',
    countDeniedHits: false,
    before: { w: `g1:${START}:2:60000000`, x: `w1:${START}:2:60000000` },
    items: [
      { ...takeItem('w', MINUTE, { hits: 3, refund: true }), undoMark: START },
      { ...takeItem('x', MINUTE, { hits: 3, refund: true }), undoMark: START },
    ],
    outcomes: [ok(10, LEFT, 0), ok(5, LEFT, 0)],
    after: { w: `g1:${START}:5:60000000` },
  },
];
