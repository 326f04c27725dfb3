import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { HpackEncoder } from '../../../src/h2/hpack/encoder.js';
import { HeaderField } from '../../../src/h2/hpack/header-field.js';
import { expectAtMost, expectEqual, expectSame } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import {
  decodePairs,
  encode,
  HpackJsDecoder,
  HpackJsEncoder,
  type HpackJsField,
  newDecoder,
  type Pair,
} from '../../support/h2/hpack.js';

/** One character for each byte. */
const latin1 = (maxLength: number) =>
  fc.uint8Array({ maxLength }).map((bytes) => Buffer.from(bytes).toString('latin1'));
// A small pool, so that fields recur. hpack.js stores names in an object, so names of Object.prototype are excluded.
const pair: fc.Arbitrary<Pair> = fc.oneof(
  fc.tuple(
    fc.constantFrom(':status', ':path', 'content-type', 'grpc-status', 'x-a', 'x-b'),
    fc.constantFrom('', '200', '404', '0', '/', 'application/grpc'),
  ),
  fc.tuple(
    latin1(6).map((name) => `x-${name}`),
    latin1(60),
  ),
);

/** A block of fields, or a new SETTINGS_HEADER_TABLE_SIZE before the next block. */
type Step = { readonly fields: readonly HeaderField[] } | { readonly tableBytes: number };

const known = fc
  .uniqueArray(fc.tuple(pair, fc.boolean()), { minLength: 1, maxLength: 12 })
  .map((pairs) => pairs.map(([[name, value], indexed]) => new HeaderField(name, value, indexed)));

function steps(fields: readonly HeaderField[], largestTable: number): fc.Arbitrary<Step[]> {
  const list = fc.array(fc.constantFrom(...fields), { maxLength: 8 });
  // The encoder remembers short lists of indexed fields by identity, so some of them are sent again.
  const indexed = fields.filter((field) => field.indexed);
  const short = indexed.length === 0 ? list : fc.array(fc.constantFrom(...indexed), { maxLength: 2 });
  const lists = fc.array(short, { minLength: 2, maxLength: 4 });
  return lists.chain((recurring) => stepsOf(fc.oneof(list, fc.constantFrom(...recurring)), largestTable));
}

function stepsOf(list: fc.Arbitrary<HeaderField[]>, largestTable: number): fc.Arbitrary<Step[]> {
  const block = list.map((fields) => ({ fields }));
  const resize = fc.record({ tableBytes: fc.oneof(fc.nat(200), fc.nat(largestTable)) });
  return fc.array(fc.oneof({ weight: 4, arbitrary: block }, { weight: 1, arbitrary: resize }), {
    maxLength: 16,
  });
}

const pairsOfFields = (fields: readonly HeaderField[]): Pair[] =>
  fields.map(({ name, value }) => [name, value]);

describe('HPACK', () => {
  test('the decoder reads the output of the encoder for all table sizes', () => {
    fc.assert(
      fc.property(
        known.chain((fields) => steps(fields, 20_000)),
        (sequence) => {
          const encoder = new HpackEncoder();
          const decoder = newDecoder({ maxTableBytes: 20_000 });
          for (const step of sequence) {
            if ('tableBytes' in step) encoder.setPeerTableBytes(step.tableBytes);
            else expectEqual(decodePairs(decoder, encode(encoder, step.fields)), pairsOfFields(step.fields));
          }
        },
      ),
      runs(500),
    );
  });

  test('hpack.js reads the output of the encoder', () => {
    fc.assert(
      fc.property(
        known.chain((fields) => steps(fields, 4096)),
        (sequence) => {
          const encoder = new HpackEncoder();
          const decoder = new HpackJsDecoder();
          for (const step of sequence) {
            if ('tableBytes' in step) encoder.setPeerTableBytes(step.tableBytes);
            else expectEqual(decoder.decode(encode(encoder, step.fields)), pairsOfFields(step.fields));
          }
        },
      ),
      runs(200),
    );
  });

  test('the decoder reads the output of hpack.js', () => {
    const field: fc.Arbitrary<HpackJsField> = fc
      .tuple(pair, fc.boolean(), fc.boolean(), fc.boolean())
      .map(([[name, value], huffman, incremental, neverIndex]) => ({
        name,
        value,
        huffman,
        incremental,
        neverIndex,
      }));
    const block = fc.record({ fields: fc.array(field, { maxLength: 8 }), reset: fc.boolean() });
    fc.assert(
      fc.property(
        fc.constantFrom(64, 128, 300, 4096),
        fc.array(block, { maxLength: 12 }),
        (tableBytes, blocks) => {
          const encoder = new HpackJsEncoder(tableBytes);
          const decoder = newDecoder({ maxTableBytes: tableBytes });
          decodePairs(decoder, sizeUpdate(tableBytes));
          for (const { fields, reset } of blocks) {
            // The size updates after a reset precede the next block.
            if (reset) encoder.reset();
            expectEqual(
              decodePairs(decoder, encoder.encode(fields)),
              fields.map(({ name, value }) => [name, value]),
            );
          }
        },
      ),
      runs(300),
    );
  });

  test('any bytes are decoded or refused, and decoded to the same fields by a decoder with the same history', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 }), (blocks) => {
        const one = newDecoder({ maxListBytes: 200 });
        const other = newDecoder({ maxListBytes: 200 });
        for (const block of blocks) {
          const list = one.decode(block, 0, block.length);
          const again = other.decode(block, 0, block.length);
          expectEqual(again, list);
          if (list === undefined) {
            expect(one.failure).not.toBe('');
            return;
          }
          const size = list.fields.reduce((sum, text) => sum + text.length + 16, 0);
          expectAtMost(size, 200);
          if (!list.tooLarge) expectSame(list.size, size);
        }
      }),
      runs(2000),
    );
  });
});

/** Returns a block that sets the table size to `tableBytes`. */
function sizeUpdate(tableBytes: number): Buffer {
  const encoder = new HpackEncoder();
  encoder.setPeerTableBytes(tableBytes);
  return encode(encoder, []);
}
