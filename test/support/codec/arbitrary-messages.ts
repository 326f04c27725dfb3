import fc from 'fast-check';
import type { RateLimitRequest, RateLimitResponse } from '../../../src/codec/messages.js';
import { anyText } from './any-text.js';

const uint32 = fc.oneof(fc.constantFrom(0, 1, 0xffff_ffff), fc.nat(0xffff_ffff));
const text = fc.oneof(anyText({ maxLength: 40 }), fc.string({ unit: 'binary-ascii', maxLength: 200 }));

/** Generates any request that a client may send. */
export function arbitraryRequest(): fc.Arbitrary<RateLimitRequest> {
  return fc.record({
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
}

/** Generates any response that a server may send. */
export function arbitraryResponse(): fc.Arbitrary<RateLimitResponse> {
  const headers = fc.array(fc.record({ key: text, value: text }), { maxLength: 4 });
  return fc.record({
    overallCode: fc.constantFrom(0, 1, 2),
    statuses: fc.array(
      fc.record({
        code: fc.constantFrom(0, 1, 2),
        currentLimit: fc.option(
          fc.record({ name: text, requestsPerUnit: uint32, unit: fc.constantFrom(0, 1, 2, 3, 4, 5, 6, 7) }),
          { nil: undefined },
        ),
        limitRemaining: uint32,
        durationUntilResetSeconds: fc.option(fc.oneof(fc.nat(20_000), fc.maxSafeNat()), { nil: undefined }),
      }),
      { maxLength: 3 },
    ),
    responseHeadersToAdd: headers,
    requestHeadersToAdd: headers,
    rawBody: fc.option(fc.uint8Array({ minLength: 1, maxLength: 300 }), { nil: undefined }),
    dynamicMetadata: fc.option(
      fc.dictionary(
        fc.string().filter((key) => key !== '__proto__'),
        fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown),
        { noNullPrototype: true },
      ),
      { nil: undefined },
    ),
  });
}
