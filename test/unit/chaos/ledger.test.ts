import { expect, test } from '@jest/globals';
import type { Bucket } from '../../chaos/calls/buckets.js';
import { Ledger } from '../../chaos/calls/ledger.js';

/** Ten tokens, one a second. */
const TEN: Bucket = { name: 'b0', maxTokens: 10, perMs: 0.001, onFailure: 'error', isLarge: false };

/** Takes `count` tokens in calls that last 5 ms. Returns the maximum number of excess tokens. */
function take(ledger: Ledger, count: number, sentMs: number): number {
  return Math.max(...Array.from({ length: count }, () => ledger.recordAllowed(sentMs, sentMs + 5)));
}

test('a bucket allows its capacity and its refills, and no more', () => {
  const ledger = new Ledger(TEN);
  expect(take(ledger, 10, 1000)).toBe(0);
  expect(take(ledger, 1, 2000)).toBe(0);
  expect(take(ledger, 1, 2000)).toBeCloseTo(1, 1);
  expect(ledger.excessTokens).toBeCloseTo(1, 1);
});

test('a call that began earlier may have taken its token earlier', () => {
  const ledger = new Ledger(TEN);
  take(ledger, 10, 1000);
  expect(ledger.recordAllowed(900, 2000)).toBe(0);
});

test('a bucket may allow the tokens that Redis lost again, and no more', () => {
  const ledger = new Ledger(TEN);
  take(ledger, 10, 1000);
  ledger.markPossiblyLost(1010);
  // Before the check, Redis may have lost a full bucket.
  expect(take(ledger, 9, 1020)).toBe(0);
  expect(take(ledger, 2, 1030)).toBeGreaterThan(0.9);

  const failover = new Ledger(TEN);
  take(failover, 10, 1000);
  failover.markPossiblyLost(1010);
  // The replica had replicated seven of ten takes.
  expect(failover.recordLoss(7, 1020)).toBeCloseTo(3, 1);
  expect(take(failover, 3, 1030)).toBe(0);
  expect(take(failover, 1, 1030)).toBeGreaterThan(0.9);
});

test('a promoted Redis allows the tokens of its bucket, and no more', () => {
  const ledger = new Ledger(TEN);
  ledger.markPossiblyLost(900);
  ledger.recordPromotion(7, 999, 1000);
  take(ledger, 3, 1010);
  expect(ledger.excessAfterPromotion()).toBe(0);
  ledger.recordPromotion(7, 1999, 2000);
  take(ledger, 5, 2010);
  expect(ledger.excessAfterPromotion()).toBeGreaterThan(1.9);
});

test('a token that an unanswered call may have taken is missing until the bucket is full', () => {
  const ledger = new Ledger(TEN);
  for (let i = 0; i < 3; i++) ledger.recordUncertain(900, 1000);
  take(ledger, 7, 1000);
  // The calls took their tokens at most ten seconds later.
  for (let atMs = 2000; atMs <= 12_000; atMs += 1000) take(ledger, 1, atMs);
  expect(ledger.mayDeny(12_100)).toBe(true);
  expect(ledger.mayDeny(17_100)).toBe(false);
});

test('a denial is correct only if the bucket may have had too few tokens', () => {
  const ledger = new Ledger(TEN);
  take(ledger, 5, 1000);
  expect(ledger.mayDeny(1010)).toBe(false);
  take(ledger, 5, 1010);
  expect(ledger.mayDeny(1020)).toBe(true);
  expect(ledger.mayDeny(5000)).toBe(false);
});

test('unanswered calls may have taken tokens, for a limited time', () => {
  const ledger = new Ledger(TEN);
  for (let at = 0; at < 9; at++) ledger.recordUncertain(1000, 1005);
  expect(ledger.mayDeny(2000)).toBe(true);
  expect(ledger.mayDeny(60_000)).toBe(false);
  for (let at = 0; at < 9; at++) ledger.callStarted();
  expect(ledger.mayDeny(60_000)).toBe(true);
  for (let at = 0; at < 9; at++) ledger.callEnded();
  expect(ledger.mayDeny(60_000)).toBe(false);
});
