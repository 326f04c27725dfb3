import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { DeadlineQueue, type Expiring } from '../../../../src/grpc/h2-transport/deadline-queue.js';
import { runs } from '../../../support/assert/runs.js';
import { FakeTimerSource } from '../../../support/clock/fake-timer-source.js';

class Entry implements Expiring {
  dueAt = 0;
  heapIndex = -1;
  expiredMs: number | undefined;
  readonly #timers: FakeTimerSource;

  constructor(timers: FakeTimerSource) {
    this.#timers = timers;
  }

  expire(): void {
    this.expiredMs = this.#timers.nowMs();
  }
}

describe('DeadlineQueue', () => {
  test('expires each entry within a millisecond of its time, unless it was removed', () => {
    const step = fc.record({ delayMs: fc.integer({ min: 0, max: 500 }), keep: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 0, max: 400 }), (steps, pauseMs) => {
        const timers = new FakeTimerSource();
        const queue = new DeadlineQueue(timers);
        const entries = steps.map(({ delayMs }, index) => {
          const entry = new Entry(timers);
          queue.add(entry, delayMs);
          if (index === 10) timers.advance(pauseMs);
          return { entry, dueMs: entry.dueAt };
        });
        const removed = entries.filter(
          ({ entry }, index) => steps[index]?.keep === false && entry.expiredMs === undefined,
        );
        for (const { entry } of removed) queue.remove(entry);
        timers.advance(1000);
        for (const one of entries) {
          if (removed.includes(one)) expect(one.entry.expiredMs).toBeUndefined();
          else expect((one.entry.expiredMs ?? Number.NaN) - one.dueMs).toBeLessThanOrEqual(pauseMs + 1);
        }
        expect(queue.size).toBe(0);
        expect(timers.waiting).toBe(0);
      }),
      runs(300),
    );
  });

  test('expires many simultaneous entries in several turns of the event loop', () => {
    const timers = new FakeTimerSource();
    const queue = new DeadlineQueue(timers);
    const expired: number[] = [];
    const turns: (() => void)[] = [];
    timers.nextTurn = (callback) => turns.push(callback);
    for (let index = 0; index < 1000; index++) {
      queue.add({ dueAt: 0, heapIndex: -1, expire: () => expired.push(index) }, 10);
    }
    timers.advance(11);
    for (let before = 0; turns.length > 0; before = expired.length) {
      expect(expired.length - before).toBeLessThanOrEqual(100);
      expect(turns).toHaveLength(1);
      // An entry that is added meanwhile and is due first is handled, and needs no timer.
      if (before === 0) queue.add({ dueAt: 0, heapIndex: -1, expire: () => expired.push(-1) }, 1);
      expect(timers.waiting).toBe(0);
      turns.shift()?.();
    }
    expect(expired).toHaveLength(1000);
    timers.advance(1);
    turns.shift()?.();
    expect(expired).toHaveLength(1001);
    expect(queue.size).toBe(0);
    expect(timers.waiting).toBe(0);
  });

  test('expires an entry that became due after the timer had fired only in a later turn', () => {
    const timers = new FakeTimerSource();
    const queue = new DeadlineQueue(timers);
    const [before, after] = [new Entry(timers), new Entry(timers)];
    const turns: (() => void)[] = [];
    timers.nextTurn = (callback) => turns.push(callback);
    queue.add(before, 10);
    timers.advance(10);
    queue.add(after, 20);
    // The process reads data for longer than the time of the new entry.
    timers.advance(30);
    turns.shift()?.();
    expect(before.expiredMs).toBe(timers.nowMs());
    expect(after.expiredMs).toBeUndefined();
    timers.advance(1);
    turns.shift()?.();
    expect(after.expiredMs).toBe(timers.nowMs());
  });

  test('never runs an entry early', () => {
    const timers = new FakeTimerSource();
    const queue = new DeadlineQueue(timers);
    const entry = new Entry(timers);
    queue.add(entry, 10.4);
    timers.advance(10);
    expect(entry.expiredMs).toBeUndefined();
    timers.advance(1);
    expect(entry.expiredMs).toBeDefined();
  });

  test('sets one timer for a thousand entries that are added and removed', () => {
    const timers = new FakeTimerSource();
    const queue = new DeadlineQueue(timers);
    for (let i = 0; i < 1000; i++) {
      const entry = new Entry(timers);
      queue.add(entry, 20);
      queue.remove(entry);
    }
    expect(timers.timersSet).toBe(1);
  });

  test('supports times beyond the longest timer', () => {
    const timers = new FakeTimerSource();
    const queue = new DeadlineQueue(timers);
    const entry = new Entry(timers);
    queue.add(entry, 3e9);
    timers.advance(2.9e9);
    expect(entry.expiredMs).toBeUndefined();
    timers.advance(0.2e9);
    expect(entry.expiredMs).toBeDefined();
  });

  test('removing an unknown entry has no effect', () => {
    const timers = new FakeTimerSource();
    const queue = new DeadlineQueue(timers);
    queue.remove(new Entry(timers));
    expect(queue.size).toBe(0);
  });
});
