import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { KeyWords } from '../../../../src/storage/memory/key-words.js';
import { runs } from '../../../support/assert/runs.js';
import { anyText } from '../../../support/codec/any-text.js';

/** Returns everything that distinguishes two keys, as text. */
function imageOf(words: KeyWords, key: string): string {
  words.load(key);
  return [words.info, ...words.words.subarray(0, words.count)].join();
}

/** Variant of {@link imageOf} with a new object, which contains nothing of an earlier load. */
function fresh(key: string): string {
  return imageOf(new KeyWords(1, 2), key);
}

test('different names have different words, and equal names have the same hash', () => {
  const words = new KeyWords();
  const name = fc.oneof(anyText(), fc.string({ unit: fc.constantFrom('\0', 'a', 'ÿ', 'Ā', '\ud800') }));
  fc.assert(
    fc.property(name, name, (one, other) => {
      expect(imageOf(words, one) === imageOf(words, other)).toBe(one === other);
      expect(imageOf(words, one)).toBe(fresh(one));
      const { hash } = words;
      words.load('something else');
      words.load(`${one} `.slice(0, -1));
      expect(words.hash).toBe(hash);
    }),
    runs(300),
  );
});

test.each([
  ['characters that fill up the last word', 'abc', 'abc\0'],
  ['two ASCII characters and a wide one with the same bits', 'ab', '\u6261'],
  ['a high byte that would overlap the next character', 'ĀA', 'AB'],
])('%s result in another name', (_, one, other) => {
  expect(fresh(one)).not.toBe(fresh(other));
});

test('a name of a megabyte fits', () => {
  const words = new KeyWords();
  words.load('x'.repeat(1 << 20));
  expect([words.count, words.words[words.count - 1]]).toEqual([1 << 18, 0x78787878]);
});

describe('the hash', () => {
  test('differs with another seed', () => {
    const [one, other] = [new KeyWords(1, 2), new KeyWords(1, 3)];
    one.load('tenant');
    other.load('tenant');
    expect(one.hash).not.toBe(other.hash);
  });

  test('distributes similar names evenly over chains', () => {
    const words = new KeyWords();
    const chains = new Int32Array(1 << 10);
    for (let i = 0; i < chains.length * 16; i++) {
      words.load(`8:open-api6:tenant6:${100_000 + i}`);
      const chain = words.hash & (chains.length - 1);
      chains[chain] = (chains[chain] as number) + 1;
    }
    // The mean is 16 per chain and the standard deviation 4, so a good hash never reaches 48, whatever the seed.
    expect(Math.max(...chains)).toBeLessThan(48);
  });

  test.each([65, 300, 1000, 4096, 4100])(
    'distributes similar names of %p characters evenly over chains',
    (length) => {
      const words = new KeyWords();
      const chains = new Int32Array(1 << 6);
      for (let i = 0; i < chains.length * 16; i++) {
        // The difference is at another position each time.
        const at = (i * 7) % (length - 8);
        words.load(`${'x'.repeat(at)}${1_000_000 + i}`.padEnd(length, 'y'));
        const chain = words.hash & (chains.length - 1);
        chains[chain] = (chains[chain] as number) + 1;
      }
      expect(Math.max(...chains)).toBeLessThan(48);
    },
  );

  test('of a long name depends on every character and on the seed', () => {
    const length = 300;
    const hashes = new Set<number>();
    const words = new KeyWords();
    for (let at = 0; at < length; at++) {
      words.load(`${'a'.repeat(at)}b${'a'.repeat(length - at - 1)}`);
      hashes.add(words.hash);
    }
    words.load('a'.repeat(length));
    hashes.add(words.hash);
    words.load('a'.repeat(length + 1));
    hashes.add(words.hash);
    // Among this number of keys, two hashes are equal once in 100,000 runs.
    expect(hashes.size).toBe(length + 2);
    const [one, other] = [new KeyWords(1, 2), new KeyWords(1, 3)];
    one.load('a'.repeat(length));
    other.load('a'.repeat(length));
    expect(one.hash).not.toBe(other.hash);
  });
});
