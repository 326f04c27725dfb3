import { describe, expect, jest, test } from '@jest/globals';
import { requestFromJson, responseToJson } from '../../../src/codec/json-messages.js';
import {
  CODE,
  DEFAULT_BOUNDS,
  DecodeError,
  LIMIT_UNIT,
  type RateLimitResponse,
} from '../../../src/codec/messages.js';

const read = (json: string) => requestFromJson(Buffer.from(json), DEFAULT_BOUNDS);

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

  test('is parsed only once if a field is wrong', () => {
    const parse = jest.spyOn(JSON, 'parse');
    try {
      expect(() => read('{"domain":"d","unknown":1}')).toThrow(DecodeError);
      expect(parse).toHaveBeenCalledTimes(1);
    } finally {
      parse.mockRestore();
    }
  });

  describe('above a bound', () => {
    const bounds = { ...DEFAULT_BOUNDS, maxDescriptors: 3, maxEntries: 4 };
    const readBounded = (descriptors: unknown) =>
      requestFromJson(Buffer.from(JSON.stringify({ descriptors, domain: 'd', hitsAddend: 2 })), bounds);
    const entries = (count: number) => ({
      entries: Array.from({ length: count }, (_, n) => ({ key: `k${n}`, value: 'v' })),
    });

    test('is read up to the bound', () => {
      const lengths = (descriptors: unknown) => {
        const { domain, hitsAddend, exceeded, ...request } = readBounded(descriptors);
        expect([domain, hitsAddend]).toEqual(['d', 2]);
        return [exceeded, ...request.descriptors.map((one) => one.entries.length)];
      };
      expect(lengths([entries(2), entries(0), entries(2)])).toEqual([undefined, 2, 0, 2]);
      expect(lengths([{}, {}, {}, {}])).toEqual(['descriptors', 0, 0, 0]);
      expect(lengths([entries(1), entries(4), entries(1)])).toEqual(['entries', 1, 3]);
      expect(lengths([entries(5)])).toEqual(['entries', 4]);
      expect(lengths([entries(4), entries(1), {}, {}])).toEqual(['entries', 4, 0]);
      expect(lengths([{}, {}, entries(4), entries(1)])).toEqual(['descriptors', 0, 0, 4]);
    });

    test('is not read beyond the bound', () => {
      expect(readBounded([{}, {}, {}, 13]).exceeded).toBe('descriptors');
      expect(readBounded([{ entries: [...entries(4).entries, 13] }, 13]).exceeded).toBe('entries');
      expect(() => readBounded([{}, {}, 13, {}])).toThrow(/RateLimitDescriptor from JSON: 13/);
    });
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
    const refused = () => read(json);
    expect(refused).toThrow(DecodeError);
    expect(refused).toThrow(/\S{3}/);
  });

  test.each([
    ['domain', '{"domain":"d","domain":"d"}'],
    ['domain', '{"domain":null,"domain":"d"}'],
    ['domain', '{"domain":"d","\\u0064omain":"d"}'],
    ['descriptors', '{"descriptors":[],"descriptors":[]}'],
    ['hits_addend', '{"hitsAddend":1,"hits_addend":1}'],
    ['entries', '{"descriptors":[{},{"entries":[],"entries":[]}]}'],
    ['is_negative_hits', '{"descriptors":[{"is_negative_hits":false,"isNegativeHits":true}]}'],
    ['key', '{"descriptors":[{"entries":[{"key":"a","value":"b","key":"a"}]}]}'],
    ['unit', '{"descriptors":[{"limit":{"unit":"DAY","unit":"DAY"}}]}'],
    ['requests_per_unit', '{"descriptors":[{"limit":{"requestsPerUnit":1,"requests_per_unit":1}}]}'],
  ])('a duplicate field is refused: %s', (field, json) => {
    expect(() => read(json)).toThrow(
      new RegExp(`${field} from JSON: set multiple times|duplicate object key "${field}"`),
    );
  });

  test.each([
    ['{"domian":"d"}', 'RateLimitRequest from JSON: key "domian" is unknown'],
    ['{"__proto__":{}}', 'RateLimitRequest from JSON: key "__proto__" is unknown'],
    ['{"descriptors":[{"key":"k"}]}', 'RateLimitDescriptor from JSON: key "key" is unknown'],
    ['{"descriptors":[{"limit":{"value":1}}]}', 'RateLimitOverride from JSON: key "value" is unknown'],
    [
      '{"descriptors":[{},{"entries":[{},{"key":["k"]}]}]}',
      'RateLimitDescriptor.Entry.key from JSON: expected string, got Array(1)',
    ],
    [
      '{"descriptors":[{"limit":{"unit":"FORTNIGHT"}}]}',
      'enum envoy.type.v3.RateLimitUnit from JSON: "FORTNIGHT"',
    ],
    [
      '{"descriptors":[{"entries":[{"key":"k"}],"limit":{"unit":true}}]}',
      'enum envoy.type.v3.RateLimitUnit from JSON: true',
    ],
    [`{"descriptors":[{"hitsAddend":${'9'.repeat(101)}}]}`, 'expected bigint (uint64): 999'],
  ])('an error names the field: %s', (json, message) => {
    expect(() => read(json)).toThrow(message);
  });

  test('bytes that are not UTF-8 are refused, and errors do not repeat long strings', () => {
    expect(() => requestFromJson(Buffer.from([0x7b, 0xff, 0x7d]), DEFAULT_BOUNDS)).toThrow(DecodeError);
    for (const json of [`{"${'x'.repeat(60_000)}":1}`, `{"domain":"${'x'.repeat(60_000)}`]) {
      expect(() => read(json)).toThrow(
        expect.objectContaining({ message: expect.stringMatching(/^.{10,400}$/) }),
      );
    }
  });

  test.each([
    ['lists', '['.repeat(65_536)],
    ['objects', '{"limit":'.repeat(7000)],
    ['lists that are closed', `{"descriptors":${'['.repeat(32_000)}${']'.repeat(32_000)}}`],
  ])('deep nesting is refused: %s', (_what, json) => {
    expect(() => read(json)).toThrow('the body has more than 16 levels of nesting');
  });

  test('brackets in strings are no nesting', () => {
    const domain = '[{"\\'.repeat(20);
    expect(read(JSON.stringify({ domain, descriptors: [] }))).toMatchObject({ domain });
  });

  test.each([
    ['names in a string', `{"domain":"${'\\"hitsAddend\\":'.repeat(3000)}"}`],
    ['names without values', '"hitsAddend" '.repeat(5000)],
    ['a number with spaces before it', `{"hitsAddend":${' '.repeat(60_000)}1}`],
    ['a long number', `{"hitsAddend":${'9'.repeat(60_000)}}`],
    ['backslashes', `{"domain":"${'\\'.repeat(60_001)}`],
  ])('a hostile body is read or refused: %s', (_what, json) => {
    try {
      expect(read(json)).toMatchObject({ descriptors: [] });
    } catch (error) {
      expect(error).toBeInstanceOf(DecodeError);
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
  const write = (response: Partial<RateLimitResponse>) => responseToJson({ ...empty, ...response });

  test('defaults are omitted', () => {
    expect(write({})).toBe('{"overallCode":"OK"}');
    expect(write({ overallCode: CODE.OVER_LIMIT })).toBe('{"overallCode":"OVER_LIMIT"}');
  });

  test('all fields of answers', () => {
    const text = write({
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
