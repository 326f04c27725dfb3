import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { StorageError, type TakeResult } from '../../../../src/limiter/bucket-store.js';
import { concurrencyRate } from '../../../../src/limiter/holds/concurrency.js';
import { LateEnds } from '../../../../src/service/holds/late-ends.js';
import type { HoldEnd } from '../../../../src/service/holds/settle.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';

const FAILED = new StorageError('timeout', 'no answer in time');
const ANSWERED: TakeResult = [];

function endOf(key: string): HoldEnd {
  const hold = {
    key,
    tagLength: 1,
    suffix: '',
    id: '0'.repeat(24),
    amount: 1,
    lifetimeMillis: 1000,
    fullMicros: 0,
    rule: '0000001',
    isLocal: false,
    freesUnknown: false,
  };
  const item = {
    key,
    tagLength: 1,
    rate: concurrencyRate(1),
    hits: 1,
    refund: true,
    enforcement: 'observe' as const,
    settles: hold,
  };
  return { item, hold, held: {} as HoldEnd['held'], used: 1 };
}

/** Returns a promise, and the function that receives the result of an end. */
function noted(): [Promise<TakeResult | undefined>, (result: TakeResult | undefined) => void] {
  let resolveIt: (result: TakeResult | undefined) => void = () => {};
  const result = new Promise<TakeResult | undefined>((resolve) => {
    resolveIt = resolve;
  });
  return [result, resolveIt];
}

test('repeats an end until the store answers', async () => {
  let failures = 3;
  const late = new LateEnds(new FakeClock(), () => (failures-- > 0 ? FAILED : ANSWERED));
  const [result, receive] = noted();
  late.add(endOf('a'), receive);
  expect(await result).toBe(ANSWERED);
  expect(failures).toBe(-1);
});

test('gives up an end when its hold has expired', async () => {
  const clock = new FakeClock();
  let calls = 0;
  const late = new LateEnds(clock, () => {
    calls++;
    clock.advance(600_000);
    return FAILED;
  });
  const [result, receive] = noted();
  late.add(endOf('a'), receive);
  expect(await result).toBeUndefined();
  expect(calls).toBe(2);
});

test('repeats an end of the oldest hold only if the store has certainly not received it', async () => {
  const unsent = new StorageError('disconnected', 'no connection', { unsent: true });
  const results = [unsent, unsent, FAILED, ANSWERED];
  const late = new LateEnds(new FakeClock(), () => results.shift() as TakeResult);
  const [result, receive] = noted();
  const held = { rule: { hold: { expiresAfterMillis: 1000 } } } as unknown as HoldEnd['held'];
  late.add({ ...endOf('a'), held, hold: undefined }, receive);
  expect(await result).toBeUndefined();
  expect(results).toEqual([ANSWERED]);
});

test('a store that hangs delays no other ends', async () => {
  const late = new LateEnds(new FakeClock(), ({ item }) =>
    item.key === 'hangs' ? new Promise(() => {}) : ANSWERED,
  );
  late.add(endOf('hangs'));
  const [result, receive] = noted();
  late.add(endOf('a'), receive);
  expect(await result).toBe(ANSWERED);
});

test('keeps a bounded number of ends', () => {
  const late = new LateEnds(new FakeClock(), () => new Promise(() => {}));
  const lost: unknown[] = [];
  for (let i = 0; i < 10_002; i++) late.add(endOf('a'), (result) => lost.push(result));
  expect(lost).toHaveLength(2);
});

test('many ends that fail are repeated after growing pauses', async () => {
  jest.useFakeTimers();
  try {
    let calls = 0;
    let answer: TakeResult = FAILED;
    const late = new LateEnds(new FakeClock(), () => {
      calls++;
      return answer;
    });
    let answered = 0;
    for (let i = 0; i < 1000; i++) late.add(endOf('a'), () => answered++);
    // After 100, 300, 700 and 1,500 ms.
    await jest.advanceTimersByTimeAsync(3000);
    expect(calls).toBe(1000 + 4 * 256);
    answer = ANSWERED;
    await jest.advanceTimersByTimeAsync(2000);
    expect(answered).toBe(1000);
  } finally {
    jest.useRealTimers();
  }
});

test('many ends that wait are sent soon after the store answers again', async () => {
  jest.useFakeTimers();
  try {
    let answer: TakeResult = FAILED;
    const late = new LateEnds(new FakeClock(), () => answer);
    let answered = 0;
    for (let i = 0; i < 5000; i++) late.add(endOf('a'), () => answered++);
    await jest.advanceTimersByTimeAsync(1000);
    answer = ANSWERED;
    // A pause of at most 800 ms, and 20 pauses of 100 ms.
    await jest.advanceTimersByTimeAsync(3000);
    expect(answered).toBe(5000);
  } finally {
    jest.useRealTimers();
  }
});

test('ends that fail are repeated while other ends succeed', async () => {
  jest.useFakeTimers();
  try {
    let calls = 0;
    const late = new LateEnds(new FakeClock(), ({ item }) => {
      if (item.key !== 'waits') return item.key === 'fails' ? FAILED : ANSWERED;
      return calls++ === 0 ? FAILED : ANSWERED;
    });
    late.add(endOf('waits'));
    for (let i = 0; i < 20; i++) {
      late.add(endOf('fails'));
      late.add(endOf('succeeds'));
      await jest.advanceTimersByTimeAsync(50);
    }
    expect(calls).toBe(2);
  } finally {
    jest.useRealTimers();
  }
});

test('deferred ends leave room for others, and are sent while many others fail', async () => {
  const late = new LateEnds(new FakeClock(), ({ item }) => (item.key === 'fails' ? FAILED : ANSWERED));
  const lost: unknown[] = [];
  const [result, receive] = noted();
  for (let i = 0; i < 1000; i++) late.add(endOf('fails'));
  late.defer(endOf('a'), receive);
  for (let i = 0; i < 5001; i++) late.defer(endOf('a'), (told) => lost.push(told));
  expect(lost).toHaveLength(2);
  const [other, receiveOther] = noted();
  late.add(endOf('a'), receiveOther);
  expect(await other).toBe(ANSWERED);
  expect(await result).toBe(ANSWERED);
});

describe('a drain', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test('waits until all ends are sent, also after a long pause', async () => {
    let answer: TakeResult = FAILED;
    const late = new LateEnds(new FakeClock(), () => answer);
    const results: unknown[] = [];
    for (let i = 0; i < 300; i++) late.add(endOf('a'), (result) => results.push(result));
    for (let i = 0; i < 300; i++) late.defer(endOf('b'), (result) => results.push(result));
    await jest.advanceTimersByTimeAsync(10_000);
    answer = ANSWERED;
    const drained = late.drain(60_000);
    await jest.advanceTimersByTimeAsync(500);
    expect(results).toEqual(Array.from({ length: 600 }, () => ANSWERED));
    expect(await drained).toBe(0);
  });

  test('gives up the ends that remain after its time, and counts them', async () => {
    const hangs = new Promise<TakeResult>(() => {});
    const late = new LateEnds(new FakeClock(), ({ item }) => (item.key === 'hangs' ? hangs : FAILED));
    const results: unknown[] = [];
    for (const key of ['fails', 'hangs']) late.add(endOf(key), (result) => results.push(result));
    const drained = late.drain(1000);
    await jest.advanceTimersByTimeAsync(1000);
    expect(await drained).toBe(2);
    expect(results).toEqual([undefined]);
  });
});
