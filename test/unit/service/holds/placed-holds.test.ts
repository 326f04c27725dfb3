import { expect, test } from '@jest/globals';
import {
  MAX_PLACED_BYTES,
  PlacedHolds,
  type PlacedRequest,
} from '../../../../src/service/holds/placed-holds.js';

const placedHolds = (): PlacedHolds => new PlacedHolds(() => {});

/** Adds a request with so many holds, whose buckets have names of this length. */
function add(placed: PlacedHolds, holds: number, nameLength: number): PlacedRequest {
  const key = 'x'.repeat(nameLength);
  const values = { id: '1', amount: 1, lifetimeMillis: 1000, fullAtMicros: 0, rule: 'r', suffix: '%holds' };
  const hold = { ...values, key, hashTagLength: 1, isLocal: false, freesUnknown: false };
  return placed.add('d', undefined, 0, new Array(holds).fill(hold));
}

test('the oldest requests are forgotten first, with many holds, with long names, or with nothing left', () => {
  const placed = placedHolds();
  const kept = (requests: readonly PlacedRequest[]) =>
    requests.filter(({ holds }) => holds.length > 0).length;
  const many = Array.from({ length: 2000 }, () => add(placed, 50, 40));
  expect(kept(many)).toBe(Math.floor(MAX_PLACED_BYTES / (160 + 50 * 328)));
  expect(kept(many.slice(-100))).toBe(100);
  const long = Array.from({ length: 20_000 }, () => add(placed, 1, 1024));
  expect(kept(many)).toBe(0);
  expect(kept(long)).toBe(Math.floor(MAX_PLACED_BYTES / (160 + 288 + 1024)));
  for (let i = 0; i < 60_000; i++) add(placed, 1, 40);
  expect(kept(long)).toBe(0);
});

test('a request that is forgotten returns its holds once, and makes room', () => {
  const placed = placedHolds();
  const requests = Array.from({ length: 400 }, () => add(placed, 50, 40));
  for (const one of requests) expect(placed.forget(one)).toHaveLength(50);
  for (const one of requests) expect(placed.forget(one)).toHaveLength(0);
  const next = Array.from({ length: 400 }, () => add(placed, 50, 40));
  expect(next.every(({ holds }) => holds.length === 50)).toBe(true);
});

test('a request that its connection no longer remembers makes room for others', () => {
  const placed = placedHolds();
  const first = add(placed, 50, 40);
  for (let i = 0; i < 2000; i++) add(placed, 50, 40).onForgotten();
  expect(first.holds).toHaveLength(50);
});
