import { describe, expect, test } from '@jest/globals';
import type { Descriptor } from '../../../src/codec/messages.js';
import { CALLER_WITHOUT_DEADLINE, type Caller } from '../../../src/service/caller.js';
import {
  LargeRequests,
  MAX_WAITING_BYTES,
  MAX_WAITING_REQUESTS,
  type NoTurn,
} from '../../../src/service/large-requests.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

/** Resolves after the next turn of the queue. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A queue whose requests take `refillMicros` each, with a log of what it called. */
class Queue {
  readonly clock = new FakeClock();
  readonly requests = new LargeRequests(this.clock);
  readonly log: string[] = [];

  run(name: string, refillMicros = 0, caller: Partial<Caller> = {}, bytes = 1): string | Promise<string> {
    return this.requests.run(
      { ...CALLER_WITHOUT_DEADLINE, ...caller },
      bytes,
      (noTurn: NoTurn | undefined) => {
        this.clock.advance(refillMicros);
        this.log.push(`${name} ${noTurn ?? 'decided'}`);
        return name;
      },
    );
  }

  /** Returns the log since the last call. */
  logged(): string[] {
    return this.log.splice(0);
  }
}

test('more than 32 descriptors, or more than 16 KiB, are large', () => {
  const decider = new Decider('domain: d\ndescriptors: []\n');
  const isLarge = (count: number, value: string): boolean => {
    const descriptors = new Array<Descriptor>(count).fill(descriptor([`k=${value}`]));
    return decider.service.decide({ domain: 'd', descriptors, hitsAddend: 0 }) instanceof Promise;
  };
  expect([isLarge(32, ''), isLarge(33, '')]).toEqual([false, true]);
  // A decoded descriptor with one entry counts 300 bytes.
  expect([isLarge(1, 'x'.repeat(16_083)), isLarge(1, 'x'.repeat(16_084))]).toEqual([false, true]);
});

describe('large requests', () => {
  test('are decided in the order of arrival, until 1 ms of a turn has passed', async () => {
    const queue = new Queue();
    const results = ['a', 'b', 'c', 'd', 'e'].map((name) => queue.run(name, 400));
    expect(queue.logged()).toEqual([]);
    expect(queue.requests.size).toBe(5);
    await turn();
    expect(queue.logged()).toEqual(['a decided', 'b decided', 'c decided']);
    await turn();
    expect(queue.logged()).toEqual(['d decided', 'e decided']);
    expect(await Promise.all(results)).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect([queue.requests.size, queue.requests.bytes]).toEqual([0, 0]);
  });

  test('are late after a quarter of the time of their callers, and then come first', async () => {
    const queue = new Queue();
    const now = queue.clock.monotonicMicros();
    for (const [name, leftMicros] of Object.entries({ slow: 1_000_000, fast: 40_000, faster: 20_000 })) {
      void queue.run(name, 0, { deadlineMicros: now + leftMicros });
    }
    queue.clock.advance(10_000);
    await turn();
    expect(queue.logged()).toEqual(['fast late', 'faster late', 'slow decided']);
  });

  test('that arrive after the deadlines of their callers do not wait', () => {
    const queue = new Queue();
    expect(queue.run('a', 0, { deadlineMicros: queue.clock.monotonicMicros() })).toBe('a');
    expect(queue.logged()).toEqual(['a late']);
  });

  test('wait at least 5 ms, or three fifths of a shorter time, and 1 s without a deadline', async () => {
    for (const [leftMicros, waitMicros] of [
      [10_000, 5000],
      [5000, 3000],
      [Number.POSITIVE_INFINITY, 1_000_000],
    ] as const) {
      const queue = new Queue();
      const deadlineMicros = queue.clock.monotonicMicros() + leftMicros;
      void queue.run('blocks', waitMicros - 1, { deadlineMicros });
      void queue.run('other', 0, { deadlineMicros });
      await turn();
      expect(queue.logged()).toEqual(['blocks decided']);
      queue.clock.advance(1);
      await turn();
      expect(queue.logged()).toEqual(['other late']);
    }
  });

  test('that are late are all answered in the next turn, and others wait if that takes 1 ms', async () => {
    const queue = new Queue();
    const deadlineMicros = queue.clock.monotonicMicros() + 20_000;
    for (let i = 0; i < 4; i++) void queue.run(`${i}`, 500, { deadlineMicros });
    void queue.run('in time');
    queue.clock.advance(6000);
    await turn();
    expect(queue.logged()).toEqual(['0 late', '1 late', '2 late', '3 late']);
    await turn();
    expect(queue.logged()).toEqual(['in time decided']);
  });

  test('find a full queue after 1,000 requests, or 64 MiB', async () => {
    const queue = new Queue();
    for (let i = 0; i < MAX_WAITING_REQUESTS; i++) void queue.run('waits');
    expect(queue.run('one more')).toBe('one more');
    expect(queue.logged()).toEqual(['one more full']);
    await turn();
    expect(queue.logged()).toHaveLength(MAX_WAITING_REQUESTS);
    void queue.run('large', 0, {}, MAX_WAITING_BYTES);
    expect(queue.run('small')).toBe('small');
    await turn();
    expect(queue.logged()).toEqual(['small full', 'large decided']);
  });

  test('reject with the error of the decision, and the others continue', async () => {
    const { requests } = new Queue();
    const broken = requests.run(CALLER_WITHOUT_DEADLINE, 1, () => {
      throw new Error('broken');
    });
    const other = requests.run(CALLER_WITHOUT_DEADLINE, 1, () => 'decided');
    await expect(broken).rejects.toThrow('broken');
    expect(await other).toBe('decided');
  });
});
