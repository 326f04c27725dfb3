import { isDeepStrictEqual } from 'node:util';
import { expect } from '@jest/globals';

/*
 * For what is compared many thousand times: an `expect` of jest costs some 20 µs also where both sides agree. It is
 * asked, and says what differs, once they do not.
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
