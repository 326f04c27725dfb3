import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { DeadlineQueue, type Expiring } from '../../../../src/grpc/h2-transport/deadline-queue.js';
import { DeadlineTimer } from '../../../../src/storage/redis/redis-store.js';
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

/** Calls that wait for a store, which ends them slightly before their deadlines with its own timer. */
class WaitingCalls {
  readonly timers = new FakeTimerSource();
  readonly queue = new DeadlineQueue(this.timers);
  /** How each call ended: by the store, or by the queue. */
  readonly ends: ('store' | 'queue')[] = [];
  #turns: (() => void)[] = [];
  readonly #waiting = new Map<Expiring, number>();
  readonly #timer = new DeadlineTimer(() => this.#onTimer(), this.timers);

  constructor() {
    this.timers.nextTurn = (callback) => this.#turns.push(callback);
  }

  get #nowMicros(): number {
    return this.timers.nowMs() * 1000;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Adds a call that ends in `leftMs`. The store has most of this time. */
  add(leftMs: number): void {
    const storeMicros = this.#nowMicros + leftMs * 900;
    const call = { dueAt: 0, heapIndex: -1, expire: () => this.#end(call, 'queue') };
    this.#waiting.set(call, storeMicros);
    this.#timer.arm(storeMicros, this.#nowMicros);
    this.queue.add(call, leftMs);
  }

  /** One turn of the event loop that takes `ms`: what earlier turns have scheduled, then the timers. */
  turn(ms: number): void {
    const turns = this.#turns;
    this.#turns = [];
    for (const callback of turns) callback();
    this.timers.stall(ms);
  }

  #end(call: Expiring, end: 'store' | 'queue'): void {
    this.#waiting.delete(call);
    this.queue.remove(call);
    this.ends.push(end);
  }

  #onTimer(): void {
    const due = DeadlineTimer.dueMicros(this.#nowMicros);
    let soonest = Number.POSITIVE_INFINITY;
    for (const [call, storeMicros] of this.#waiting) {
      if (storeMicros <= due) this.#end(call, 'store');
      else soonest = Math.min(soonest, storeMicros);
    }
    if (soonest !== Number.POSITIVE_INFINITY) this.#timer.arm(soonest, this.#nowMicros);
  }
}

describe('DeadlineQueue', () => {
  test('lets the store end a call first, however little time is left, and however long the turns are', () => {
    const step = fc.record({
      leftMs: fc.double({ min: 0.05, max: 30, noNaN: true }),
      calls: fc.integer({ min: 0, max: 3 }),
      isAnswered: fc.boolean(),
      turnMs: fc.oneof(
        fc.constant(0),
        fc.double({ min: 0, max: 2, noNaN: true }),
        fc.integer({ max: 50, min: 2 }),
      ),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const calls = new WaitingCalls();
        for (const { leftMs, calls: count, isAnswered, turnMs } of steps) {
          const answered = new Entry(calls.timers);
          if (isAnswered) calls.queue.add(answered, leftMs / 2);
          for (let i = 0; i < count; i++) calls.add(leftMs * (1 + i));
          calls.queue.remove(answered);
          calls.turn(turnMs);
        }
        while (calls.waiting > 0) calls.turn(1);
        expect(calls.ends).not.toContain('queue');
      }),
      runs(300),
    );
  });

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
    turns.shift()?.();
    for (let before = 0; turns.length > 0; before = expired.length) {
      expect(expired.length - before).toBeLessThanOrEqual(100);
      expect(turns).toHaveLength(1);
      // An entry that is added meanwhile and is due first is handled, and needs no timer.
      if (before === 0) queue.add({ dueAt: 0, heapIndex: -1, expire: () => expired.push(-1) }, 1);
      expect(timers.waiting).toBe(0);
      turns.shift()?.();
    }
    expect(expired).toHaveLength(1000);
    timers.advance(2);
    turns.shift()?.();
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
    timers.advance(11);
    queue.add(after, 20);
    // The process reads data for longer than the time of the new entry.
    timers.advance(30);
    turns.shift()?.();
    turns.shift()?.();
    expect(before.expiredMs).toBe(timers.nowMs());
    expect(after.expiredMs).toBeUndefined();
    timers.advance(1);
    turns.shift()?.();
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
    timers.advance(2);
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
});
