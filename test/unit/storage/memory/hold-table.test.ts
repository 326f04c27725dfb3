import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { HoldValues, NewHold } from '../../../../src/limiter/holds/hold.js';
import { turn } from '../../../../src/runtime/turns.js';
import { ExpiryHeap } from '../../../../src/storage/memory/expiry-heap.js';
import { HoldId, HoldRecords } from '../../../../src/storage/memory/hold-records.js';
import { HoldTable } from '../../../../src/storage/memory/hold-table.js';
import { newHoldId } from '../../../support/limiter/hold-items.js';
import { seededRandom } from '../../../support/limiter/seeded-random.js';
import { HUNDRED } from '../../../support/limiter/take-items.js';

/** Bytes of one hold, and of the set with a key of one character. */
const HOLD = 72;
const SET = 290;
const MINUTE = 60_000;

let nowMicros: number;
beforeEach(() => {
  nowMicros = 1_000_000;
});

function newTable(maxBytes = 1_000_000): HoldTable {
  return new HoldTable(maxBytes, () => nowMicros);
}

function order(lifetimeMillis = MINUTE, id = newHoldId()): NewHold {
  return { id, lifetimeMillis };
}

function settlement(hold: NewHold, amount = 1, fullAtMicros = 0): HoldValues {
  return { ...hold, amount, fullAtMicros };
}

/** Adds a hold of one hit, taken now. */
function add(table: HoldTable, key: string, hold = order()): NewHold {
  table.add(key, hold, { amount: 1, fullAtMicros: 0 }, nowMicros);
  return hold;
}

describe('a hold', () => {
  test('keeps the largest hits and lifetime', () => {
    const table = newTable();
    const hold = order(0xffff_ffff);
    table.add('a', hold, { amount: 0xffff_ffff, fullAtMicros: 2 ** 52 }, nowMicros);
    expect(table.takenMicrosOf('a', settlement(hold, 0xffff_ffff, 2 ** 52))).toBe(1_000_000);
    expect(table.takenMicrosOf('a', settlement(hold, 0xffff_fffe, 2 ** 52))).toBe(-1);
  });

  test('differs from others whose ids begin with the same digits', () => {
    const table = newTable();
    const ids = ['0', '1', 'e', 'f'].map((digit) => `${'a'.repeat(23)}${digit}`);
    const holds = ids.map((id) => add(table, 'a', order(MINUTE, id)));
    holds.push(add(table, 'a', order(MINUTE, `${'a'.repeat(8)}${'b'.repeat(16)}`)));
    for (const [i, hold] of holds.entries()) {
      expect(table.countOf('a')).toBe(holds.length - i);
      expect(table.takenMicrosOf('a', settlement(hold))).toBe(nowMicros);
      table.settle(settlement(hold));
      expect(table.takenMicrosOf('a', settlement(hold))).toBe(-1);
    }
  });

  test('expires at its own time, and not before', () => {
    const table = newTable();
    const short = add(table, 'a', order(10));
    const long = add(table, 'a', order(20));
    nowMicros += 9_999;
    table.expire(nowMicros);
    expect(table.takenMicrosOf('a', settlement(short))).toBe(1_000_000);
    nowMicros += 1;
    // The hold has expired even if it is still stored.
    expect(table.takenMicrosOf('a', settlement(short))).toBe(-1);
    table.expire(nowMicros);
    expect(table.countOf('a')).toBe(1);
    expect(table.takenMicrosOf('a', settlement(long))).toBe(1_000_000);
  });

  test('has a different hash for each of its slots', () => {
    const id = newHoldId();
    const hashes = Array.from({ length: 1000 }, (_, slot) => new HoldId().load(id, slot).hash);
    expect(new Set(hashes).size).toBe(1000);
  });

  test('of several slots counts each of them, and is settled as one', () => {
    const table = newTable();
    const hold = order();
    table.add('a', hold, { amount: 3, fullAtMicros: 0 }, nowMicros, 3);
    add(table, 'a');
    expect(table.countOf('a')).toBe(4);
    expect(table.takenMicrosOf('a', settlement(hold, 3))).toBe(nowMicros);
    // More slots than there are end the search.
    table.settle(settlement(hold, 3), 1_000_000_000);
    expect(table.countOf('a')).toBe(1);
    expect(table.takenMicrosOf('a', settlement(hold, 3))).toBe(-1);
  });
});

describe('the oldest hold', () => {
  const oldest = (table: HoldTable) => table.oldestOf('a')?.amount;

  test('is right whichever holds end in between', () => {
    const table = newTable();
    const random = seededRandom(5);
    const any = (count: number) => Math.floor(random() * count);
    let live: { hold: NewHold; amount: number; endMicros: number }[] = [];
    for (let i = 1; i <= 5000; i++) {
      nowMicros += any(900);
      if (i % 50 === 0) table.expire(nowMicros);
      live = live.filter(({ endMicros }) => endMicros > nowMicros);
      live.sort((one, other) => one.endMicros - other.endMicros);
      expect(oldest(table)).toBe(live[0]?.amount);
      if (any(3) > 0) {
        const hold = order([20, 30, 40][any(3)]);
        table.add('a', hold, { amount: i, fullAtMicros: 0 }, nowMicros);
        live.push({ hold, amount: i, endMicros: nowMicros + hold.lifetimeMillis * 1000 });
      } else if (any(2) === 0) {
        table.settleOldest('a');
        live.shift();
      } else {
        for (const { hold, amount } of live.splice(any(live.length), 1)) {
          table.settle(settlement(hold, amount));
        }
      }
    }
  });

  test('is found quickly behind holds that have expired', () => {
    const table = newTable(1_000_000_000);
    for (let i = 0; i < 100_000; i++) add(table, 'a', order(10));
    const late = add(table, 'a', order(20));
    nowMicros += 15_000;
    expect(table.oldestOf('a')?.takenMicros).toBe(1_000_000);
    // Only the first search passes the expired holds.
    const compared = jest.spyOn(ExpiryHeap.prototype, 'keyOf');
    for (let i = 0; i < 100; i++) expect(table.oldestOf('a')?.takenMicros).toBe(1_000_000);
    expect(compared.mock.calls.length).toBeLessThan(500);
    compared.mockRestore();
    table.settle(settlement(late));
    expect(table.oldestOf('a')).toBe(undefined);
    expect(table.countOf('a')).toBe(100_000);
  });
});

describe('the bytes', () => {
  test('are 72 for a hold, and those of its set', () => {
    const table = newTable();
    expect(table.bytes).toBe(0);
    const holds = ['a', 'a', 'b'].map((key) => add(table, key));
    expect(table.bytes).toBe(3 * HOLD + 2 * SET);
    for (const hold of holds) table.settle(settlement(hold));
    expect(table.bytes).toBe(0);
    add(table, 'c');
    expect([table.countOf('a'), table.countOf('c'), table.bytes]).toEqual([0, 1, HOLD + SET]);
  });

  test('do not grow with the number of sets that have ended, because new sets reuse their numbers', () => {
    const created = jest.spyOn(HoldRecords.prototype, 'create');
    const table = newTable();
    const [a, b] = ['a', 'b'].map((key) => add(table, key));
    table.settle(settlement(a as NewHold));
    add(table, 'c');
    table.settle(settlement(b as NewHold));
    for (const key of ['d', 'e', 'c']) add(table, key);
    expect(created.mock.calls.map(([, set]) => set)).toEqual([0, 1, 0, 1, 2, 0]);
    expect(['a', 'b', 'c', 'd', 'e'].map((key) => table.countOf(key))).toEqual([0, 0, 2, 1, 1]);
    created.mockRestore();
  });

  test('allow no more than the maximum, and one bucket no more than the rest once half is used', () => {
    const max = 2 * SET + 100 * HOLD;
    const table = newTable(max);
    let first = 0;
    while (table.hasRoomFor('a', 1)) {
      add(table, 'a');
      first++;
    }
    // A bucket may use half, and a little more.
    expect(2 * table.bytes).toBeGreaterThanOrEqual(max);
    expect(first).toBeLessThan(60);
    let second = 0;
    while (table.hasRoomFor('b', 1)) {
      add(table, 'b');
      second++;
    }
    expect(second).toBeGreaterThan(15);
    expect(table.bytes).toBeLessThanOrEqual(max);
    expect(table.hasRoomFor('c', 1)).toBe(true);
    const room = Math.floor((max - table.bytes - SET) / HOLD);
    expect([table.hasRoomFor('c', room), table.hasRoomFor('c', room + 1)]).toEqual([true, false]);
  });
});

describe('holds that expire together', () => {
  const COUNT = 100_000;

  test('are removed in slices of 1,000, one in each turn, however often the table is used', async () => {
    const table = newTable(1_000_000_000);
    const holds = Array.from({ length: COUNT }, () => add(table, 'a'));
    const late = add(table, 'a', order(2 * MINUTE));
    nowMicros += MINUTE * 1000;
    let size = table.size;
    let turns = 0;
    for (; table.size > 1; turns++) {
      for (let calls = 0; calls < 5; calls++) table.expire(nowMicros);
      expect(size - table.size).toBeLessThanOrEqual(1000);
      size = table.size;
      await turn();
      // The slice of the turn itself.
      expect(size - table.size).toBeLessThanOrEqual(1000);
      size = table.size;
    }
    expect(turns).toBeLessThanOrEqual(COUNT / 1000);
    expect(table.countOf('a')).toBe(1);
    expect(table.takenMicrosOf('a', settlement(holds[0] as NewHold))).toBe(-1);
    expect(table.takenMicrosOf('a', settlement(late))).toBe(1_000_000);
  });

  test('are removed without further calls, and the timer ends with the last one', async () => {
    const scheduled = jest.spyOn(globalThis, 'setImmediate');
    const table = newTable();
    for (let i = 0; i < 2500; i++) add(table, 'a');
    nowMicros += MINUTE * 1000;
    table.expire(nowMicros);
    expect(table.size).toBe(1500);
    expect(scheduled).toHaveBeenCalledTimes(1);
    await turn();
    await turn();
    expect(table.size).toBe(0);
    // turn() itself uses setImmediate, too.
    expect(scheduled).toHaveBeenCalledTimes(4);
    scheduled.mockRestore();
  });
});

describe('the list of holds', () => {
  const bucket = { key: 'a', hashTagLength: 1, rate: HUNDRED };

  test('begins with those that expire first, also with several lifetimes', () => {
    const table = newTable();
    const minutes = [3, 1, 2, 1, 3, 2].map((count) => {
      nowMicros += 1;
      return add(table, 'a', order(count * MINUTE));
    });
    add(table, 'b');
    const byEnd = [1, 3, 2, 5, 0, 4].map((i) => minutes[i]);
    for (const most of [1, 3, 6, 10]) {
      const { holds, more } = table.list(bucket, most);
      expect(holds.map(({ id, lifetimeMillis }) => ({ id, lifetimeMillis }))).toEqual(byEnd.slice(0, most));
      expect(more).toBe(Math.max(0, 6 - most));
    }
    nowMicros += MINUTE * 1000;
    expect(table.list(bucket, 1)).toMatchObject({ holds: [{ id: minutes[2]?.id }], more: 3 });
  });

  test('contains at most the given number of holds, and counts the others', () => {
    const table = newTable(100_000_000);
    for (let i = 0; i < 100_000; i++) add(table, 'a');
    const { holds, more } = table.list(bucket, 1000);
    expect([holds.length, more]).toEqual([1000, 99_000]);
  });
});
