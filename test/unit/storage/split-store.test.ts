import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeResult,
} from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { SplitStore } from '../../../src/storage/split-store.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../../support/limiter/take-items.js';
import { undoing } from '../../support/limiter/undoing-store.js';

const PER_SECOND = windowRate('second', 2);
const PER_MINUTE = windowRate('minute', 5);

/** A store that keeps what it was asked, and fails when told to. */
class Recording implements BucketStore {
  readonly asked: (readonly TakeItem[])[] = [];
  readonly deadlines: number[] = [];
  failure: StorageError | undefined;
  closed = false;
  before: () => void = () => {};
  readonly inner: MemoryStore;

  constructor(clock: FakeClock, countDeniedHits: boolean) {
    this.inner = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
  }

  take(items: readonly TakeItem[], deadlineMicros: number): TakeResult | Promise<TakeResult> {
    this.asked.push(items);
    this.deadlines.push(deadlineMicros);
    this.before();
    return this.failure ?? Promise.resolve(this.inner.take(items));
  }

  async close(): Promise<void> {
    this.closed = true;
  }
}

let clock: FakeClock;
let perSecond: Recording;
let main: Recording;
let split: SplitStore;

function open(countDeniedHits = true): void {
  clock = new FakeClock();
  perSecond = new Recording(clock, countDeniedHits);
  main = new Recording(clock, countDeniedHits);
  split = new SplitStore({
    perSecond,
    main: undoing(main),
    countDeniedHits,
    timeoutMicros: 1000,
    monotonicMicros: () => clock.monotonicMicros(),
  });
}
beforeEach(() => open());

const take = (...items: TakeItem[]) => split.take(items, Infinity);
const second = takeItem('s', PER_SECOND);
const minute = takeItem('m', PER_MINUTE);
const tokens = takeItem('b', HUNDRED);
const looks = (key: string) => main.inner.take([takeItem(key, HUNDRED, { hits: 0 })])[0]!.remaining;

describe('a request whose items belong to one store', () => {
  test('goes there as it is', async () => {
    const seconds = [second, takeItem('t', PER_SECOND)];
    const others = [minute, tokens];
    await split.take(seconds, 77);
    await split.take(others, 78);
    expect([perSecond.asked, perSecond.deadlines]).toEqual([[seconds], [77]]);
    expect([main.asked, main.deadlines]).toEqual([[others], [78]]);
    expect(main.asked[0]).toBe(others);
  });
});

describe('a request to both', () => {
  test('that fits takes from both, in the order asked', async () => {
    expect(await take(minute, second, tokens)).toMatchObject([
      { limited: false, used: 1 },
      { limited: false, used: 1 },
      { limited: false, remaining: 99 },
    ]);
  });

  test('takes no token when the window of a second is used up, and counts in windows', async () => {
    await take(takeItem('s', PER_SECOND, { hits: 2 }));
    expect(await take(tokens, second, minute)).toMatchObject([
      { limited: false, remaining: 100 },
      { limited: true, used: 3 },
      { limited: false, used: 1 },
    ]);
    expect(looks('b')).toBe(100);
  });

  test('leaves no trace of how it is denied', async () => {
    await take(takeItem('s', PER_SECOND, { hits: 2 }));
    await take(tokens, second);
    expect(main.inner.size).toBe(0);
  });

  test('has one deadline, the sooner of its own and the timeout', async () => {
    const now = clock.monotonicMicros();
    await take(second, minute);
    await split.take([second, minute], now + 7);
    expect(perSecond.deadlines).toEqual([now + 1000, now + 7]);
    expect(main.deadlines).toEqual([now + 1000, now + 7]);
  });

  test('a refund of a second is made only when the request passes', async () => {
    await take(takeItem('s', PER_SECOND, { hits: 2 }));
    await take(takeItem('b', HUNDRED, { hits: 100 }));
    const refund = takeItem('s', PER_SECOND, { refund: true });
    expect(await take(refund, tokens)).toMatchObject([{ used: 2 }, { limited: true }]);
    expect(await take(refund, minute)).toMatchObject([{ used: 1 }, { limited: false }]);
  });
});

describe('denied hits that do not count', () => {
  beforeEach(() => open(false));

  test('count neither here nor there, whoever denies', async () => {
    await take(takeItem('b', HUNDRED, { hits: 100 }));
    expect(await take(second, tokens, minute)).toMatchObject([
      { limited: false, used: 0 },
      { limited: true },
      { limited: false, used: 0 },
    ]);
    await take(takeItem('s', PER_SECOND, { hits: 2 }));
    expect(await take(second, minute)).toMatchObject([{ limited: true, used: 2 }, { used: 0 }]);
    expect(await take(takeItem('m', PER_MINUTE, { hits: 5 }))).toMatchObject([{ limited: false }]);
  });

  test('a window that others use up between look and count denies', async () => {
    main.before = () => perSecond.inner.take([takeItem('s', PER_SECOND, { hits: 2 })]);
    expect(await take(second, tokens)).toMatchObject([{ limited: true }, { limited: false, remaining: 100 }]);
  });
});

describe.each([true, false])('a candidate (windows count denied hits: %s)', (countDeniedHits) => {
  beforeEach(() => open(countDeniedHits));
  const candidate = (hits = 1, refund = false) =>
    takeItem('c', windowRate('second', 9), { hits, refund, enforcement: 'candidate' });
  const counts = () => perSecond.inner.take([candidate(0)])[0]?.used;

  test('in a window of a second counts once, whatever comes of the request', async () => {
    expect(await take(second, candidate(), tokens)).toMatchObject([
      { used: 1 },
      { used: 1 },
      { remaining: 99 },
    ]);
    // The window of a second denies.
    await take(takeItem('s', PER_SECOND));
    expect(await take(second, candidate(), tokens)).toMatchObject([{ limited: true }, { used: 2 }, {}]);
    // The main store does.
    await take(takeItem('b', HUNDRED, { hits: 99 }));
    clock.advance(1);
    expect(await take(candidate(), tokens)).toMatchObject([{ limited: false, used: 3 }, { limited: true }]);
    expect(counts()).toBe(3);
  });

  test('is given back to once, denied request or not', async () => {
    await take(candidate(5));
    await take(takeItem('b', HUNDRED, { hits: 100 }));
    expect(await take(candidate(1, true), tokens)).toMatchObject([{ used: 4 }, { limited: true }]);
    expect(await take(candidate(1, true), minute)).toMatchObject([{ used: 3 }, { limited: false }]);
    expect(counts()).toBe(3);
  });

  test('in the main store takes although a window of a second denies', async () => {
    await take(takeItem('s', PER_SECOND, { hits: 2 }));
    const bucket = takeItem('d', HUNDRED, { enforcement: 'candidate' });
    expect(await take(second, bucket, tokens)).toMatchObject([
      { limited: true },
      { remaining: 99 },
      { remaining: 100 },
    ]);
    expect([looks('d'), looks('b')]).toEqual([99, 100]);
  });
});

test('windows of several seconds, or with debt, lie in the main store', async () => {
  const several = takeItem('x', windowRate('second', 3, { multiplier: 5 }));
  const owing = takeItem('y', windowRate('second', 3, { maxDebt: 3 }));
  await take(second, several, owing);
  expect(main.asked).toEqual([[several, owing]]);
});

test('a list of limits over both takes all or nothing', async () => {
  open(false);
  const list = [takeItem('l~1:s', PER_SECOND), takeItem('l~1:m', PER_MINUTE)];
  const limited = async () =>
    ((await take(...list)) as readonly { limited: boolean }[]).map((one) => one.limited);
  expect([await limited(), await limited(), await limited()]).toEqual([
    [false, false],
    [false, false],
    [true, false],
  ]);
  clock.advance(1_000_000);
  await limited();
  expect(await take(takeItem('l~1:m', PER_MINUTE, { hits: 0 }))).toMatchObject([{ used: 3 }]);
});

describe('an error', () => {
  const away = new StorageError('disconnected', 'away');

  test('of the first store is the request’s, and nothing is taken from the other', async () => {
    perSecond.failure = away;
    expect(await take(second, tokens)).toBe(away);
    expect(await take({ ...tokens, hits: 0 })).toMatchObject([{ limited: false, used: 0 }]);
  });

  test('of either store is no way round a limit of the other', async () => {
    await take({ ...tokens, hits: 100 });
    perSecond.failure = away;
    expect(await take(second, tokens)).toMatchObject([{ limited: false }, { limited: true, remaining: 0 }]);
    expect(await take(second, { ...tokens, enforcement: 'observe' })).toBe(away);
    perSecond.failure = undefined;
    for (let i = 0; i < 10; i++) await take(second);
    main.failure = away;
    expect(await take(second, tokens)).toMatchObject([{ limited: true }, { limited: false, remaining: 0 }]);
  });

  test('of the second is the request’s', async () => {
    main.failure = away;
    expect(await take(second, tokens)).toBe(away);
    expect(await take(second)).toMatchObject([{ limited: false, used: 2 }]);
  });

  test('of the last step is the request’s', async () => {
    open(false);
    main.before = () => {
      perSecond.failure = away;
    };
    expect(await take(second, tokens)).toBe(away);
  });
});

test('closing closes both', async () => {
  await split.close();
  expect([perSecond.closed, main.closed]).toEqual([true, true]);
});
