import { describe, expect, test } from '@jest/globals';
import {
  type ClientCodec,
  CODE,
  DecodeError,
  LIMIT_UNIT,
  type RateLimitRequest,
  type RateLimitResponse,
  type RequestBounds,
} from '../../src/codec/messages.js';
import type { ServiceCodec } from '../support/codec/wire-codec.js';

function hex(text: string): Buffer {
  return Buffer.from(text.replace(/\s/g, ''), 'hex');
}

const fullRequest: RateLimitRequest = {
  domain: 'open-api',
  descriptors: [
    {
      entries: [
        { key: 'tenant', value: 'acme' },
        { key: 'empty', value: '' },
      ],
      limit: { requestsPerUnit: 7, unit: 3 },
      hitsAddend: 300,
      isNegativeHits: true,
    },
    { entries: [], limit: undefined, hitsAddend: undefined, isNegativeHits: false },
  ],
  hitsAddend: 4_294_967_295,
};
// Written by hand from the proto files, field by field.
const fullRequestBytes = hex(`
  0a 08 6f70656e2d617069
  12 26  0a 0e 0a 06 74656e616e74 12 04 61636d65
         0a 07 0a 05 656d707479
         12 04 08 07 10 03
         1a 03 08 ac02
         20 01
  12 00
  18 ffffffff0f`);

const fullResponse: RateLimitResponse = {
  overallCode: CODE.OVER_LIMIT,
  statuses: [
    {
      code: CODE.OVER_LIMIT,
      currentLimit: { name: 'chats', requestsPerUnit: 100, unit: LIMIT_UNIT.week },
      limitRemaining: 0,
      durationUntilResetSeconds: 61,
    },
    {
      code: CODE.OK,
      currentLimit: { name: '', requestsPerUnit: 0, unit: LIMIT_UNIT.unknown },
      limitRemaining: 4_294_967_295,
      durationUntilResetSeconds: 0,
    },
    {
      code: CODE.UNKNOWN,
      currentLimit: undefined,
      limitRemaining: 0,
      durationUntilResetSeconds: undefined,
    },
  ],
  responseHeadersToAdd: [
    { key: 'x-ratelimit-limit', value: '100' },
    { key: 'x-empty', value: '' },
  ],
  requestHeadersToAdd: [{ key: 'x-up', value: 'ü' }],
  rawBody: Buffer.from('slow down'),
  dynamicMetadata: {
    text: 'ä',
    number: -1.5,
    yes: true,
    no: false,
    nothing: null,
    list: [1, 'two', [], {}, null],
    nested: { deep: { deeper: '' } },
  },
};

/** Encodes a length-delimited field, tag first. */
function field(tag: number, content: Uint8Array): Buffer {
  const length: number[] = [];
  let rest = content.length;
  for (; rest >= 0x80; rest >>>= 7) length.push((rest & 0x7f) | 0x80);
  return Buffer.concat([Buffer.of(tag, ...length, rest), content]);
}

function times(count: number, bytes: Uint8Array): Buffer {
  return Buffer.alloc(count * bytes.length, bytes);
}

const EMPTY_DESCRIPTOR = hex('12 00');
const EMPTY_ENTRY = hex('0a 00');

/** Tests the contract of both sides of a codec for one implementation. */
export function runCodecContract({
  name,
  newCodec,
}: {
  name: string;
  newCodec: (bounds?: RequestBounds) => ServiceCodec & ClientCodec;
}): void {
  describe(`codec: ${name}`, () => {
    const codec = newCodec();

    describe('requests', () => {
      test('reads every field', () => {
        expect(codec.decodeRequest(fullRequestBytes)).toEqual(fullRequest);
      });

      test('writes every field, and leaves defaults out', () => {
        expect(Buffer.from(codec.encodeRequest(fullRequest)).toString('hex')).toBe(
          fullRequestBytes.toString('hex'),
        );
      });

      test('reads no bytes as an empty request', () => {
        const empty = { domain: '', descriptors: [], hitsAddend: 0 };
        expect(codec.decodeRequest(Buffer.alloc(0))).toEqual(empty);
        expect(Buffer.from(codec.encodeRequest(empty))).toEqual(Buffer.alloc(0));
      });

      test.each([
        ['absent', '', undefined],
        ['zero, left out', '1a 00', 0],
        ['zero, written', '1a 02 08 00', 0],
        ['one', '1a 02 08 01', 1],
        ['2^53 - 1', '1a 09 08 ffffffffffffff0f', 2 ** 53 - 1],
        ['2^53', '1a 09 08 8080808080808010', 2 ** 53 - 1],
        ['2^64 - 1', '1a 0b 08 ffffffffffffffffff01', 2 ** 53 - 1],
      ])('keeps a descriptor hits_addend that is %s', (_name, bytes, hits) => {
        const body = hex(bytes);
        const message = Buffer.concat([Buffer.of(0x12, body.length), body]);
        expect(codec.decodeRequest(message).descriptors[0]?.hitsAddend).toBe(hits);
      });

      test.each([
        ['ff', '\ufffd'],
        ['61 c3 62', 'a\ufffdb'],
        ['e2 82', '\ufffd'],
        ['ed a0 80', '\ufffd\ufffd\ufffd'],
        ['f0 9f 98 80', '😀'],
        ['00', '\0'],
      ])('decodes value %s as UTF-8 with U+FFFD', (bytes, value) => {
        const text = hex(bytes);
        const entry = Buffer.concat([hex('0a 01 6b 12'), Buffer.of(text.length), text]);
        const message = Buffer.concat([Buffer.of(0x12, entry.length + 2, 0x0a, entry.length), entry]);
        for (const view of [message, new Uint8Array(message)]) {
          expect(codec.decodeRequest(view).descriptors[0]?.entries).toEqual([{ key: 'k', value }]);
        }
      });

      test.each([
        ['field number 0', '00 01'],
        ['a lone end of group', '0c'],
        ['a group without end', '7b 08 01'],
        ['a group with another end', '7b 08 01 74'],
        ['groups beyond any sense', '7b'.repeat(200_000)],
        ['wire type 6', '7e 00'],
        ['wire type 7', '7f 00'],
        ['a varint of 11 bytes', '18 ffffffffffffffffffff 01'],
        ['a length beyond the end', '0a ffffffff0f 61'],
        ['a length beyond any size', '0a ffffffffffffffffff01 61'],
        ['a string as number', '08 01'],
        ['a number as string', '1a 01 01'],
        ['an entry that runs into its neighbour', '12 05 0a 03 0a 04 6b6b6b6b'],
        ['ASCII', Buffer.from('GET / HTTP/1.1').toString('hex')],
      ])('refuses %s with a sentence that is safe to send', (_name, bytes) => {
        let thrown: unknown;
        try {
          codec.decodeRequest(hex(bytes));
        } catch (error) {
          thrown = error;
        }
        expect(thrown).toBeInstanceOf(DecodeError);
        expect((thrown as Error).message).toBe(
          'message is not a well-formed envoy.service.ratelimit.v3.RateLimitRequest',
        );
      });
    });

    describe('requests above a bound', () => {
      const bounded = newCodec({ maxBytes: 200, maxDescriptors: 7, maxEntries: 10 });
      const DOMAIN = hex('0a 01 64');
      const token = (value: string): Buffer =>
        field(
          0x12,
          field(0x0a, Buffer.concat([field(0x0a, Buffer.from('hold')), field(0x12, Buffer.from(value))])),
        );

      test('keep as many descriptors as are allowed', () => {
        const allowed = Buffer.concat([times(7, EMPTY_DESCRIPTOR), DOMAIN]);
        expect(bounded.decodeRequest(allowed)).toMatchObject({ domain: 'd', exceeded: undefined });
        const more = bounded.decodeRequest(Buffer.concat([times(8, EMPTY_DESCRIPTOR), DOMAIN]));
        expect(more).toMatchObject({ domain: 'd', exceeded: 'descriptors' });
        expect(more.descriptors).toHaveLength(7);
      });

      test('keep as many entries as are allowed, in whichever descriptor', () => {
        const half = field(0x12, times(5, EMPTY_ENTRY));
        const allowed = bounded.decodeRequest(Buffer.concat([half, half, DOMAIN]));
        expect(allowed).toMatchObject({ domain: 'd', exceeded: undefined });
        for (const rest of [field(0x12, EMPTY_ENTRY), field(0x12, times(8, EMPTY_ENTRY))]) {
          const more = bounded.decodeRequest(Buffer.concat([half, half, rest, EMPTY_DESCRIPTOR, DOMAIN]));
          expect(more).toMatchObject({ domain: 'd', exceeded: 'entries' });
          expect(more.descriptors.map(({ entries }) => entries.length)).toEqual([5, 5, 0]);
        }
      });

      test('of the bytes are read up to the bound, and keep the entries before it', () => {
        const value = Buffer.concat([
          DOMAIN,
          token('t'),
          field(0x12, field(0x0a, field(0x12, Buffer.alloc(300)))),
        ]);
        for (const cut of [value, value.subarray(0, 201)]) {
          const { domain, exceeded, descriptors } = bounded.decodeRequest(cut);
          expect({ domain, exceeded }).toEqual({ domain: 'd', exceeded: 'request_bytes' });
          expect(descriptors[0]?.entries).toEqual([{ key: 'hold', value: 't' }]);
        }
        // The token and the long value are in one descriptor.
        const both = field(
          0x12,
          Buffer.concat([token('t').subarray(2), field(0x0a, field(0x12, Buffer.alloc(300)))]),
        );
        expect(bounded.decodeRequest(Buffer.concat([DOMAIN, both])).descriptors[0]?.entries[0]?.value).toBe(
          't',
        );
      });

      test.each(Array.from({ length: 12 }, (_, at) => at))(
        'of the bytes are no error, wherever the bound cuts a field in two: %i',
        (at) => {
          const before = field(0x7a, Buffer.alloc(180 + at));
          const rest = Buffer.concat([hex('12 04 0807 1003'), hex('18 8080808001'), token('x'.repeat(100))]);
          const request = bounded.decodeRequest(Buffer.concat([DOMAIN, before, rest, Buffer.alloc(99)]));
          expect(request).toMatchObject({ domain: 'd', exceeded: 'request_bytes' });
        },
      );

      test('are refused if their domain is not below the bound of bytes', () => {
        const long = field(0x12, field(0x0a, field(0x12, Buffer.alloc(300))));
        for (const bytes of [
          Buffer.concat([long, DOMAIN]),
          field(0x0a, Buffer.alloc(300, 'd')),
          Buffer.alloc(201),
        ]) {
          expect(() => bounded.decodeRequest(bytes)).toThrow(DecodeError);
        }
      });

      test('do not affect the next request', () => {
        const tooMany = field(0x12, times(11, EMPTY_ENTRY));
        for (let i = 0; i < 3; i++) {
          expect(bounded.decodeRequest(tooMany).exceeded).toBe('entries');
          expect(bounded.decodeRequest(field(0x12, times(10, EMPTY_ENTRY))).exceeded).toBeUndefined();
        }
      });
    });

    describe('responses', () => {
      test('come back as they went', () => {
        const decoded = codec.decodeResponse(codec.encodeResponse(fullResponse));
        expect({ ...decoded, rawBody: Buffer.from(decoded.rawBody ?? []) }).toEqual(fullResponse);
      });

      test('have the bytes that the proto files ask for', () => {
        const response: RateLimitResponse = {
          overallCode: CODE.OK,
          statuses: [
            {
              code: CODE.OK,
              currentLimit: { name: 'n', requestsPerUnit: 100, unit: LIMIT_UNIT.minute },
              limitRemaining: 99,
              durationUntilResetSeconds: 300,
            },
          ],
          responseHeadersToAdd: [{ key: 'k', value: 'v' }],
          requestHeadersToAdd: [{ key: 'q', value: '' }],
          rawBody: Buffer.of(1),
          dynamicMetadata: { m: 'x' },
        };
        // The order of fields in a message is not defined, so each part is found with its length.
        const bytes = Buffer.from(codec.encodeResponse(response)).toString('hex');
        const parts = [
          '0801', // overall_code
          '08011207', // statuses: code, current_limit
          '0864', // requests_per_unit
          '1002', // unit
          '1a016e', // name
          '1863', // limit_remaining
          '220308ac02', // duration_until_reset
          '1a060a016b120176', // response_headers_to_add
          '2a0101', // raw_body
          '32', // dynamic_metadata
        ];
        for (const part of parts) expect(bytes).toContain(part);
        // request_headers_to_add. The empty value may be omitted or written.
        expect(bytes).toMatch(/22(?:030a0171|050a01711200)/);
      });

      test('are empty when nothing is in them', () => {
        const empty: RateLimitResponse = {
          overallCode: CODE.UNKNOWN,
          statuses: [],
          responseHeadersToAdd: [],
          requestHeadersToAdd: [],
          rawBody: undefined,
          dynamicMetadata: undefined,
        };
        expect(Buffer.from(codec.encodeResponse(empty))).toEqual(Buffer.alloc(0));
        expect(codec.decodeResponse(Buffer.alloc(0))).toEqual(empty);
      });

      test('that are garbage are refused', () => {
        expect(() => codec.decodeResponse(Buffer.alloc(20, 0xff))).toThrow(DecodeError);
      });
    });
  });
}
