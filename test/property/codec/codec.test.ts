import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { DecodeError, type RateLimitRequest, type RateLimitResponse } from '../../../src/codec/messages.js';
import { createReferenceCodec } from '../../../src/codec/reference-codec.js';

const codec = createReferenceCodec();
const uint32 = fc.oneof(fc.constantFrom(0, 1, 0xffff_ffff), fc.nat(0xffff_ffff));
const text = fc.string({ unit: 'binary', maxLength: 40 });

const request: fc.Arbitrary<RateLimitRequest> = fc.record({
  domain: text,
  descriptors: fc.array(
    fc.record({
      entries: fc.array(fc.record({ key: text, value: text }), { maxLength: 4 }),
      limit: fc.option(fc.record({ requestsPerUnit: uint32, unit: fc.integer({ min: -1, max: 9 }) }), {
        nil: undefined,
      }),
      hitsAddend: fc.option(fc.maxSafeNat(), { nil: undefined }),
      isNegativeHits: fc.boolean(),
    }),
    { maxLength: 4 },
  ),
  hitsAddend: uint32,
});

const headers = fc.array(fc.record({ key: text, value: text }), { maxLength: 4 });
const response: fc.Arbitrary<RateLimitResponse> = fc.record({
  overallCode: fc.constantFrom(0, 1, 2),
  statuses: fc.array(
    fc.record({
      code: fc.constantFrom(0, 1, 2),
      currentLimit: fc.option(
        fc.record({ name: text, requestsPerUnit: uint32, unit: fc.constantFrom(0, 1, 2, 3, 4, 5, 6, 7) }),
        { nil: undefined },
      ),
      limitRemaining: uint32,
      durationUntilResetSeconds: fc.option(fc.nat(2 ** 31), { nil: undefined }),
    }),
    { maxLength: 3 },
  ),
  responseHeadersToAdd: headers,
  requestHeadersToAdd: headers,
  rawBody: fc.option(fc.uint8Array({ minLength: 1, maxLength: 20 }), { nil: undefined }),
  dynamicMetadata: fc.option(
    fc.dictionary(
      fc.string().filter((key) => key !== '__proto__'),
      fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown),
      { noNullPrototype: true },
    ),
    { nil: undefined },
  ),
});

/** Decodes, or returns undefined for a DecodeError; anything else is a failure of the test. */
function decodeOrRefuse(bytes: Uint8Array): RateLimitRequest | undefined {
  try {
    return codec.decodeRequest(bytes);
  } catch (error) {
    expect(error).toBeInstanceOf(DecodeError);
    return undefined;
  }
}

describe('codec', () => {
  test('requests come back as they went', () => {
    fc.assert(
      fc.property(request, (message) => {
        expect(codec.decodeRequest(codec.encodeRequest(message))).toEqual(message);
      }),
    );
  });

  test('responses come back as they went', () => {
    fc.assert(
      fc.property(response, (message) => {
        const decoded = codec.decodeResponse(codec.encodeResponse(message));
        const rawBody = decoded.rawBody && Uint8Array.from(decoded.rawBody);
        expect({ ...decoded, rawBody }).toEqual(message);
      }),
    );
  });

  test('a cut message is refused, or is the beginning of the whole', () => {
    fc.assert(
      fc.property(request, fc.double({ min: 0, max: 1, noNaN: true }), (message, share) => {
        const whole = codec.encodeRequest(message);
        const part = decodeOrRefuse(whole.subarray(0, Math.floor(whole.length * share)));
        if (part === undefined) return;
        expect(part.descriptors).toEqual(message.descriptors.slice(0, part.descriptors.length));
        expect(['', message.domain]).toContain(part.domain);
      }),
    );
  });

  test('whatever bytes come, they are refused or mean one request', () => {
    const mutated = fc
      .tuple(request, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 5 }))
      .map(([message, changes]) => {
        const bytes = Uint8Array.from(codec.encodeRequest(message));
        for (const [position, byte] of changes) if (bytes.length > 0) bytes[position % bytes.length] = byte;
        return bytes;
      });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 60 }), mutated), (bytes) => {
        const decoded = decodeOrRefuse(bytes);
        if (decoded !== undefined) expect(codec.decodeRequest(codec.encodeRequest(decoded))).toEqual(decoded);
      }),
      { numRuns: 500 },
    );
  });
});
