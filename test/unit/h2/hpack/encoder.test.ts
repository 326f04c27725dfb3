import { describe, expect, test } from '@jest/globals';
import { HpackEncoder } from '../../../../src/h2/hpack/encoder.js';
import { HeaderField } from '../../../../src/h2/hpack/header-field.js';
import { decodePairs, encode, newDecoder } from '../../../support/h2/hpack.js';

const OK = new HeaderField(':status', '200');
const CONTENT_TYPE = new HeaderField('content-type', 'application/grpc', true);
const GRPC_OK = new HeaderField('grpc-status', '0', true);

describe('HpackEncoder', () => {
  test('encodes repeated constant fields in one byte each', () => {
    const encoder = new HpackEncoder();
    encode(encoder, [OK, CONTENT_TYPE]);
    encode(encoder, [GRPC_OK]);
    expect(encode(encoder, [OK, CONTENT_TYPE]).toString('hex')).toBe('88bf');
    expect(encode(encoder, [GRPC_OK]).toString('hex')).toBe('be');
  });

  test('writes fields of the static table by their index, whether indexed or not', () => {
    const fields = [
      OK,
      new HeaderField('accept-encoding', 'gzip, deflate'),
      new HeaderField(':status', '404', true),
    ];
    expect(encode(new HpackEncoder(), fields).toString('hex')).toBe('88908d');
  });

  test('distinguishes different field objects with equal text', () => {
    const encoder = new HpackEncoder();
    const decoder = newDecoder();
    const twin = new HeaderField('grpc-status', '0', true);
    for (const fields of [[GRPC_OK], [twin], [GRPC_OK], [twin]]) {
      expect(decodePairs(decoder, encode(encoder, fields))).toEqual([['grpc-status', '0']]);
    }
  });

  test('encodes names and values that are long or empty, with any byte', () => {
    const everyByte = String.fromCharCode(...Array.from({ length: 256 }, (_, byte) => byte));
    const fields = [
      new HeaderField('grpc-message', ''),
      new HeaderField('grpc-message', 'x'.repeat(126)),
      new HeaderField('grpc-message', 'y'.repeat(127)),
      new HeaderField('x-trailer-bin', 'z'.repeat(20_000)),
      new HeaderField(everyByte, everyByte),
    ];
    const pairs = decodePairs(newDecoder(), encode(new HpackEncoder(), fields));
    expect(pairs).toEqual(fields.map(({ name, value }) => [name, value]));
  });

  test('uses only 4096 bytes of a larger table, without an announcement', () => {
    const encoder = new HpackEncoder();
    encoder.setPeerTableBytes(65_536);
    expect(encode(encoder, [OK]).toString('hex')).toBe('88');
    encoder.setPeerTableBytes(4096);
    expect(encode(encoder, [OK]).toString('hex')).toBe('88');
  });

  test('announces the smallest and the last size of a table that shrank and grew between two blocks', () => {
    const encoder = new HpackEncoder();
    encode(encoder, [CONTENT_TYPE, GRPC_OK]);
    encoder.setPeerTableBytes(100);
    encoder.setPeerTableBytes(10);
    encoder.setPeerTableBytes(50);
    // 10, then 50, which takes two octets.
    expect(encode(encoder, []).toString('hex')).toBe('2a3f13');
    expect(encode(encoder, []).toString('hex')).toBe('');
    encoder.setPeerTableBytes(4096);
    expect(encode(encoder, []).toString('hex')).toBe('3fe11f');
  });

  test.each([
    [44, 'be'],
    [43, '000b677270632d7374617475730130'],
  ])('in a table of %i bytes a field of 44 is sent again as %s', (tableBytes, hex) => {
    const encoder = new HpackEncoder();
    encoder.setPeerTableBytes(tableBytes);
    encode(encoder, [GRPC_OK]);
    expect(encode(encoder, [GRPC_OK]).toString('hex')).toBe(hex);
  });

  test('does not evict fields for another field', () => {
    const encoder = new HpackEncoder();
    const decoder = newDecoder();
    const many = Array.from({ length: 300 }, (_, i) => new HeaderField('x-number', String(i), true));
    const pairs = many.map(({ name, value }) => [name, value]);
    expect(decodePairs(decoder, encode(encoder, many))).toEqual(pairs);
    expect(decodePairs(decoder, encode(encoder, many))).toEqual(pairs);
    // 10 entries of 41 bytes and 87 of 42, so the first has index 62 + 96, which takes two octets.
    expect(encode(encoder, many.slice(0, 1)).toString('hex')).toBe('ff1f');
  });
});
