import { expect, test } from '@jest/globals';
import {
  MAX_PLACED_BYTES,
  PlacedHolds,
  type PlacedRequest,
} from '../../../../src/service/holds/placed-holds.js';

function request(holds: number, nameLength: number): PlacedRequest {
  const key = 'x'.repeat(nameLength);
  const values = { id: '1', amount: 1, lifetimeMillis: 1000, fullMicros: 0, rule: 'r', suffix: '%holds' };
  const hold = { ...values, key, tagLength: 1, isLocal: false, freesUnknown: false };
  return { domain: 'd', placedMicros: 0, holds: new Array(holds).fill(hold) };
}

test('the oldest requests are forgotten first, with many holds, with long names, or with nothing left', () => {
  const placed = new PlacedHolds();
  const kept = (requests: readonly PlacedRequest[]) =>
    requests.filter(({ holds }) => holds.length > 0).length;
  const many = Array.from({ length: 2000 }, () => placed.add(request(50, 40)));
  expect(kept(many)).toBe(Math.floor(MAX_PLACED_BYTES / (160 + 50 * 328)));
  expect(kept(many.slice(-100))).toBe(100);
  const long = Array.from({ length: 20_000 }, () => placed.add(request(1, 1024)));
  expect(kept(many)).toBe(0);
  expect(kept(long)).toBe(Math.floor(MAX_PLACED_BYTES / (160 + 288 + 1024)));
  for (let i = 0; i < 60_000; i++) placed.forget(placed.add(request(1, 40)));
  expect(kept(long)).toBe(0);
});

test('a request that is forgotten returns its holds once, and makes room', () => {
  const placed = new PlacedHolds();
  const requests = Array.from({ length: 400 }, () => placed.add(request(50, 40)));
  for (const one of requests) expect(placed.forget(one)).toHaveLength(50);
  for (const one of requests) expect(placed.forget(one)).toHaveLength(0);
  const next = Array.from({ length: 400 }, () => placed.add(request(50, 40)));
  expect(next.every(({ holds }) => holds.length === 50)).toBe(true);
});
