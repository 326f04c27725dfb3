import { expect, test } from '@jest/globals';
import type { Bucket } from '../../chaos/calls/buckets.js';
import { Ledger } from '../../chaos/calls/ledger.js';

/** Ten tokens, one a second. */
const TEN: Bucket = { name: 'b0', maxTokens: 10, perMs: 0.001, onFailure: 'error', isLarge: false };

/** Takes so many tokens, each in a call from `sentMs` to 5 ms later; the most that were too many. */
function take(ledger: Ledger, count: number, sentMs: number): number {
  return Math.max(...Array.from({ length: count }, () => ledger.admit(sentMs, sentMs + 5)));
}

test('a bucket gives its capacity, what filled, and not one more', () => {
  const ledger = new Ledger(TEN);
  expect(take(ledger, 10, 1000)).toBe(0);
  expect(take(ledger, 1, 2000)).toBe(0);
  expect(take(ledger, 1, 2000)).toBeCloseTo(1, 1);
  expect(ledger.beyondPlain).toBeCloseTo(1, 1);
});

test('a call that was under way before may have been decided then', () => {
  const ledger = new Ledger(TEN);
  take(ledger, 10, 1000);
  expect(ledger.admit(900, 2000)).toBe(0);
});

test('what was lost with the state of Redis may be given again, and not more', () => {
  const ledger = new Ledger(TEN);
  take(ledger, 10, 1000);
  ledger.lose(1010);
  // Nobody has looked yet: at most a second bucket.
  expect(take(ledger, 9, 1020)).toBe(0);
  expect(take(ledger, 2, 1030)).toBeGreaterThan(0.9);

  const failover = new Ledger(TEN);
  take(failover, 10, 1000);
  failover.lose(1010);
  // The replica knew of seven of ten takes.
  expect(failover.found(7, 1020)).toBeCloseTo(3, 1);
  expect(take(failover, 3, 1030)).toBe(0);
  expect(take(failover, 1, 1030)).toBeGreaterThan(0.9);
});

test('a Redis that was promoted gives what it had, and not more', () => {
  const ledger = new Ledger(TEN);
  ledger.lose(900);
  ledger.promoted(7, 999, 1000);
  take(ledger, 3, 1010);
  expect(ledger.confirm()).toBe(0);
  ledger.promoted(7, 1999, 2000);
  take(ledger, 5, 2010);
  expect(ledger.confirm()).toBeGreaterThan(1.9);
});

test('a token that a call without an answer may have taken is missing until the bucket has filled', () => {
  const ledger = new Ledger(TEN);
  for (let i = 0; i < 3; i++) ledger.maybe(900, 1000);
  take(ledger, 7, 1000);
  // Nobody says for sure when they were taken: ten seconds later at the latest.
  for (let atMs = 2000; atMs <= 12_000; atMs += 1000) take(ledger, 1, atMs);
  expect(ledger.mayDeny(12_100)).toBe(true);
  expect(ledger.mayDeny(17_100)).toBe(false);
});

test('a denial is right only where tokens may have been short', () => {
  const ledger = new Ledger(TEN);
  take(ledger, 5, 1000);
  expect(ledger.mayDeny(1010)).toBe(false);
  take(ledger, 5, 1010);
  expect(ledger.mayDeny(1020)).toBe(true);
  expect(ledger.mayDeny(5000)).toBe(false);
});

test('calls without an answer may have taken tokens, for a while', () => {
  const ledger = new Ledger(TEN);
  for (let at = 0; at < 9; at++) ledger.maybe(1000, 1005);
  expect(ledger.mayDeny(2000)).toBe(true);
  expect(ledger.mayDeny(60_000)).toBe(false);
  for (let at = 0; at < 9; at++) ledger.asked();
  expect(ledger.mayDeny(60_000)).toBe(true);
  for (let at = 0; at < 9; at++) ledger.answered();
  expect(ledger.mayDeny(60_000)).toBe(false);
});
