import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { StorageError, type TakeResult } from '../../../../src/limiter/bucket-store.js';
import type { Clock } from '../../../../src/limiter/clock.js';
import { concurrencyRate } from '../../../../src/limiter/holds/concurrency.js';
import {
  AUTHENTIC,
  NOT_AUTHENTIC as FORGED,
  HoldSettlement,
  oldestHold,
} from '../../../../src/service/holds/hold-settlement.js';
import {
  MAX_CALL_BYTES,
  MAX_OTHER_BYTES,
  MAX_OWN_BYTES,
  SettlementQueue,
  type SettlementResult,
} from '../../../../src/service/holds/settlement-queue.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';

const FAILED = new StorageError('timeout', 'no answer in time');
const ANSWERED: TakeResult = [];

type Receive = (result: SettlementResult) => void;
const ignored = (): void => {};

/** Sends ends, and passes their results to a function for each of them. */
class Ends {
  readonly late: SettlementQueue;
  readonly #receivers = new WeakMap<HoldSettlement, Receive>();

  constructor(
    clock: Clock,
    send: (settlement: HoldSettlement) => TakeResult | Promise<TakeResult>,
    serverOf?: (settlement: HoldSettlement) => unknown,
  ) {
    const report = (settlement: HoldSettlement, result: SettlementResult): void =>
      this.#receivers.get(settlement)?.(result);
    this.late = new SettlementQueue(clock, send, report, serverOf);
  }

  add(settlement: HoldSettlement, receive: Receive): void {
    this.#receivers.set(settlement, receive);
    void this.late.add(settlement);
  }

  defer(settlement: HoldSettlement, receive: Receive): void {
    this.#receivers.set(settlement, receive);
    this.late.defer(settlement);
  }
}

const held = {
  rule: { hold: { expiresAfterMillis: 1000 } },
  rate: concurrencyRate(1),
} as unknown as HoldSettlement['held'];
const COMMON = { domain: 'd', held, used: undefined, cause: 'request' as const };

let ids = 0;
const nextId = (): string => String(++ids).padStart(24, '0');

/** Returns the end of a hold in the bucket `key`. */
function endOf(
  key: string,
  source = AUTHENTIC,
  { connection = 1 as unknown, amount = 1, lifetimeMillis = 1000, id = nextId(), isUnanswered = false } = {},
): HoldSettlement {
  const hold = { key, hashTagLength: 1, id, amount, lifetimeMillis, fullAtMicros: 0 };
  const cause = isUnanswered ? 'unanswered' : 'request';
  return new HoldSettlement(
    { ...hold, isLocal: false, freesUnknown: false },
    { ...COMMON, source, connection, cause },
  );
}

/** Returns a promise of the last result of an end, and the function that receives the results. */
function noted(): [Promise<unknown>, Receive] {
  let resolveIt: Receive = () => {};
  const last = new Promise<unknown>((resolve) => {
    resolveIt = resolve;
  });
  return [last, (result) => result !== 'waiting' && resolveIt(result)];
}

/** Uses fake timers in the tests of a group. */
function useFakeTimers(): void {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });
}

test('repeats an end until the store answers', async () => {
  let failures = 3;
  const late = new Ends(new FakeClock(), () => (failures-- > 0 ? FAILED : ANSWERED));
  const [result, receive] = noted();
  late.add(endOf('a'), receive);
  expect(await result).toBe(ANSWERED);
  expect(failures).toBe(-1);
});

test.each([
  ['when its hold has expired', AUTHENTIC, {}],
  ['with an invented long lifetime', FORGED, { lifetimeMillis: 0xffff_ffff }],
] as const)('gives up an end %s', async (_what, source, options) => {
  const clock = new FakeClock();
  let calls = 0;
  const late = new Ends(clock, () => {
    calls++;
    clock.advance(600_000);
    return FAILED;
  });
  const [result, receive] = noted();
  late.add(endOf('a', source, options), receive);
  expect(await result).toBe('lost');
  expect(calls).toBe(2);
});

test('repeats an end of the oldest hold only if the store has certainly not received it', async () => {
  const unsent = new StorageError('disconnected', 'no connection', { unsent: true });
  const results = [unsent, unsent, FAILED, ANSWERED];
  const late = new Ends(new FakeClock(), () => results.shift() as TakeResult);
  const [result, receive] = noted();
  late.add(new HoldSettlement(oldestHold(endOf('a')), { ...COMMON, source: FORGED, connection: 1 }), receive);
  expect(await result).toBe('lost');
  expect(results).toEqual([ANSWERED]);
});

test('a store that hangs delays no other ends', async () => {
  const late = new Ends(new FakeClock(), ({ key }) => (key === 'hangs' ? new Promise(() => {}) : ANSWERED));
  late.add(endOf('hangs'), ignored);
  const [result, receive] = noted();
  late.add(endOf('a'), receive);
  expect(await result).toBe(ANSWERED);
});

describe('while the store hangs', () => {
  /** A usual length of the name of a bucket. */
  const NAME = 'x'.repeat(64);
  /** Adds ends until one is lost. Returns the number of the others. */
  function fill(late: Ends, source = AUTHENTIC, options: Parameters<typeof endOf>[2] = {}): number {
    const last: unknown[] = [];
    for (let count = 0; ; count++) {
      late.add(endOf(NAME, source, options), (result) => result !== 'waiting' && last.push(result));
      if (last.length === 0) continue;
      expect(last).toEqual(['lost']);
      return count;
    }
  }
  const hanging = (): Ends => new Ends(new FakeClock(), () => new Promise(() => {}));
  useFakeTimers();

  test('keeps ends up to a number of bytes, with room for other connections and for own tokens', () => {
    const late = hanging();
    const forged = fill(late, FORGED);
    expect(forged).toBeGreaterThan(12_000);
    expect(forged * 300).toBeLessThan(MAX_OTHER_BYTES);
    expect(fill(late, FORGED, { connection: 2 })).toBeGreaterThan(400);
    const own = fill(late);
    expect(own).toBeGreaterThan(25_000);
    expect(own * 300).toBeLessThan(MAX_OWN_BYTES);
    expect(fill(late, AUTHENTIC, { connection: 2 })).toBeGreaterThan(3500);
    expect(fill(late, FORGED)).toBe(0);
  });

  test('the tokens of 24,000 holds of one caller leave room for others on its connection', () => {
    const late = hanging();
    const told: unknown[] = [];
    for (let i = 0; i < 24_200; i++)
      late.add(endOf(NAME), (result) => result !== 'waiting' && told.push(result));
    expect(told).toEqual([]);
  });

  test('a token that is sent again and again takes no memory from others', () => {
    const late = hanging();
    fill(late, FORGED);
    const id = nextId();
    const told: unknown[] = [];
    const receive: Receive = (result) => result !== 'waiting' && told.push(result);
    for (let i = 0; i < 20_000; i++) late.add(endOf(NAME, AUTHENTIC, { id }), receive);
    expect(new Set(told)).toEqual(new Set(['repeated']));
    expect(told).toHaveLength(19_999);
    expect(fill(late)).toBeGreaterThan(25_000);
    late.add(endOf(NAME, AUTHENTIC, { id }), (result) => told.push(result));
    expect(told.slice(19_999)).toEqual(['repeated']);
  });

  test('sends ends of thousands of holds soon after the store answers again', async () => {
    let answer: TakeResult = FAILED;
    const late = new Ends(new FakeClock(), () => answer);
    const told: unknown[] = [];
    for (let i = 0; i < 24_000; i++)
      late.add(endOf('a'), (result) => result === ANSWERED && told.push(result));
    await jest.advanceTimersByTimeAsync(20_000);
    answer = ANSWERED;
    await jest.advanceTimersByTimeAsync(5000 + 1500);
    expect(told).toHaveLength(24_000);
  });

  test('starts without an answer and tokens take no memory from each other', () => {
    const late = hanging();
    const first = fill(late, FORGED);
    expect(fill(late, FORGED, { isUnanswered: true })).toBe(first);
    expect(fill(late)).toBeGreaterThan(25_000);
  });

  test('a character that is not ASCII counts twice in a name', () => {
    const counts = ['x', '\u4e00'].map((end) => {
      const late = hanging();
      const lost: unknown[] = [];
      let count = 0;
      for (; lost.length === 0; count++) {
        const receive: Receive = (result) => result !== 'waiting' && lost.push(result);
        late.add(endOf('x'.repeat(999) + end, FORGED), receive);
      }
      return count;
    });
    expect(counts[0]).toBeGreaterThan(1.5 * (counts[1] as number));
  });

  test('releases the memory of ends that were answered', async () => {
    const answers: ((answer: TakeResult) => void)[] = [];
    const late = new Ends(new FakeClock(), () => new Promise((resolve) => answers.push(resolve)));
    const first = fill(late, FORGED);
    while (answers.length > 0) {
      for (const answer of answers.splice(0)) answer(ANSWERED);
      await jest.advanceTimersByTimeAsync(100);
    }
    expect(fill(late, FORGED)).toBe(first);
  });

  test.each([
    [64, NAME],
    [1000, 'x'.repeat(1000)],
    [600, '\u4e00'.repeat(300)],
  ])(
    'further ends wait while the calls in flight use their memory, with names of %i bytes',
    async (bytes, name) => {
      const answers: ((answer: TakeResult) => void)[] = [];
      const late = new Ends(new FakeClock(), () => new Promise((resolve) => answers.push(resolve)));
      const told: unknown[] = [];
      const count = 5000;
      for (let i = 0; i < count; i++) late.add(endOf(name), (result) => told.push(result));
      await jest.advanceTimersByTimeAsync(1000);
      // At the beginning, weir does not check whose the tokens are.
      const most = (1.5 * MAX_CALL_BYTES) / (3500 + 3 * bytes);
      expect(answers.length).toBeGreaterThan(most / 2);
      expect(answers.length).toBeLessThan(most);
      expect(told).toEqual(Array.from({ length: count - answers.length }, () => 'waiting'));
      while (answers.length > 0) {
        for (const answer of answers.splice(0)) answer(ANSWERED);
        await jest.advanceTimersByTimeAsync(1000);
      }
      expect(told.filter((result) => result === ANSWERED)).toHaveLength(count);
    },
  );

  test('many calls to a server that hangs do not keep ends from being sent to other servers', () => {
    const sent = new Map<unknown, number>();
    const serverOf = ({ key }: HoldSettlement): string => key.slice(0, 1);
    const late = new Ends(
      new FakeClock(),
      (settlement) => {
        const server = serverOf(settlement);
        sent.set(server, (sent.get(server) ?? 0) + 1);
        return new Promise(() => {});
      },
      serverOf,
    );
    for (const server of ['a', 'b', 'c'])
      for (let i = 0; i < 5000; i++) late.add(endOf(server + NAME), ignored);
    expect(sent.get('a')).toBeLessThan(4000);
    expect(sent.get('b')).toBeGreaterThan(100);
    expect(sent.get('c')).toBeGreaterThan(50);
  });

  test('many calls for ends of others do not keep own ends from being sent', () => {
    const sent: string[] = [];
    const late = new Ends(new FakeClock(), ({ key }) => {
      sent.push(key);
      return new Promise(() => {});
    });
    for (let i = 0; i < 5000; i++) late.add(endOf(NAME, FORGED), ignored);
    for (let i = 0; i < 5000; i++) late.add(endOf(NAME, FORGED, { isUnanswered: true }), ignored);
    expect(sent.length).toBeLessThan(5000);
    late.add(endOf('own'), ignored);
    expect(sent.at(-1)).toBe('own');
  });
});

describe('ends that wait', () => {
  useFakeTimers();

  test('ends with own tokens go before all others', async () => {
    const sent: string[] = [];
    let answer: TakeResult = FAILED;
    const late = new Ends(new FakeClock(), ({ key }) => {
      if (answer === ANSWERED) sent.push(key);
      return answer;
    });
    for (let i = 0; i < 300; i++) late.add(endOf('forged', FORGED, { amount: 1000 }), ignored);
    for (let i = 0; i < 10; i++) late.add(endOf('own'), ignored);
    answer = ANSWERED;
    await jest.advanceTimersByTimeAsync(100);
    expect(sent).toEqual(Array.from({ length: 10 }, () => 'own'));
  });

  test('an end with little work passes ends with much work', async () => {
    const sent: string[] = [];
    const late = new Ends(new FakeClock(), ({ key }) => {
      sent.push(key);
      return ANSWERED;
    });
    for (let i = 0; i < 3; i++) late.defer(endOf('large', AUTHENTIC, { amount: 1000 }), ignored);
    late.defer(endOf('medium', AUTHENTIC, { amount: 200 }), ignored);
    late.defer(endOf('small'), ignored);
    await jest.advanceTimersByTimeAsync(10);
    expect(sent).toEqual(['large']);
    await jest.advanceTimersByTimeAsync(30);
    expect(sent.length).toBe(5);
  });

  test('a repeated own token needs no memory, and a forged end does not replace another one', async () => {
    let answer: TakeResult = FAILED;
    const late = new Ends(new FakeClock(), () => answer);
    const told: unknown[] = [];
    const id = nextId();
    late.add(endOf('a', FORGED, { id }), (result) => told.push(result));
    for (let i = 0; i < 3; i++) late.add(endOf('a', AUTHENTIC, { id }), (result) => told.push(result));
    expect(told).toEqual(['waiting', 'waiting', 'repeated', 'repeated']);
    answer = ANSWERED;
    await jest.advanceTimersByTimeAsync(100);
    expect(told.slice(4)).toEqual([ANSWERED, ANSWERED]);
    answer = FAILED;
    late.add(endOf('a', AUTHENTIC, { id }), (result) => told.push(result));
    expect(told.at(-1)).toBe('waiting');
  });

  test('many ends that fail are repeated after growing pauses', async () => {
    let calls = 0;
    let answer: TakeResult = FAILED;
    const late = new Ends(new FakeClock(), () => {
      calls++;
      return answer;
    });
    let answered = 0;
    for (let i = 0; i < 1000; i++) late.add(endOf('a'), (result) => result !== 'waiting' && answered++);
    // After 100, 300, 700 and 1,500 ms.
    await jest.advanceTimersByTimeAsync(3000);
    expect(calls).toBe(1000 + 4 * 256);
    answer = ANSWERED;
    await jest.advanceTimersByTimeAsync(2000);
    expect(answered).toBe(1000);
  });

  test('many ends that wait are sent soon after the store answers again', async () => {
    let answer: TakeResult = FAILED;
    const late = new Ends(new FakeClock(), () => answer);
    let answered = 0;
    for (let i = 0; i < 5000; i++) late.add(endOf('a'), (result) => result !== 'waiting' && answered++);
    await jest.advanceTimersByTimeAsync(1000);
    answer = ANSWERED;
    // A pause of at most 800 ms, and 20 pauses of 100 ms.
    await jest.advanceTimersByTimeAsync(3000);
    expect(answered).toBe(5000);
  });

  test('ends that fail are repeated while other ends succeed', async () => {
    let calls = 0;
    const late = new Ends(new FakeClock(), ({ key }) => {
      if (key !== 'waits') return key === 'fails' ? FAILED : ANSWERED;
      return calls++ === 0 ? FAILED : ANSWERED;
    });
    late.add(endOf('waits'), ignored);
    for (let i = 0; i < 20; i++) {
      late.add(endOf('fails'), ignored);
      late.add(endOf('succeeds'), ignored);
      await jest.advanceTimersByTimeAsync(50);
    }
    expect(calls).toBe(2);
  });
});

test('deferred ends are sent while many others fail', async () => {
  const late = new Ends(new FakeClock(), ({ key }) => (key === 'fails' ? FAILED : ANSWERED));
  const [result, receive] = noted();
  for (let i = 0; i < 1000; i++) late.add(endOf('fails'), ignored);
  late.defer(endOf('a', FORGED), receive);
  expect(await result).toBe(ANSWERED);
});

describe('a drain', () => {
  useFakeTimers();

  test('waits until all ends are sent, also after a long pause', async () => {
    let answer: TakeResult = FAILED;
    const late = new Ends(new FakeClock(), () => answer);
    const results: unknown[] = [];
    for (let i = 0; i < 300; i++)
      late.add(endOf('a'), (result) => result !== 'waiting' && results.push(result));
    for (let i = 0; i < 300; i++)
      late.defer(endOf('b', FORGED), (result) => result !== 'waiting' && results.push(result));
    await jest.advanceTimersByTimeAsync(10_000);
    answer = ANSWERED;
    const drained = late.late.drain(60_000);
    await jest.advanceTimersByTimeAsync(500);
    expect(results).toEqual(Array.from({ length: 600 }, () => ANSWERED));
    expect(await drained).toBe(0);
  });

  test('gives up the ends that remain after its time, and counts them', async () => {
    const hangs = new Promise<TakeResult>(() => {});
    const late = new Ends(new FakeClock(), ({ key }) => (key === 'hangs' ? hangs : FAILED));
    const results: unknown[] = [];
    for (const key of ['fails', 'hangs'])
      late.add(endOf(key), (result) => result !== 'waiting' && results.push(result));
    const drained = late.late.drain(1000);
    await jest.advanceTimersByTimeAsync(1000);
    expect(await drained).toBe(2);
    expect(results).toEqual(['lost']);
  });
});
