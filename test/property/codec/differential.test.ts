import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  DecodeError,
  type Descriptor,
  type RateLimitRequest,
  type RequestBounds,
} from '../../../src/codec/messages.js';
import { expectEqual, expectSame } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { arbitraryRequest, arbitraryResponse } from '../../support/codec/arbitrary-messages.js';
import { arbitraryWireRequest, damaged } from '../../support/codec/arbitrary-wire.js';
import { protobufjsReadsOtherwise } from '../../support/codec/protobufjs-differences.js';
import { createReferenceCodec, requestShape } from '../../support/codec/reference-codec.js';
import { isWellFormed } from '../../support/codec/wire-check.js';
import { createWireCodec, type ServiceCodec } from '../../support/codec/wire-codec.js';

const reference = createReferenceCodec();
const wire = createWireCodec();

/**
 * Decodes `bytes` twice, because the second request may come from a cache. Returns 'refused' after a DecodeError; any
 * other error fails the test.
 */
function decoded(
  codec: Pick<ServiceCodec, 'decodeRequest'>,
  bytes: Uint8Array,
): RateLimitRequest | 'refused' {
  try {
    const request = codec.decodeRequest(bytes);
    expectEqual(codec.decodeRequest(bytes), request);
    return request;
  } catch (error) {
    expect(error).toBeInstanceOf(DecodeError);
    return 'refused';
  }
}

function expectTheSame(bytes: Uint8Array): void {
  const ours = decoded(wire, bytes);
  const wellFormed = isWellFormed(bytes, requestShape);
  expectSame(ours === 'refused', !wellFormed);
  if (wellFormed && !protobufjsReadsOtherwise(bytes)) expectEqual(ours, decoded(reference, bytes));
}

/** Returns the entries that are read of a request, and the bound that it exceeds first. */
function withinBounds(
  descriptors: readonly Descriptor[],
  { maxDescriptors, maxEntries }: RequestBounds,
): Pick<RateLimitRequest, 'exceeded'> & { readonly entries: readonly Descriptor['entries'][] } {
  const read: Descriptor['entries'][] = [];
  let entriesLeft = maxEntries;
  for (const { entries } of descriptors) {
    if (read.length === maxDescriptors) return { exceeded: 'descriptors', entries: read };
    read.push(entries.slice(0, entriesLeft));
    if (entries.length > entriesLeft) return { exceeded: 'entries', entries: read };
    entriesLeft -= entries.length;
  }
  return { exceeded: undefined, entries: read };
}

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex');
}

const request = arbitraryRequest();
const encodedRequest = request.map((message) => reference.encodeRequest(message));
const wireRequest = arbitraryWireRequest();

describe('the hand-written codec, compared with @grpc/proto-loader', () => {
  test('decodes every request of a regular client in the same way', () => {
    fc.assert(
      fc.property(encodedRequest, (bytes) => {
        expectEqual(wire.decodeRequest(bytes), reference.decodeRequest(bytes));
      }),
      runs(1000),
    );
  });

  test('decodes well-formed bytes that no client sends in the same way', () => {
    let alike = 0;
    fc.assert(
      fc.property(wireRequest, (bytes) => {
        expectSame(isWellFormed(bytes, requestShape), true);
        if (!protobufjsReadsOtherwise(bytes)) alike++;
        expectTheSame(bytes);
      }),
      runs(2000),
    );
    // Enough cases must be compared.
    expect(alike).toBeGreaterThan(200);
  });

  test('decodes or refuses damaged bytes in the same way', () => {
    fc.assert(fc.property(fc.oneof(damaged(encodedRequest), damaged(wireRequest)), expectTheSame), {
      ...runs(5000),
    });
  });

  test('decodes or refuses random bytes in the same way', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 40 }), expectTheSame), runs(3000));
  });

  test('stops at the bounds', () => {
    const bounds: RequestBounds = { maxBytes: 1000, maxDescriptors: 3, maxEntries: 4 };
    const bounded = createWireCodec(bounds);
    const counts = { descriptors: 0, entries: 0, request_bytes: 0, none: 0 };
    const repeated = fc.tuple(encodedRequest, fc.integer({ min: 1, max: 4 }));
    fc.assert(
      fc.property(repeated, ([bytes, times]) => {
        const message = Buffer.concat(Array<Uint8Array>(times).fill(bytes));
        const whole = reference.decodeRequest(message);
        if (message.length > bounds.maxBytes) {
          const cut = decoded(bounded, message);
          if (cut === 'refused') return;
          counts.request_bytes++;
          expectSame(cut.exceeded, 'request_bytes');
          return;
        }
        const { exceeded, descriptors, domain } = bounded.decodeRequest(message);
        counts[exceeded ?? 'none']++;
        expectSame(domain, whole.domain);
        const expected = withinBounds(whole.descriptors, bounds);
        expectSame(exceeded, expected.exceeded);
        expectEqual(
          descriptors.map(({ entries }) => entries),
          expected.entries,
        );
      }),
      runs(2000),
    );
    for (const [kind, count] of Object.entries(counts)) expect([kind, count > 20]).toEqual([kind, true]);
  });

  test('reads no byte outside the view', () => {
    fc.assert(
      fc.property(fc.oneof(encodedRequest, damaged(wireRequest)), fc.nat(255), (bytes, around) => {
        const larger = new Uint8Array(bytes.length + 32).fill(around);
        larger.set(bytes, 16);
        expectEqual(decoded(wire, larger.subarray(16, 16 + bytes.length)), decoded(wire, bytes));
      }),
    );
  });

  test('merges two concatenated requests: appends to lists, and the later scalar applies', () => {
    fc.assert(
      fc.property(request, request, (one, other) => {
        const bytes = Buffer.concat([reference.encodeRequest(one), reference.encodeRequest(other)]);
        expectEqual(wire.decodeRequest(bytes), {
          domain: other.domain || one.domain,
          descriptors: [...one.descriptors, ...other.descriptors],
          hitsAddend: other.hitsAddend || one.hitsAddend,
        });
      }),
    );
  });

  test('encodes responses that decode to the same values', () => {
    fc.assert(
      fc.property(arbitraryResponse(), (message) => {
        const ours = reference.decodeResponse(wire.encodeResponse(message));
        const theirs = reference.decodeResponse(reference.encodeResponse(message));
        expectEqual(ours, theirs);
      }),
      runs(1000),
    );
  });

  test('does not change a response when it encodes other responses', () => {
    fc.assert(
      fc.property(fc.array(arbitraryResponse(), { minLength: 2, maxLength: 20 }), (messages) => {
        const written = messages.map((message) => wire.encodeResponse(message));
        const copies = written.map((bytes) => Buffer.from(bytes));
        for (let i = 0; i < 200; i++) wire.encodeResponse(messages[i % messages.length] as never);
        expectEqual(
          written.map((bytes) => Buffer.from(bytes)),
          copies,
        );
      }),
      { numRuns: 30 },
    );
  });
});

describe('if protobufjs differs, the hand-written codec follows the protobuf specification', () => {
  function descriptorOf(codec: Pick<ServiceCodec, 'decodeRequest'>, body: string): Descriptor | undefined {
    const bytes = hex(body);
    return codec.decodeRequest(Buffer.concat([Buffer.of(0x12, bytes.length), bytes])).descriptors[0];
  }

  test('merges a repeated limit', () => {
    // First requests_per_unit 7 and unit 3, then unit 2.
    const body = '12 04 0807 1003  12 02 1002';
    expectEqual(descriptorOf(wire, body)?.limit, { requestsPerUnit: 7, unit: 2 });
    expectEqual(descriptorOf(wire, '12 04 0807 1003  12 02 0809')?.limit, { requestsPerUnit: 9, unit: 3 });
    expectEqual(descriptorOf(reference, body)?.limit, { requestsPerUnit: 0, unit: 2 });
  });

  test('merges a repeated hits_addend', () => {
    const body = '1a 02 0805  1a 00';
    expectSame(descriptorOf(wire, body)?.hitsAddend, 5);
    expectSame(descriptorOf(reference, body)?.hitsAddend, 0);
  });

  test('reads a uint32 of more than five bytes completely, and keeps its low bits', () => {
    // hits_addend 2^35 + 5 in six bytes, then domain `a`, and five unknown bytes that protobufjs skips.
    const bytes = hex('18 858080808001 0a 01 61 7a 02 0000');
    expectEqual(wire.decodeRequest(bytes), { domain: 'a', descriptors: [], hitsAddend: 5 });
    expect(decoded(reference, bytes)).not.toEqual(wire.decodeRequest(bytes));
  });

  test('reads a bool whose 32 low bits are 0 as true', () => {
    expectSame(descriptorOf(wire, '20 8080808010')?.isNegativeHits, true);
    expectSame(descriptorOf(reference, '20 8080808010')?.isNegativeHits, false);
  });
});
