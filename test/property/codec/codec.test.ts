import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { DecodeError, type RateLimitRequest } from '../../../src/codec/messages.js';
import { createWireCodec } from '../../../src/codec/wire-codec.js';
import { expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { arbitraryRequest, arbitraryResponse } from '../../support/codec/arbitrary-messages.js';
import { type Codec, createReferenceCodec } from '../../support/codec/reference-codec.js';

const reference = createReferenceCodec();
const codecs: readonly (readonly [name: string, codec: Codec])[] = [
  ['reference', reference],
  ['by hand', { ...reference, ...createWireCodec() }],
];
const request = arbitraryRequest();
const response = arbitraryResponse();

/** Decodes, or returns undefined for a DecodeError; anything else is a failure of the test. */
function decodeOrRefuse(codec: Codec, bytes: Uint8Array): RateLimitRequest | undefined {
  try {
    return codec.decodeRequest(bytes);
  } catch (error) {
    expect(error).toBeInstanceOf(DecodeError);
    return undefined;
  }
}

describe.each(codecs)('codec %s', (_name, codec) => {
  test('requests come back as they went', () => {
    fc.assert(
      fc.property(request, (message) => {
        expectEqual(codec.decodeRequest(codec.encodeRequest(message)), message);
      }),
    );
  });

  test('responses come back as they went', () => {
    fc.assert(
      fc.property(response, (message) => {
        const decoded = codec.decodeResponse(codec.encodeResponse(message));
        const rawBody = decoded.rawBody && Uint8Array.from(decoded.rawBody);
        expectEqual({ ...decoded, rawBody }, message);
      }),
    );
  });

  test('a cut message is refused, or is the beginning of the whole', () => {
    fc.assert(
      fc.property(request, fc.double({ min: 0, max: 1, noNaN: true }), (message, share) => {
        const whole = codec.encodeRequest(message);
        const part = decodeOrRefuse(codec, whole.subarray(0, Math.floor(whole.length * share)));
        if (part === undefined) return;
        expectEqual(part.descriptors, message.descriptors.slice(0, part.descriptors.length));
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
        const decoded = decodeOrRefuse(codec, bytes);
        if (decoded !== undefined) expectEqual(codec.decodeRequest(codec.encodeRequest(decoded)), decoded);
      }),
      runs(500),
    );
  });
});
