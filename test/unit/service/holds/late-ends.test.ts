import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { StorageError, type TakeResult } from '../../../../src/limiter/bucket-store.js';
import { concurrencyRate } from '../../../../src/limiter/holds/concurrency.js';
import {
  type EndSource,
  LateEnds,
  MAX_OTHER_BYTES,
  MAX_OWN_BYTES,
} from '../../../../src/service/holds/late-ends.js';
import type { HoldEnd } from '../../../../src/service/holds/settle.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';

const FAILED = new StorageError('timeout', 'no answer in time');
const ANSWERED: TakeResult = [];

const OWN: EndSource = { connection: 1, isOwn: () => true };
const FORGED: EndSource = { connection: 1, isOwn: () => false };
const ignored = (): void => {};

let ids = 0;

function endOf(key: string, amount = 1): HoldEnd {
  const hold = {
    key,
    tagLength: 1,
    suffix: '',
    id: String(++ids).padStart(24, '0'),
    amount,
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
  const held = { rule: { hold: { expiresAfterMillis: 1000 } } } as unknown as HoldEnd['held'];
  return { item, hold, held, used: 1 };
}

/** Returns a promise of the last result of an end, and the function that receives the results. */
function noted(): [Promise<unknown>, (result: unknown) => void] {
  let resolveIt: (result: unknown) => void = () => {};
  const last = new Promise<unknown>((resolve) => {
    resolveIt = resolve;
  });
  return [last, (result) => result !== 'waiting' && resolveIt(result)];
}

test('repeats an end until the store answers', async () => {
  let failures = 3;
  const late = new LateEnds(new FakeClock(), () => (failures-- > 0 ? FAILED : ANSWERED));
  const [result, receive] = noted();
  void late.add(endOf('a'), OWN, receive);
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
  void late.add(endOf('a'), OWN, receive);
  expect(await result).toBe('lost');
  expect(calls).toBe(2);
});

test('repeats an end of the oldest hold only if the store has certainly not received it', async () => {
  const unsent = new StorageError('disconnected', 'no connection', { unsent: true });
  const results = [unsent, unsent, FAILED, ANSWERED];
  const late = new LateEnds(new FakeClock(), () => results.shift() as TakeResult);
  const [result, receive] = noted();
  void late.add({ ...endOf('a'), hold: undefined }, FORGED, receive);
  expect(await result).toBe('lost');
  expect(results).toEqual([ANSWERED]);
});

test('a store that hangs delays no other ends', async () => {
  const late = new LateEnds(new FakeClock(), ({ item }) =>
    item.key === 'hangs' ? new Promise(() => {}) : ANSWERED,
  );
  void late.add(endOf('hangs'), OWN, ignored);
  const [result, receive] = noted();
  void late.add(endOf('a'), OWN, receive);
  expect(await result).toBe(ANSWERED);
});

describe('while the store hangs', () => {
  /** Adds ends until one is lost. Returns the number of the others. */
  function fill(late: LateEnds, source: EndSource): number {
    const lost: unknown[] = [];
    for (let count = 0; ; count++) {
      void late.add(endOf('a'), source, (result) => lost.push(result));
      if (lost.length === 0) continue;
      expect(lost).toEqual(['lost']);
      return count;
    }
  }
  const hanging = (): LateEnds => new LateEnds(new FakeClock(), () => new Promise(() => {}));

  test('keeps ends up to a number of bytes, with room for other connections and for own tokens', () => {
    const late = hanging();
    const forged = fill(late, FORGED);
    expect(forged).toBeGreaterThan(2000);
    expect(forged * 1536).toBeLessThan(MAX_OTHER_BYTES);
    expect(fill(late, { ...FORGED, connection: 2 })).toBeGreaterThan(100);
    const own = fill(late, OWN);
    expect(own).toBeGreaterThan(4000);
    expect(own * 1536).toBeLessThan(MAX_OWN_BYTES);
    expect(fill(late, { ...OWN, connection: 2 })).toBeGreaterThan(1000);
    expect(fill(late, FORGED)).toBe(0);
  });

  test('a token that is sent again and again takes no memory from others', () => {
    const late = hanging();
    fill(late, FORGED);
    const end = endOf('a');
    const told: unknown[] = [];
    for (let i = 0; i < 20_000; i++) void late.add(end, OWN, (result) => told.push(result));
    expect(new Set(told)).toEqual(new Set(['repeated']));
    expect(told).toHaveLength(19_999);
    expect(fill(late, OWN)).toBeGreaterThan(4000);
  });

  test('starts without an answer and tokens take no memory from each other', () => {
    const late = hanging();
    const abandoned = { ...FORGED, isAbandoned: true };
    const first = fill(late, FORGED);
    expect(fill(late, abandoned)).toBe(first);
    expect(fill(late, OWN)).toBeGreaterThan(4000);
  });

  test('releases the memory of ends that were answered', async () => {
    const answers: ((answer: TakeResult) => void)[] = [];
    const late = new LateEnds(new FakeClock(), () => new Promise((resolve) => answers.push(resolve)));
    const first = fill(late, FORGED);
    for (const answer of answers.splice(0)) answer(ANSWERED);
    await new Promise((resolve) => setImmediate(resolve));
    expect(fill(late, FORGED)).toBe(first);
  });
});

test('ends with own tokens go before all others', async () => {
  jest.useFakeTimers();
  try {
    const sent: string[] = [];
    let answer: TakeResult = FAILED;
    const late = new LateEnds(new FakeClock(), ({ item }) => {
      if (answer === ANSWERED) sent.push(item.key);
      return answer;
    });
    for (let i = 0; i < 300; i++) void late.add(endOf('forged', 1000), FORGED, ignored);
    for (let i = 0; i < 10; i++) void late.add(endOf('own'), OWN, ignored);
    answer = ANSWERED;
    await jest.advanceTimersByTimeAsync(100);
    expect(sent).toEqual(Array.from({ length: 10 }, () => 'own'));
  } finally {
    jest.useRealTimers();
  }
});

test('an end with little work passes ends with much work', async () => {
  jest.useFakeTimers();
  try {
    const sent: string[] = [];
    const late = new LateEnds(new FakeClock(), ({ item }) => {
      sent.push(item.key);
      return ANSWERED;
    });
    for (let i = 0; i < 3; i++) late.defer(endOf('large', 1000), OWN, ignored);
    late.defer(endOf('medium', 200), OWN, ignored);
    late.defer(endOf('small'), OWN, ignored);
    await jest.advanceTimersByTimeAsync(10);
    expect(sent).toEqual(['large']);
    await jest.advanceTimersByTimeAsync(30);
    expect(sent.length).toBe(5);
  } finally {
    jest.useRealTimers();
  }
});

test.each([
  ['own', OWN, true],
  ['forged', FORGED, false],
])('an %s end that finds no hold after an attempt without an answer', async (_name, source, hasRun) => {
  const results: TakeResult[] = [FAILED, ANSWERED];
  const late = new LateEnds(new FakeClock(), () => results.shift() as TakeResult);
  const told = await new Promise((resolve) => {
    void late.add(endOf('a'), source, (result, ran) => result !== 'waiting' && resolve([result, ran]));
  });
  expect(told).toEqual([ANSWERED, hasRun]);
});

test('a repeated own token needs no memory, and a forged end does not replace another one', async () => {
  jest.useFakeTimers();
  try {
    let answer: TakeResult = FAILED;
    const late = new LateEnds(new FakeClock(), () => answer);
    const told: unknown[] = [];
    const end = endOf('a');
    void late.add(end, FORGED, (result) => told.push(result));
    for (let i = 0; i < 3; i++) void late.add(end, OWN, (result) => told.push(result));
    expect(told).toEqual(['waiting', 'waiting', 'repeated', 'repeated']);
    answer = ANSWERED;
    await jest.advanceTimersByTimeAsync(100);
    expect(told.slice(4)).toEqual([ANSWERED, ANSWERED]);
    answer = FAILED;
    void late.add(end, OWN, (result) => told.push(result));
    expect(told.at(-1)).toBe('waiting');
  } finally {
    jest.useRealTimers();
  }
});

test('nobody can invent a long lifetime', async () => {
  const clock = new FakeClock();
  let calls = 0;
  const late = new LateEnds(clock, () => {
    calls++;
    clock.advance(600_000);
    return FAILED;
  });
  const end = endOf('a');
  const [result, receive] = noted();
  const hold = { ...end.hold, lifetimeMillis: 0xffff_ffff } as HoldEnd['hold'];
  void late.add({ ...end, hold }, FORGED, receive);
  expect(await result).toBe('lost');
  expect(calls).toBe(2);
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
    for (let i = 0; i < 1000; i++)
      void late.add(endOf('a'), OWN, (result) => result !== 'waiting' && answered++);
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
    for (let i = 0; i < 5000; i++)
      void late.add(endOf('a'), OWN, (result) => result !== 'waiting' && answered++);
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
    void late.add(endOf('waits'), OWN, ignored);
    for (let i = 0; i < 20; i++) {
      void late.add(endOf('fails'), OWN, ignored);
      void late.add(endOf('succeeds'), OWN, ignored);
      await jest.advanceTimersByTimeAsync(50);
    }
    expect(calls).toBe(2);
  } finally {
    jest.useRealTimers();
  }
});

test('deferred ends are sent while many others fail', async () => {
  const late = new LateEnds(new FakeClock(), ({ item }) => (item.key === 'fails' ? FAILED : ANSWERED));
  const [result, receive] = noted();
  for (let i = 0; i < 1000; i++) void late.add(endOf('fails'), OWN, ignored);
  late.defer(endOf('a'), FORGED, receive);
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
    for (let i = 0; i < 300; i++)
      void late.add(endOf('a'), OWN, (result) => result !== 'waiting' && results.push(result));
    for (let i = 0; i < 300; i++)
      late.defer(endOf('b'), FORGED, (result) => result !== 'waiting' && results.push(result));
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
    for (const key of ['fails', 'hangs'])
      void late.add(endOf(key), OWN, (result) => result !== 'waiting' && results.push(result));
    const drained = late.drain(1000);
    await jest.advanceTimersByTimeAsync(1000);
    expect(await drained).toBe(2);
    expect(results).toEqual(['lost']);
  });
});
