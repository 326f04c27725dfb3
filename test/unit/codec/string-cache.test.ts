import { describe, expect, test } from '@jest/globals';
import { StringCache } from '../../../src/codec/string-cache.js';

describe('StringCache', () => {
  test('returns the right string for more strings than it caches', () => {
    const table = new StringCache();
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 20_000; i++) {
        const text = `tenant-${(i * 7919) % 20_000}`;
        const bytes = Buffer.from(text);
        if (table.read(bytes, 0, bytes.length) !== text) throw new Error(`${text} was read as another`);
      }
    }
  });

  test('distinguishes strings with the same beginning, end or position', () => {
    const table = new StringCache();
    const texts = ['a', 'aa', 'a\0', '\0', '\0\0', 'é', '\u00c3\u00a9', 'x'.repeat(64), 'x'.repeat(65), ''];
    for (let round = 0; round < 2; round++) {
      for (const text of texts) {
        const bytes = Buffer.from(`..${text}..`);
        expect(table.read(bytes, 2, bytes.length - 2)).toBe(text);
      }
    }
  });

  test('is not affected by later changes of the bytes', () => {
    const table = new StringCache();
    const bytes = Buffer.from('acme');
    expect(table.read(bytes, 0, 4)).toBe('acme');
    bytes.write('beta');
    expect(table.read(bytes, 0, 4)).toBe('beta');
    expect(table.read(Buffer.from('acme'), 0, 4)).toBe('acme');
  });

  test('decodes bytes that are not UTF-8 in the same way each time', () => {
    const table = new StringCache();
    const bytes = new Uint8Array([0x61, 0xc3, 0x62]);
    for (let round = 0; round < 2; round++) expect(table.read(bytes, 0, 3)).toBe('a\ufffdb');
  });
});
