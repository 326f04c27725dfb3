import { expect, test } from '@jest/globals';
import { allocatedWords, RecordArena } from '../../../../src/storage/memory/record-arena.js';

test('records of other sizes use the space of freed records', () => {
  const arena = new RecordArena();
  for (const words of [8, 13, 64, 100, 1000]) {
    const slots = Array.from({ length: 5000 }, () => arena.allocate(words));
    // Always frees the first record. The last one moves to its place, so only the last chunk becomes empty.
    for (const _ of slots) arena.free(slots[0] as number);
    expect(arena.doubles.filter((chunk) => chunk.length > 0)).toEqual([]);
  }
  const chunksOfTheLargest = Math.ceil(5000 / 8);
  expect(arena.doubles.length).toBe(chunksOfTheLargest);
});

test('a record above all size classes has a separate chunk', () => {
  const arena = new RecordArena();
  const [one, other] = [arena.allocate(1025), arena.allocate(100_000)];
  expect(arena.doubles.map((chunk) => chunk.length)).toEqual([1025, 100_000]);
  expect([arena.free(one), arena.free(other)]).toEqual([-1, -1]);
  expect(arena.doubles.map((chunk) => chunk.length)).toEqual([0, 0]);
});

test('free returns which record has moved, and the record keeps all its bits', () => {
  const arena = new RecordArena();
  const [a, b, c] = [arena.allocate(3), arena.allocate(3), arena.allocate(3)];
  const ints = arena.ints[0]!;
  // Bits of a NaN, which a copy as a double would change.
  for (let i = 0; i < 6; i++) ints[2 * c + i] = -1 - i;
  expect([arena.free(a), [...ints.subarray(2 * a, 2 * a + 6)]]).toEqual([c, [-1, -2, -3, -4, -5, -6]]);
  expect(arena.free(b)).toBe(-1);
});

test('large sizes are rounded up by one eighth at most', () => {
  for (let words = 1; words <= 1024; words++) {
    expect(allocatedWords(words)).toBeGreaterThanOrEqual(words);
    expect(allocatedWords(words)).toBeLessThanOrEqual(Math.max(words, words * 1.125 + 1));
    expect(allocatedWords(allocatedWords(words))).toBe(allocatedWords(words));
  }
});
