import { expect, test } from '@jest/globals';
import { loadTakeScript } from '../../../../src/storage/redis/take-script.js';

/**
 * Redis takes no longer argument from a client that has not logged in: it closes the connection without a word of what
 * it misses.
 */
const UNAUTHENTICATED_BULK_LENGTH = 16_384;

test('the script is short enough for a Redis that wants a password first, and has no comments', () => {
  const { text } = loadTakeScript();
  expect(Buffer.byteLength(text)).toBeLessThan(UNAUTHENTICATED_BULK_LENGTH);
  expect(text).not.toMatch(/^\s*--|^\s|\n\n/m);
  expect(text).toMatch(/^local /);
});
