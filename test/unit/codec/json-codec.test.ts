import { describe, expect, test } from '@jest/globals';
import { createJsonCodec } from '../../../src/codec/json/json-codec.js';
import {
  CODE,
  DecodeError,
  LIMIT_UNIT,
  moreDescriptorsThan,
  type RateLimitResponse,
} from '../../../src/codec/messages.js';
import { protoFiles } from '../../../src/codec/proto-files.js';
import { createWireCodec } from '../../../src/codec/wire-codec.js';
import { runToCompletion } from '../../../src/runtime/turns.js';

const steps = createJsonCodec(protoFiles(), 100);
const codec = {
  requestToWire: (json: Uint8Array) => runToCompletion(steps.requestToWire(json)),
  responseFromWire: (bytes: Uint8Array) => runToCompletion(steps.responseFromWire(bytes)),
};
const wire = createWireCodec();
const read = (json: string) => wire.decodeRequest(codec.requestToWire(Buffer.from(json)));

const NO_DESCRIPTOR = { entries: [], limit: undefined, hitsAddend: undefined, isNegativeHits: false };

describe('a request in protobuf JSON', () => {
  test('names in camelCase', () => {
    expect(
      read(`{
        "domain": "d",
        "descriptors": [
          { "entries": [{ "key": "k", "value": "v\\u00fc" }], "limit": { "requestsPerUnit": 5, "unit": "HOUR" } },
          { "hitsAddend": "7", "isNegativeHits": true }
        ],
        "hitsAddend": 3
      }`),
    ).toEqual({
      domain: 'd',
      descriptors: [
        {
          ...NO_DESCRIPTOR,
          entries: [{ key: 'k', value: 'vü' }],
          limit: { requestsPerUnit: 5, unit: 3 },
        },
        { ...NO_DESCRIPTOR, hitsAddend: 7, isNegativeHits: true },
      ],
      hitsAddend: 3,
    });
  });

  test('names as in the proto file', () => {
    expect(
      read('{"descriptors":[{"limit":{"requests_per_unit":5},"hits_addend":0}],"hits_addend":"3"}'),
    ).toEqual({
      domain: '',
      descriptors: [{ ...NO_DESCRIPTOR, limit: { requestsPerUnit: 5, unit: 0 }, hitsAddend: 0 }],
      hitsAddend: 3,
    });
  });

  test('with too many descriptors is refused unread, with the error of the other codecs', () => {
    const list = (count: number, one: string): string =>
      `{"descriptors":[${Array(count).fill(one).join(',')}]}`;
    expect(read(list(100, '{}')).descriptors).toHaveLength(100);
    expect(() => read(list(101, '13'))).toThrow(new DecodeError(moreDescriptorsThan(100)));
    expect(() => read(`{"descriptors":"${'x'.repeat(101)}"}`)).toThrow(/expected Array/);
  });

  test.each(['{}', ' {"domain":null,"descriptors":null} '])('%s is an empty request', (json) => {
    expect(read(json)).toEqual({ domain: '', descriptors: [], hitsAddend: 0 });
  });

  test.each(['18446744073709551615', '"18446744073709551615"', '9007199254740993'])(
    'hits of 64 bits as %s',
    (hits) => {
      for (const name of ['hitsAddend', 'hits_addend']) {
        const json = `{"domain":"say \\"${name}\\": 18446744073709551615","descriptors":[{"${name}" :\n ${hits}}]}`;
        expect(read(json)).toMatchObject({
          domain: `say "${name}": 18446744073709551615`,
          descriptors: [{ hitsAddend: Number.MAX_SAFE_INTEGER }],
        });
      }
    },
  );

  test.each([2, 7, 99, -1])('a unit as the number %p', (unit) => {
    const { descriptors } = read(`{"descriptors":[{"limit":{"unit":${unit}}}]}`);
    expect((descriptors[0]?.limit?.unit ?? 0) | 0).toBe(unit);
  });

  test.each([
    '',
    '}',
    'null',
    '[]',
    '"d"',
    '{"domain":"d"',
    '{"other":1}',
    '{"domain":5}',
    '{"domain":"\\ud800"}',
    '{"domain":"\\u006`"}',
    '{"domain":"\\u006g"}',
    '{"hitsAddend":-1}',
    '{"hitsAddend":4294967296}',
    '{"hitsAddend":1.5}',
    '{"hitsAddend":1,"hits_addend":1}',
    '{"descriptors":[null]}',
    '{"descriptors":{}}',
    '{"descriptors":[{"hitsAddend":18446744073709551616}]}',
    '{"descriptors":[{"hitsAddend":-1}]}',
    '{"descriptors":[{"limit":{"unit":"FORTNIGHT"}}]}',
    `{"descriptors":[{"entries":[{"key":"k","valeu":"v"}]}]}`,
  ])('%s is refused with an error message', (json) => {
    const refused = () => codec.requestToWire(Buffer.from(json));
    expect(refused).toThrow(DecodeError);
    expect(refused).toThrow(/\S{3}/);
  });

  test.each([
    ['domain', '{"domain":"d","domain":"d"}'],
    ['domain', '{"domain":null,"domain":"d"}'],
    ['descriptors', '{"descriptors":[],"descriptors":[]}'],
    ['hits_addend', '{"hitsAddend":1,"hits_addend":1}'],
    ['descriptors\\[1\\].entries', '{"descriptors":[{},{"entries":[],"entries":[]}]}'],
    [
      'descriptors\\[0\\].isNegativeHits',
      '{"descriptors":[{"is_negative_hits":false,"isNegativeHits":true}]}',
    ],
    [
      'descriptors\\[0\\].entries\\[0\\].key',
      '{"descriptors":[{"entries":[{"key":"a","value":"b","key":"a"}]}]}',
    ],
    ['unit', '{"descriptors":[{"limit":{"unit":"DAY","unit":"DAY"}}]}'],
    ['requests_per_unit', '{"descriptors":[{"limit":{"requestsPerUnit":1,"requests_per_unit":1}}]}'],
  ])('a duplicate field is refused: %s', (field, json) => {
    expect(() => read(json)).toThrow(new RegExp(`${field} from JSON: set multiple times`));
  });

  test('bytes that are not UTF-8 are refused, and errors do not repeat long strings', () => {
    expect(() => codec.requestToWire(Buffer.from([0x7b, 0xff, 0x7d]))).toThrow(DecodeError);
    try {
      codec.requestToWire(Buffer.from(`{"${'x'.repeat(100_000)}":1}`));
      throw new Error('not refused');
    } catch (error) {
      expect((error as Error).message.length).toBeLessThan(400);
    }
  });

  // Work that is quadratic in the length would take minutes for these bodies, more than the test timeout.
  test('a large hostile body is read or refused', () => {
    for (const hostile of [
      `{"domain":"${'\\"hitsAddend\\":'.repeat(200_000)}"}`,
      `${'"hitsAddend" '.repeat(300_000)}`,
      `{"domain":${'['.repeat(1_000_000)}`,
      `{"hitsAddend":${'9'.repeat(4_000_000)}}`,
    ]) {
      try {
        codec.requestToWire(Buffer.from(hostile));
      } catch (error) {
        expect(error).toBeInstanceOf(DecodeError);
      }
    }
  });
});

describe('a response in protobuf JSON', () => {
  const empty: RateLimitResponse = {
    overallCode: CODE.OK,
    statuses: [],
    responseHeadersToAdd: [],
    requestHeadersToAdd: [],
    rawBody: undefined,
    dynamicMetadata: undefined,
  };
  const write = (response: Partial<RateLimitResponse>) =>
    codec.responseFromWire(wire.encodeResponse({ ...empty, ...response }));

  test('defaults are omitted', () => {
    expect(write({})).toEqual({ text: '{"overallCode":"OK"}', overLimit: false });
    expect(write({ overallCode: CODE.OVER_LIMIT })).toEqual({
      text: '{"overallCode":"OVER_LIMIT"}',
      overLimit: true,
    });
  });

  test('all fields of answers', () => {
    const { text } = write({
      statuses: [
        {
          code: CODE.OK,
          currentLimit: { name: 'n', requestsPerUnit: 10, unit: LIMIT_UNIT.week },
          limitRemaining: 4_294_967_295,
          durationUntilResetSeconds: 57,
        },
        { code: CODE.OK, currentLimit: undefined, limitRemaining: 0, durationUntilResetSeconds: undefined },
      ],
      responseHeadersToAdd: [{ key: 'k', value: 'v' }],
      rawBody: Buffer.from([0xfb, 0xff]),
      dynamicMetadata: { domain: 'd', list: [null, true, 1.5, { deep: 'x' }] },
    });
    expect(JSON.parse(text)).toEqual({
      overallCode: 'OK',
      statuses: [
        {
          code: 'OK',
          currentLimit: { name: 'n', requestsPerUnit: 10, unit: 'WEEK' },
          limitRemaining: 4_294_967_295,
          durationUntilReset: '57s',
        },
        { code: 'OK' },
      ],
      responseHeadersToAdd: [{ key: 'k', value: 'v' }],
      rawBody: '+/8=',
      dynamicMetadata: { domain: 'd', list: [null, true, 1.5, { deep: 'x' }] },
    });
  });
});

test('missing files prevent the start', () => {
  expect(() => createJsonCodec([], 100)).toThrow(/do not define/);
});
