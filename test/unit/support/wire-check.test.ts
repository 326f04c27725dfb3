import { describe, expect, test } from '@jest/globals';
import { isWellFormed, type MessageShape } from '../../support/codec/wire-check.js';

const inner: MessageShape = [undefined, 'varint', 'bytes'];
const shape: MessageShape = [undefined, 'bytes', inner, 'varint'];

describe('isWellFormed', () => {
  test.each([
    ['an empty message', ''],
    ['known fields in any order', '1805 0a0161 1204 0801 1200'],
    ['a varint of ten bytes', '18 ffffffffffffffffff01'],
    ['the highest field number', 'f8ffffff0f 01'],
    ['an unknown group with groups', '7b 83 01 84 01 0801 7c'],
    ['groups 100 deep', '7b'.repeat(100) + '7c'.repeat(100)],
  ])('accepts %s', (_name, hex) => {
    expect(isWellFormed(Buffer.from(hex.replaceAll(' ', ''), 'hex'), shape)).toBe(true);
  });

  test.each([
    ['a truncated tag', '88'],
    ['a truncated varint', '18 80'],
    ['a length without bytes', '0a 01'],
    ['a message that ends inside a field', '12 01 08'],
    ['a string that is longer than its message', '12 03 12 02 61 61'],
    ['a truncated fixed64', '79 01020304050607'],
    ['a truncated fixed32', '7d 010203'],
    ['a field number above 2^29 - 1', '8080808010 01'],
    ['groups 101 deep', '7b'.repeat(101) + '7c'.repeat(101)],
    ['a known field as a group', '0b 0c'],
    ['a known field as a fixed32', '1d 01020304'],
    ['an invalid tag within a group', '7b 00 7c'],
  ])('rejects %s', (_name, hex) => {
    expect(isWellFormed(Buffer.from(hex.replaceAll(' ', ''), 'hex'), shape)).toBe(false);
  });
});
