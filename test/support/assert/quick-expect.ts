import { isDeepStrictEqual } from 'node:util';
import { expect } from '@jest/globals';

/*
 * Fast comparisons for tests that compare many thousand values. `expect` of jest costs about 20 µs even if both sides
 * are equal, so these functions call it only if the sides differ.
 */

/** `expect(actual).toEqual(expected)`. */
export function expectEqual(actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toEqual(expected);
}

/** `expect(actual).toBe(expected)`. */
export function expectSame(actual: unknown, expected: unknown): void {
  if (!Object.is(actual, expected)) expect(actual).toBe(expected);
}

/** `expect(actual).toBeLessThanOrEqual(most)`. */
export function expectAtMost(actual: number | undefined, most: number): void {
  if (!(Number(actual) <= most)) expect(actual).toBeLessThanOrEqual(most);
}

/** `expect(actual).toBeGreaterThanOrEqual(least)`. */
export function expectAtLeast(actual: number | undefined, least: number): void {
  if (!(Number(actual) >= least)) expect(actual).toBeGreaterThanOrEqual(least);
}
