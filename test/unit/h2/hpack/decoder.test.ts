import { describe, expect, test } from '@jest/globals';
import { HpackDecoder } from '../../../../src/h2/hpack/decoder.js';
import type { HeaderList } from '../../../../src/h2/hpack/header-field.js';
import { bytesOf, newDecoder } from '../../../support/h2/hpack.js';

function decode(decoder: HpackDecoder, hex: string): HeaderList | undefined {
  const bytes = bytesOf(hex);
  return decoder.decode(bytes, 0, bytes.length);
}

/** Encodes a literal with the name 'n' that is added to the table, with a value of `length` characters below 127. */
function entryOf(length: number, character: string): string {
  return `40016e${length.toString(16).padStart(2, '0')}${Buffer.from(character.repeat(length)).toString('hex')}`;
}

describe('HpackDecoder', () => {
  test('an empty block is an empty list', () => {
    expect(decode(newDecoder(), '')).toMatchObject({ fields: [], size: 0, tooLarge: false });
  });

  test('decodes only the bytes between start and end', () => {
    const bytes = bytesOf('ff 82 86 ff');
    expect(newDecoder().decode(bytes, 1, 3)?.fields).toEqual([':method', 'GET', ':scheme', 'http']);
  });

  test('counts the name, the value and 32 bytes for each field', () => {
    expect(decode(newDecoder(), `82 86 ${entryOf(3, 'v')}`)?.size).toBe(10 + 32 + 11 + 32 + 4 + 32);
  });

  test('keeps empty names and values, and every byte as a character', () => {
    expect(decode(newDecoder(), '000000 40000100 00 02c3a4 01ff')?.fields).toEqual([
      '',
      '',
      '',
      '\0',
      'Ã¤',
      'ÿ',
    ]);
  });

  test.each([
    ['index 0', '80', 'index 0'],
    ['index 0 after a field', '8280', 'index 0'],
    [
      'an index past the static table while the dynamic table is empty',
      'be',
      'index 62 is not in the static or dynamic table',
    ],
    [
      'a name past the static table while the dynamic table is empty',
      '7e00',
      'index 62 is not in the static or dynamic table',
    ],
    ['a table size over the limit', '3fe21f', 'a table size of 4097 bytes exceeds the limit of 4096'],
    ['a table size update between fields', '823fe11f', 'a table size update follows a field'],
    ['a table size update at the end', '8220', 'a table size update follows a field'],
    [
      'a table size update after one field and before another',
      '20823f0082',
      'a table size update follows a field',
    ],
    ['an index that is cut', 'ff', 'the block ends inside an integer'],
    ['an index that is cut after a continuation', 'ff80', 'the block ends inside an integer'],
    ['a table size that is cut', '3f', 'the block ends inside an integer'],
    ['an integer of five octets', 'ff8080808001', 'an integer is too large'],
    ['an integer of endless zeros', 'ff80808080808080808080808000', 'an integer is too large'],
    ['a string length of 2^62', `007f${'ff'.repeat(8)}7f`, 'an integer is too large'],
    ['a literal that ends before its name', '00', 'the block ends before a string'],
    ['a literal that ends inside its name', '000561', 'the block ends inside a string'],
    ['a literal that ends before its value', '000161', 'the block ends before a string'],
    ['a literal that ends inside its value', '00016102 62', 'the block ends inside a string'],
    ['a literal with a known name that ends before its value', '44', 'the block ends before a string'],
    ['a length that is cut', '007f', 'the block ends inside an integer'],
    ['a string of 2^28 bytes', '007fffffff7f61', 'the block ends inside a string'],
    ['Huffman code with eight bits of padding', '0482f8ff', 'a string has an invalid Huffman code'],
    ['Huffman code that is padding only, of eight bits', '0481ff', 'a string has an invalid Huffman code'],
    ['Huffman code with a padding of zeros', '048118', 'a string has an invalid Huffman code'],
    ['Huffman code with a bit of zero in its padding', '04811e', 'a string has an invalid Huffman code'],
    ['Huffman code that ends inside a long symbol', '0482fffe', 'a string has an invalid Huffman code'],
    ['Huffman code with EOS', '0484ffffffff', 'a string has an invalid Huffman code'],
    ['Huffman code with EOS inside', '04871fffffffff1fff', 'a string has an invalid Huffman code'],
    ['Huffman code with EOS in a name', '0084ffffffff00', 'a string has an invalid Huffman code'],
  ])('refuses %s', (_, hex, reason) => {
    const decoder = newDecoder();
    expect(decode(decoder, hex)).toBeUndefined();
    expect(decoder.failure).toBe(reason);
  });

  test('refuses an index right after the oldest entry', () => {
    const decoder = newDecoder();
    decode(decoder, entryOf(1, 'a') + entryOf(1, 'b'));
    expect(decode(decoder, 'bfbe')?.fields).toEqual(['n', 'a', 'n', 'b']);
    expect(decode(decoder, 'c0')).toBeUndefined();
    expect(decoder.failure).toBe('index 64 is not in the static or dynamic table');
  });
});

describe('table sizes', () => {
  test('a size update evicts the oldest entries that no longer fit', () => {
    const decoder = newDecoder();
    decode(decoder, entryOf(7, 'a') + entryOf(7, 'b') + entryOf(7, 'c')); // 40 bytes each
    expect(decode(decoder, '3f31 be bf')?.fields).toEqual(['n', 'ccccccc', 'n', 'bbbbbbb']); // 80
    expect(decode(decoder, '3f30 be')?.fields).toEqual(['n', 'ccccccc']); // 79
    expect(decode(decoder, 'bf')).toBeUndefined();
  });

  test('several updates in a row take effect in order', () => {
    const decoder = newDecoder();
    decode(decoder, entryOf(1, 'a'));
    expect(decode(decoder, `203fe11f${entryOf(1, 'b')}be`)?.fields).toEqual(['n', 'b', 'n', 'b']);
    expect(decode(decoder, 'bf')).toBeUndefined();
  });

  test('a field larger than the table empties the table without an error', () => {
    const decoder = newDecoder();
    expect(decode(decoder, `3f09${entryOf(7, 'a')}${entryOf(8, 'b')}`)?.fields).toEqual([
      'n',
      'aaaaaaa',
      'n',
      'bbbbbbbb',
    ]);
    expect(decode(decoder, 'be')).toBeUndefined();
  });

  test('a field that just fits is kept', () => {
    const decoder = newDecoder();
    decode(decoder, `3f09${entryOf(7, 'a')}`);
    expect(decode(decoder, 'be')?.fields).toEqual(['n', 'aaaaaaa']);
  });

  test('entries that fill the table to the byte stay, one byte more evicts the oldest', () => {
    const decoder = newDecoder();
    decode(decoder, `3f31${entryOf(7, 'a')}${entryOf(7, 'b')}`); // a table of 80, entries of 40
    expect(decode(decoder, 'bebf')).toBeDefined();
    decode(decoder, `3f32${entryOf(7, 'a')}${entryOf(9, 'b')}`); // 81, and 40 + 42
    expect(decode(decoder, 'be')?.fields).toEqual(['n', 'bbbbbbbbb']);
    expect(decode(decoder, 'bf')).toBeUndefined();
  });

  test('an entry may use the name of an entry that it evicts', () => {
    const decoder = newDecoder();
    // Refers to the name of the only entry, which is evicted for the new one (RFC 7541 section 4.4).
    decode(decoder, `3f09${entryOf(7, 'a')}`);
    expect(decode(decoder, '7e03626262')?.fields).toEqual(['n', 'bbb']);
    expect(decode(decoder, 'be')?.fields).toEqual(['n', 'bbb']);
  });

  test('a limit above 4096 applies only after a size update of the peer', () => {
    const decoder = newDecoder({ maxTableBytes: 8192, maxListBytes: 1_000_000 });
    const entry = entryOf(95, 'v'); // 128 bytes: 32 fill 4096
    decode(decoder, entry.repeat(40));
    expect(decode(decoder, 'dd')).toBeDefined(); // 62 + 31
    expect(decode(decoder, 'de')).toBeUndefined();
    const larger = newDecoder({ maxTableBytes: 8192, maxListBytes: 1_000_000 });
    decode(larger, `3fe13f${entry.repeat(70)}`);
    expect(decode(larger, 'fd')).toBeDefined(); // 62 + 63
    expect(decode(larger, 'fe')).toBeUndefined();
  });

  test('a limit below 4096 is the maximum of a size update', () => {
    expect(decode(newDecoder({ maxTableBytes: 100 }), '3f45')).toBeDefined();
    expect(decode(newDecoder({ maxTableBytes: 100 }), '3f46')).toBeUndefined();
  });
});

describe('lists over the limit', () => {
  test('a list of exactly the limit is complete, and one more byte truncates the list', () => {
    expect(decode(newDecoder({ maxListBytes: 85 }), '8286')).toMatchObject({ tooLarge: false, size: 85 });
    expect(decode(newDecoder({ maxListBytes: 84 }), '8286')).toMatchObject({
      tooLarge: true,
      size: 85,
      fields: [':method', 'GET'],
    });
  });

  test('no field is returned after the first field above the limit', () => {
    const list = decode(newDecoder({ maxListBytes: 100 }), `82${entryOf(80, 'v')}86`);
    expect(list).toMatchObject({ tooLarge: true, fields: [':method', 'GET'] });
  });

  test('omitted fields also update the table', () => {
    const decoder = newDecoder({ maxListBytes: 40 });
    expect(decode(decoder, entryOf(20, 'a') + entryOf(5, 'b'))?.tooLarge).toBe(true);
    expect(decode(decoder, 'be')).toMatchObject({ tooLarge: false, fields: ['n', 'bbbbb'] });
    expect(decode(decoder, 'bf')).toMatchObject({ tooLarge: true, fields: [] });
    expect(decode(decoder, 'c0')).toBeUndefined();
  });

  test('omitted fields must also be well-formed', () => {
    expect(decode(newDecoder({ maxListBytes: 0 }), '820482f8ff')).toBeUndefined();
  });

  test('a block that inserts large entries by name again and again keeps one table of them', () => {
    const decoder = newDecoder({ maxListBytes: 16_384 });
    const name = 'n'.repeat(4000);
    const literal = Buffer.concat([bytesOf('407fa11e'), Buffer.from(name), bytesOf('00')]);
    const insertions = bytesOf('7e00'.repeat(30_000));
    const bomb = Buffer.concat([literal, insertions]);
    expect(decoder.decode(bomb, 0, bomb.length)?.tooLarge).toBe(true);
    expect(decode(decoder, 'be')?.fields).toEqual([name, '']);
    expect(decode(decoder, 'bf')).toBeUndefined();
  });
});

describe('repeated blocks', () => {
  test('the same bytes on the same table give the same list', () => {
    const decoder = newDecoder();
    const first = decode(decoder, '82860401 2f');
    expect(decode(decoder, '8286 0401 2f')).toBe(first);
    expect(decode(decoder, '8286 0401 2e')).not.toBe(first);
  });

  test('the last four blocks are cached', () => {
    const decoder = newDecoder();
    const blocks = ['82', '83', '8286', '8287'];
    const lists = blocks.map((block) => decode(decoder, block));
    for (let round = 0; round < 3; round++) {
      expect(blocks.map((block) => decode(decoder, block))).toEqual(lists);
      blocks.forEach((block, i) => {
        expect(decode(decoder, block)).toBe(lists[i]);
      });
    }
    expect(lists.map((list) => list?.fields.length)).toEqual([2, 2, 4, 4]);
  });

  test('the same bytes have another meaning after the table has changed', () => {
    const decoder = newDecoder();
    decode(decoder, entryOf(1, 'a'));
    const before = decode(decoder, 'be');
    expect(decode(decoder, 'be')).toBe(before);
    decode(decoder, entryOf(1, 'b'));
    expect(decode(decoder, 'be')?.fields).toEqual(['n', 'b']);
    decode(decoder, '20');
    expect(decode(decoder, 'be')).toBeUndefined();
  });

  test('a block that changes the table is decoded each time', () => {
    const decoder = newDecoder();
    const block = entryOf(1, 'a');
    for (let i = 0; i < 3; i++) decode(decoder, block);
    expect(decode(decoder, 'c0')?.fields).toEqual(['n', 'a']);
  });

  test('a size update without effect keeps the cache, and is not skipped', () => {
    const decoder = newDecoder();
    decode(decoder, entryOf(1, 'a'));
    expect(decode(decoder, '3fe11fbe')?.fields).toEqual(['n', 'a']);
    expect(decode(decoder, '3fe11fbe')?.fields).toEqual(['n', 'a']);
    expect(decode(decoder, '20')?.fields).toEqual([]);
    expect(decode(decoder, '3fe11fbe')).toBeUndefined();
  });

  test('a cached list keeps derived data', () => {
    const decoder = newDecoder();
    const list = decode(decoder, '82') as HeaderList;
    expect(list.derived).toBeUndefined();
    list.derived = 'GET it is';
    expect(decode(decoder, '82')?.derived).toBe('GET it is');
  });

  test('blocks over 256 bytes are decoded each time', () => {
    const decoder = newDecoder();
    const longest = '82'.repeat(256);
    expect(decode(decoder, longest)).toBe(decode(decoder, longest));
    const longer = '82'.repeat(257);
    const list = decode(decoder, longer);
    expect(list?.fields.length).toBe(514);
    expect(decode(decoder, longer)).toEqual(list);
    expect(decode(decoder, longer)).not.toBe(list);
  });

  test('the cache uses the bytes of a block, not later content of its buffer', () => {
    const decoder = new HpackDecoder({ maxTableBytes: 4096, maxListBytes: 1000 });
    const bytes = bytesOf('82');
    const get = decoder.decode(bytes, 0, 1);
    bytes[0] = 0x83;
    expect(decoder.decode(bytes, 0, 1)?.fields).toEqual([':method', 'POST']);
    expect(decode(decoder, '82')).toBe(get);
  });
});
