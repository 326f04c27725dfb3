import { Metadata } from '@grpc/grpc-js';
import { describe, expect, test } from '@jest/globals';
import { toFields, toMetadata } from '../../../../src/grpc/h2-transport/metadata-fields.js';

describe('toFields', () => {
  test('sends binary values without padding', () => {
    const metadata = new Metadata();
    for (const length of [0, 1, 2, 3]) metadata.add('x-bytes-bin', Buffer.alloc(length, 0xff));
    metadata.add('x-text', 'a=');
    expect(toFields(metadata).map(({ name, value }) => [name, value])).toEqual([
      ['x-bytes-bin', ''],
      ['x-bytes-bin', '/w'],
      ['x-bytes-bin', '//8'],
      ['x-bytes-bin', '////'],
      ['x-text', 'a='],
    ]);
  });

  test('gives back what toMetadata read, with and without padding', () => {
    for (const value of ['/w', '/w==']) {
      const metadata = toMetadata(['x-bytes-bin', value, 'grpc-timeout', '1S', 'x-text', 'b']);
      expect(metadata.get('x-bytes-bin')).toEqual([Buffer.of(0xff)]);
      expect(toFields(metadata).map(({ name, value }) => [name, value])).toEqual([
        ['x-bytes-bin', '/w'],
        ['x-text', 'b'],
      ]);
    }
  });
});
