import { expect, test } from '@jest/globals';
import { CircuitBreaker } from '../../../../src/storage/redis/connection/circuit-breaker.js';

test('opens after a run of failures, once', () => {
  const breaker = new CircuitBreaker(3);
  expect([breaker.failure(), breaker.failure(), breaker.open]).toEqual([false, false, false]);
  expect([breaker.failure(), breaker.open]).toEqual([true, true]);
  expect(breaker.failure()).toBe(false);
});

test('a success ends the run, but does not close what is open', () => {
  const breaker = new CircuitBreaker(2);
  breaker.failure();
  breaker.success();
  expect(breaker.failure()).toBe(false);
  expect(breaker.failure()).toBe(true);
  breaker.success();
  expect(breaker.open).toBe(true);
});

test('closing forgets the failures before', () => {
  const breaker = new CircuitBreaker(2);
  breaker.failure();
  breaker.failure();
  breaker.close();
  expect([breaker.open, breaker.failure(), breaker.failure()]).toEqual([false, false, true]);
});

test('silence opens it without a run', () => {
  const breaker = new CircuitBreaker(5);
  expect([breaker.trip(), breaker.trip(), breaker.open]).toEqual([true, false, true]);
  breaker.close();
  expect(breaker.open).toBe(false);
});
