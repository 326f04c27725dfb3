import { describe, expect, test } from '@jest/globals';
import {
  type ClientCodec,
  CODE,
  type CodecOptions,
  DecodeError,
  LARGE_MESSAGE_BYTES,
  LIMIT_UNIT,
  MAX_ENTRIES,
  maxFields,
  type RateLimitRequest,
  type RateLimitResponse,
  type ServiceCodec,
} from '../../src/codec/messages.js';
import { runToCompletion } from '../../src/runtime/turns.js';

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
  newCodec: (options?: CodecOptions) => ServiceCodec & ClientCodec;
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

    describe('requests that hold too much', () => {
      const MOST = 7;
      const bounded = newCodec({ maxDescriptors: MOST });
      const fields = maxFields(MOST);
      const unknown = (count: number): Buffer => times(count, hex('78 00'));
      const sentenceOf = (bytes: Uint8Array): string => {
        const sentences = [
          () => bounded.decodeRequest(bytes),
          () => runToCompletion(bounded.decodeSteps(Uint8Array.from(bytes))),
        ].map((decode) => {
          try {
            decode();
            return 'decoded';
          } catch (error) {
            expect(error).toBeInstanceOf(DecodeError);
            return (error as Error).message;
          }
        });
        expect(sentences[1]).toBe(sentences[0]);
        return sentences[0] as string;
      };

      test('as many descriptors as are allowed decode, one more does not', () => {
        expect(sentenceOf(times(MOST, EMPTY_DESCRIPTOR))).toBe('decoded');
        const refused =
          'rate limit descriptor list has at least 8 descriptors, more than the 7 that are allowed (MAX_DESCRIPTORS)';
        expect(sentenceOf(times(MOST + 1, EMPTY_DESCRIPTOR))).toBe(refused);
        // Data after the limit is not read.
        const rest = Buffer.concat([times(MOST + 1, EMPTY_DESCRIPTOR), Buffer.alloc(100, 0xff)]);
        expect(sentenceOf(rest)).toBe(refused);
      });

      test('as many entries as are allowed decode, one more, in whichever descriptor, does not', () => {
        const half = field(0x12, times(MAX_ENTRIES / 2, EMPTY_ENTRY));
        expect(sentenceOf(Buffer.concat([half, half]))).toBe('decoded');
        const refused =
          'rate limit descriptors have at least 10001 entries, more than the 10000 that are allowed in one request';
        expect(sentenceOf(Buffer.concat([half, half, field(0x12, EMPTY_ENTRY)]))).toBe(refused);
        expect(sentenceOf(field(0x12, times(MAX_ENTRIES + 1, EMPTY_ENTRY)))).toBe(refused);
      });

      test.each<[string, (count: number) => Buffer]>([
        ['unknown ones', unknown],
        ['domains', (count) => times(count, hex('0a 00'))],
        ['limits of a descriptor', (count) => field(0x12, times(count - 1, hex('12 00')))],
        ['hits of a descriptor', (count) => field(0x12, times(count - 1, hex('1a 00')))],
        ['unknown ones in an entry', (count) => field(0x12, field(0x0a, unknown(count - 2)))],
        ['keys of an entry', (count) => field(0x12, field(0x0a, times(count - 2, hex('0a 01 61'))))],
        [
          'unknown ones in a limit and an end of one',
          (count) => field(0x12, Buffer.concat([field(0x12, unknown(count - 3)), hex('2000')])),
        ],
        ['those of a group', (count) => Buffer.concat([hex('7b'), unknown(count - 2), hex('7c')])],
        [
          'groups in a descriptor',
          (count) =>
            field(0x12, Buffer.concat([times((count - 2) >> 1, hex('7b7c')), unknown((count & 1) + 1)])),
        ],
      ])('as many fields as are allowed decode, one more does not: %s', (_name, bytes) => {
        expect(sentenceOf(bytes(fields))).toBe('decoded');
        expect(sentenceOf(bytes(fields + 1))).toBe(
          `message has at least ${fields + 1} protobuf fields, more than the ${fields} that are allowed in one request`,
        );
      });

      test('fields and entries of one message are no matter of the next', () => {
        for (let i = 0; i < 3; i++) {
          expect(sentenceOf(unknown(fields))).toBe('decoded');
          expect(sentenceOf(field(0x12, times(MAX_ENTRIES, EMPTY_ENTRY)))).toBe('decoded');
        }
      });
    });

    describe('large requests', () => {
      test('are decoded in steps as at once, several beside each other', () => {
        const text = (unit: string, length: number): string => unit.repeat(length / unit.length);
        const requests = [400_000, 70_000, 20_000, 1, 0].map((length) => ({
          domain: text('d', length),
          descriptors: ['a', 'ü', '漢', '😀'].map((unit) => ({
            entries: [
              { key: text(unit, length), value: `${unit}v` },
              { key: 'k', value: text(`x${unit}`, length) },
            ],
            limit: { requestsPerUnit: 3, unit: 2 },
            hitsAddend: 5,
            isNegativeHits: true,
          })),
          hitsAddend: 4,
        }));
        const running = requests.map((request) => codec.decodeSteps(codec.encodeRequest(request)));
        const decoded: unknown[] = requests.map(() => undefined);
        while (decoded.includes(undefined)) {
          running.forEach((steps, i) => {
            const step = decoded[i] === undefined ? steps.next() : undefined;
            if (step?.done === true) decoded[i] = step.value;
          });
          expect(codec.decodeRequest(fullRequestBytes)).toEqual(fullRequest);
        }
        expect(decoded).toEqual(requests);
      });

      test('that are malformed are refused with the same sentence', () => {
        const value = field(0x12, field(0x0a, field(0x12, Buffer.alloc(100_000, 0xff))));
        expect(() => runToCompletion(codec.decodeSteps(value))).not.toThrow();
        for (const bytes of [value.subarray(0, -1), Buffer.concat([value, hex('08 01')])]) {
          expect(() => runToCompletion(codec.decodeSteps(bytes))).toThrow(
            new DecodeError('message is not a well-formed envoy.service.ratelimit.v3.RateLimitRequest'),
          );
        }
      });
    });

    describe('the domain alone', () => {
      test.each([
        ['', ''],
        ['12 02 0a 00', ''],
        ['0a 01 61 18 01 12 00 0a 01 62 78 01', 'b'],
        ['0a 02 c3 bc', 'ü'],
        ['0a 01 ff', '\ufffd'],
        // Malformed data within a descriptor is not read.
        ['0a 01 61 12 02 ffff', 'a'],
      ])('of %s', (bytes, domain) => {
        expect(codec.domainOf(hex(bytes))).toBe(domain);
        const larger = Buffer.concat([Buffer.alloc(3, 0xff), hex(bytes), Buffer.alloc(3, 0xff)]);
        expect(codec.domainOf(larger.subarray(3, -3))).toBe(domain);
      });

      test.each(['0a', '0a 01', '08 01', '10 01', '0a 01 61 1a 00', '0a 01 61 7b', '00'])(
        'of the malformed %s is undefined',
        (bytes) => {
          expect(codec.domainOf(hex(bytes))).toBeUndefined();
        },
      );

      test.each([
        ['0a 01 61', false],
        ['0a 01 61 12 05 0a 03 0a 01 12', false],
        // An unknown field, hits_addend and is_negative_hits.
        ['12 0a 7a 01 12 1a 02 08 01 20 01 0a 00 0a 01 61', 'malformed'],
        ['12 08 7a 01 12 1a 02 08 01 20', 'malformed'],
        ['12 09 7a 01 12 1a 02 08 01 20 01 0a 01 61', false],
        ['12 02 0a 00 12 02 12 00', true],
        ['12 07 0a 00 12 03 08 01 10', true],
        ['18 01 12 02 12', 'malformed'],
      ])('a limit override in %s: %s', (bytes, expected) => {
        expect(codec.mayOverride(hex(bytes))).toBe(expected !== false);
      });

      test('a limit override is not looked for behind a thousand fields', () => {
        expect(codec.mayOverride(times(1000, EMPTY_DESCRIPTOR))).toBe(false);
        expect(codec.mayOverride(times(1001, EMPTY_DESCRIPTOR))).toBe(true);
      });

      test('of more fields than are allowed, or of a length that no domain has, is undefined', () => {
        const bounded = newCodec({ maxDescriptors: 7 });
        expect(bounded.domainOf(times(maxFields(7), EMPTY_DESCRIPTOR))).toBe('');
        expect(bounded.domainOf(times(maxFields(7) + 1, EMPTY_DESCRIPTOR))).toBeUndefined();
        const domain = Buffer.alloc(LARGE_MESSAGE_BYTES, 'd');
        expect(codec.domainOf(field(0x0a, domain))).toBe(domain.toString());
        expect(codec.domainOf(field(0x0a, Buffer.alloc(LARGE_MESSAGE_BYTES + 1, 'd')))).toBeUndefined();
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
