import { describe, test } from '@jest/globals';
import fc from 'fast-check';
import { textSteps } from '../../../src/codec/text-steps.js';
import { runToCompletion } from '../../../src/runtime/turns.js';
import { expectSame } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { anyText } from '../../support/codec/any-text.js';

/** Bytes similar to UTF-8: whole characters, truncated characters, single continuation bytes, and arbitrary bytes. */
const nearlyText = fc
  .array(
    fc.oneof(
      anyText({ maxLength: 5 }).map((text) => Buffer.from(text)),
      fc
        .tuple(anyText({ minLength: 1, maxLength: 2 }), fc.integer({ min: 1, max: 3 }))
        .map(([text, cut]) => Buffer.from(text).subarray(0, -cut)),
      fc.uint8Array({ min: 0x80, max: 0xbf, maxLength: 9 }),
      fc.constantFrom([0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xc0, 0x80], [0xef, 0xbb, 0xbf]),
      fc.uint8Array({ maxLength: 5 }),
    ),
    { maxLength: 30 },
  )
  .map((parts) => Buffer.concat(parts.map((part) => Uint8Array.from(part))));

describe('a text that is decoded in pieces', () => {
  test('equals the text decoded at once, for any split', () => {
    fc.assert(
      fc.property(nearlyText, fc.integer({ min: 4, max: 20 }), fc.nat(5), (bytes, pieceBytes, around) => {
        const larger = Buffer.concat([Buffer.alloc(around, 0xe2), bytes, Buffer.alloc(around, 0x80)]);
        for (const view of [larger, new Uint8Array(larger)]) {
          const text = runToCompletion(textSteps(view, around, around + bytes.length, pieceBytes));
          expectSame(text, bytes.toString());
        }
      }),
      runs(5000),
    );
  });
});
