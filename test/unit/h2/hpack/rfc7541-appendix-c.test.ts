import { describe, expect, test } from '@jest/globals';
import { HpackEncoder } from '../../../../src/h2/hpack/encoder.js';
import { HeaderField } from '../../../../src/h2/hpack/header-field.js';
import { bytesOf, decodePairs, encode, newDecoder, type Pair, pairsOf } from '../../../support/h2/hpack.js';

/**
 * A block of the appendix, its fields, and the dynamic table afterwards, newest entry first, with its size in bytes.
 */
interface Example {
  readonly block: string;
  readonly fields: readonly Pair[];
  readonly table: readonly Pair[];
  readonly tableSize: number;
}

const AUTHORITY: Pair = [':authority', 'www.example.com'];
const NO_CACHE: Pair = ['cache-control', 'no-cache'];
const CUSTOM: Pair = ['custom-key', 'custom-value'];
const REQUESTS: readonly (readonly Pair[])[] = [
  [[':method', 'GET'], [':scheme', 'http'], [':path', '/'], AUTHORITY],
  [[':method', 'GET'], [':scheme', 'http'], [':path', '/'], AUTHORITY, NO_CACHE],
  [[':method', 'GET'], [':scheme', 'https'], [':path', '/index.html'], AUTHORITY, CUSTOM],
];
const REQUEST_TABLES: readonly (readonly [readonly Pair[], number])[] = [
  [[AUTHORITY], 57],
  [[NO_CACHE, AUTHORITY], 110],
  [[CUSTOM, NO_CACHE, AUTHORITY], 164],
];

const FOUND: Pair = [':status', '302'];
const REDIRECT: Pair = [':status', '307'];
const PRIVATE: Pair = ['cache-control', 'private'];
const DATE: Pair = ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'];
const LATER: Pair = ['date', 'Mon, 21 Oct 2013 20:13:22 GMT'];
const LOCATION: Pair = ['location', 'https://www.example.com'];
const GZIP: Pair = ['content-encoding', 'gzip'];
const COOKIE: Pair = ['set-cookie', 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'];
const RESPONSES: readonly (readonly Pair[])[] = [
  [FOUND, PRIVATE, DATE, LOCATION],
  [REDIRECT, PRIVATE, DATE, LOCATION],
  [[':status', '200'], PRIVATE, LATER, LOCATION, GZIP, COOKIE],
];
const RESPONSE_TABLES: readonly (readonly [readonly Pair[], number])[] = [
  [[LOCATION, DATE, PRIVATE, FOUND], 222],
  [[REDIRECT, LOCATION, DATE, PRIVATE], 222],
  [[COOKIE, GZIP, LATER], 215],
];

const C3 = [
  '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
  '8286 84be 5808 6e6f 2d63 6163 6865',
  '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
];
const C4 = [
  '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
  '8286 84be 5886 a8eb 1064 9cbf',
  '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
];
const C5 = [
  `4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120
   474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
  '4803 3330 37c1 c0bf',
  `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738
   666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33
   3630 303b 2076 6572 7369 6f6e 3d31`,
];
const C6 = [
  `4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718
   63c7 8f0b 97c8 e9ae 82ae 43d3`,
  '4883 640e ffc1 c0bf',
  `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7
   b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07`,
];

function examples(
  blocks: readonly string[],
  fields: readonly (readonly Pair[])[],
  tables: readonly (readonly [readonly Pair[], number])[],
): Example[] {
  return blocks.map((block, i) => ({
    block: block.replace(/\s/g, ''),
    fields: fields[i] as readonly Pair[],
    table: tables[i]?.[0] as readonly Pair[],
    tableSize: tables[i]?.[1] as number,
  }));
}

/** Decodes the examples in order with one decoder, and checks the table after each by referring to its entries. */
function check(sequence: readonly Example[], tableBytes = 4096): void {
  const decoder = newDecoder({ maxTableBytes: tableBytes });
  const update = encodeUpdate(tableBytes);
  if (tableBytes !== 4096) decoder.decode(update, 0, update.length);
  for (const { block, fields, table, tableSize } of sequence) {
    expect(decodePairs(decoder, bytesOf(block))).toEqual(fields);
    const every = Buffer.from(table.map((_, age) => 0x80 + 62 + age));
    const list = decoder.decode(every, 0, every.length);
    expect(pairsOf(list?.fields ?? [])).toEqual(table);
    expect(list?.size).toBe(tableSize);
  }
  const past = Buffer.from([0x80 + 62 + (sequence.at(-1) as Example).table.length]);
  expect(decoder.decode(past, 0, 1)).toBeUndefined();
}

function encodeUpdate(tableBytes: number): Buffer {
  const encoder = new HpackEncoder();
  encoder.setPeerTableBytes(tableBytes);
  return encode(encoder, []);
}

describe('RFC 7541 appendix C', () => {
  test.each([
    ['C.1.1: 10 in 5 bits', 10, '2a'],
    ['C.1.2: 1337 in 5 bits', 1337, '3f9a0a'],
  ])('%s', (_, value, hex) => {
    // The integer with a prefix of 5 bits is encoded as in a table size update.
    expect(encodeUpdate(value).toString('hex')).toBe(hex);
    expect(newDecoder({ maxTableBytes: value }).decode(bytesOf(hex), 0, hex.length / 2)).toBeDefined();
    const decoder = newDecoder({ maxTableBytes: value - 1 });
    expect(decoder.decode(bytesOf(hex), 0, hex.length / 2)).toBeUndefined();
    expect(decoder.failure).toContain(`${value} bytes`);
  });

  test('C.1.3: 42 at an octet boundary is one octet, as the length of a string', () => {
    const value = 'x'.repeat(42);
    const block = encode(new HpackEncoder(), [new HeaderField(':path', value)]);
    expect(block.subarray(0, 2).toString('hex')).toBe('042a');
    expect(decodePairs(newDecoder(), block)).toEqual([[':path', value]]);
  });

  test.each<[string, Example]>([
    [
      'C.2.1: literal with indexing',
      {
        block: '400a637573746f6d2d6b65790d637573746f6d2d686561646572',
        fields: [['custom-key', 'custom-header']],
        table: [['custom-key', 'custom-header']],
        tableSize: 55,
      },
    ],
    [
      'C.2.2: literal without indexing',
      { block: '040c2f73616d706c652f70617468', fields: [[':path', '/sample/path']], table: [], tableSize: 0 },
    ],
    [
      'C.2.3: literal never indexed',
      {
        block: '100870617373776f726406736563726574',
        fields: [['password', 'secret']],
        table: [],
        tableSize: 0,
      },
    ],
    ['C.2.4: indexed', { block: '82', fields: [[':method', 'GET']], table: [], tableSize: 0 }],
  ])('%s', (_, example) => {
    check([example]);
  });

  test('C.3: requests without Huffman code', () => {
    check(examples(C3, REQUESTS, REQUEST_TABLES));
  });

  test('C.4: requests with Huffman code', () => {
    check(examples(C4, REQUESTS, REQUEST_TABLES));
  });

  test('C.5: responses without Huffman code in a table of 256 bytes, which evicts', () => {
    check(examples(C5, RESPONSES, RESPONSE_TABLES), 256);
  });

  test('C.6: responses with Huffman code in a table of 256 bytes, which evicts', () => {
    check(examples(C6, RESPONSES, RESPONSE_TABLES), 256);
  });

  test('the encoder writes C.2.1, C.2.2, C.2.4, C.3 and, as far as nothing is evicted, C.5', () => {
    const one = (name: string, value: string, indexed: boolean) =>
      encode(new HpackEncoder(), [new HeaderField(name, value, indexed)]).toString('hex');
    expect(one('custom-key', 'custom-header', true)).toBe(
      '400a637573746f6d2d6b65790d637573746f6d2d686561646572',
    );
    expect(one(':path', '/sample/path', false)).toBe('040c2f73616d706c652f70617468');
    expect(one(':method', 'GET', false)).toBe('82');

    for (const [blocks, lists] of [
      [C3, REQUESTS],
      [C5.slice(0, 2), RESPONSES],
    ] as const) {
      const encoder = new HpackEncoder();
      const known = new Map<Pair, HeaderField>();
      const fieldOf = (pair: Pair): HeaderField => {
        const field = known.get(pair) ?? new HeaderField(pair[0], pair[1], true);
        known.set(pair, field);
        return field;
      };
      blocks.forEach((block, i) => {
        const fields = (lists[i] as readonly Pair[]).map(fieldOf);
        expect(encode(encoder, fields).toString('hex')).toBe(block.replace(/\s/g, ''));
      });
    }
  });
});
