import { describe, expect, test } from '@jest/globals';
import { LiteralCache } from '../../../../src/h2/hpack/decoder.js';

const bytes = (text: string) => Buffer.from(text, 'latin1');

describe('LiteralCache', () => {
  test('finds a string by its bytes, at any position', () => {
    const cache = new LiteralCache();
    cache.keep(bytes('-/path-'), 1, 6, false, '/path');
    expect(cache.find(bytes('/path'), 0, 5, false)).toBe('/path');
    expect(cache.find(bytes('/paths'), 0, 6, false)).toBeUndefined();
    expect(cache.find(bytes('/pat'), 0, 4, false)).toBeUndefined();
  });

  test('the same bytes are another string in Huffman code', () => {
    const cache = new LiteralCache();
    cache.keep(bytes('ab'), 0, 2, true, 'decoded');
    expect(cache.find(bytes('ab'), 0, 2, false)).toBeUndefined();
    expect(cache.find(bytes('ab'), 0, 2, true)).toBe('decoded');
  });

  test('strings with the same slot are distinguished', () => {
    const cache = new LiteralCache();
    // Equal length, and equal first, middle and last bytes.
    cache.keep(bytes('abcde'), 0, 5, false, 'abcde');
    expect(cache.find(bytes('axcde'), 0, 5, false)).toBeUndefined();
    cache.keep(bytes('axcde'), 0, 5, false, 'axcde');
    expect(cache.find(bytes('axcde'), 0, 5, false)).toBe('axcde');
    expect(cache.find(bytes('abcde'), 0, 5, false)).toBeUndefined();
  });

  test('caches strings of 1 to 64 bytes', () => {
    const cache = new LiteralCache();
    for (const [length, kept] of [
      [0, false],
      [1, true],
      [64, true],
      [65, false],
    ] as const) {
      const text = 'x'.repeat(length);
      cache.keep(bytes(text), 0, length, true, text);
      expect(cache.find(bytes(text), 0, length, true)).toBe(kept ? text : undefined);
    }
  });

  test('is empty at first', () => {
    expect(new LiteralCache().find(Buffer.alloc(1), 0, 1, false)).toBeUndefined();
  });
});
