import { expect, test } from '@jest/globals';
import { CircuitBreaker } from '../../../../src/storage/redis/connection/circuit-breaker.js';

test('opens once after consecutive failures', () => {
  const breaker = new CircuitBreaker(3);
  expect([breaker.failure(), breaker.failure(), breaker.open]).toEqual([false, false, false]);
  expect([breaker.failure(), breaker.open]).toEqual([true, true]);
  expect(breaker.failure()).toBe(false);
});

test('a success resets the failures, but does not close an open breaker', () => {
  const breaker = new CircuitBreaker(2);
  breaker.failure();
  breaker.success();
  expect(breaker.failure()).toBe(false);
  expect(breaker.failure()).toBe(true);
  breaker.success();
  expect(breaker.open).toBe(true);
});

test('closing it resets the failures', () => {
  const breaker = new CircuitBreaker(2);
  breaker.failure();
  breaker.failure();
  breaker.close();
  expect([breaker.open, breaker.failure(), breaker.failure()]).toEqual([false, false, true]);
});

test('opens at once when Redis is silent', () => {
  const breaker = new CircuitBreaker(5);
  expect([breaker.trip(), breaker.trip(), breaker.open]).toEqual([true, false, true]);
  breaker.close();
  expect(breaker.open).toBe(false);
});
