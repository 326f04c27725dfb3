import { afterEach, expect, jest, test } from '@jest/globals';
import {
  ATTEMPTS_AT_ONCE,
  ConnectionAttempts,
  PAUSE_PER_SERVER_MS,
} from '../../../../../src/storage/redis/connection/connection-attempts.js';

afterEach(() => {
  jest.useRealTimers();
});

test('some attempts run at a time, and the others follow, urgent ones first', async () => {
  const attempts = new ConnectionAttempts();
  const ends: (() => void)[] = [];
  const began: string[] = [];
  const attempt = (name: string, isUrgent = false): Promise<void> =>
    attempts.run(() => {
      began.push(name);
      return new Promise((resolve) => ends.push(resolve));
    }, isUrgent);
  const all = Array.from({ length: ATTEMPTS_AT_ONCE }, (_, i) => attempt(`${i}`));
  all.push(attempt('usual'), attempt('urgent', true));
  expect(began).toHaveLength(ATTEMPTS_AT_ONCE);
  ends[0]?.();
  await all[0];
  await Promise.resolve();
  expect(began.slice(ATTEMPTS_AT_ONCE)).toEqual(['urgent']);
  // A failed attempt frees its slot, too.
  const failing = new ConnectionAttempts();
  for (let i = 0; i < 2 * ATTEMPTS_AT_ONCE; i++) {
    await expect(failing.run(() => Promise.reject(new Error('refused')), false)).rejects.toThrow('refused');
  }
});

test('each waiting server makes the pauses of the others longer', () => {
  jest.useFakeTimers();
  const attempts = new ConnectionAttempts();
  let tried = 0;
  const again = (): void => {
    tried++;
    attempts.later(500, again, false);
  };
  for (let i = 0; i < 1000; i++) attempts.later(500, again, false);
  jest.advanceTimersByTime(60_000);
  const aSecond = 1000 / PAUSE_PER_SERVER_MS;
  expect(tried).toBeGreaterThan(30 * aSecond);
  expect(tried).toBeLessThan(61 * aSecond);
});

test('a few servers have normal pauses, and servers that give up do not count', () => {
  jest.useFakeTimers();
  const attempts = new ConnectionAttempts();
  for (let i = 0; i < 1000; i++) attempts.cancel(attempts.later(500, () => {}, false));
  attempts.cancel(undefined);
  let tried = 0;
  for (let i = 0; i < 20; i++) attempts.later(500, () => tried++, false);
  jest.advanceTimersByTime(500);
  expect(tried).toBe(20);
});

test('servers that have worked do not wait for any number of others', () => {
  jest.useFakeTimers();
  const attempts = new ConnectionAttempts();
  for (let i = 0; i < 1000; i++) attempts.later(500, () => {}, false);
  let tried = 0;
  for (let i = 0; i < 20; i++) attempts.later(500, () => tried++, true);
  jest.advanceTimersByTime(500);
  expect(tried).toBe(20);
});

test('every attempt gets a turn even if urgent attempts never stop', async () => {
  const attempts = new ConnectionAttempts();
  const ends: (() => void)[] = [];
  const began: string[] = [];
  const attempt = (name: string, isUrgent: boolean): void => {
    void attempts.run(() => {
      began.push(name);
      return new Promise<void>((resolve) => ends.push(resolve));
    }, isUrgent);
  };
  for (let i = 0; i < ATTEMPTS_AT_ONCE; i++) attempt('before', true);
  attempt('first urgent', true);
  attempt('usual', false);
  for (let i = 0; i < ATTEMPTS_AT_ONCE; i++) {
    attempt('again', true);
    ends[i]?.();
    await Promise.resolve();
    await Promise.resolve();
  }
  expect(began[ATTEMPTS_AT_ONCE]).toBe('first urgent');
  expect(began).toContain('usual');
});
