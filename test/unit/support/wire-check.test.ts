import { describe, expect, test } from '@jest/globals';
import { isWellFormed, type MessageShape } from '../../support/codec/wire-check.js';

const inner: MessageShape = [undefined, 'varint', 'bytes'];
const shape: MessageShape = [undefined, 'bytes', inner, 'varint'];

describe('isWellFormed', () => {
  test.each([
    ['nothing', ''],
    ['known fields in any order', '1805 0a0161 1204 0801 1200'],
    ['a varint of ten bytes', '18 ffffffffffffffffff01'],
    ['the highest field number', 'f8ffffff0f 01'],
    ['an unknown group with groups', '7b 83 01 84 01 0801 7c'],
    ['groups 100 deep', '7b'.repeat(100) + '7c'.repeat(100)],
  ])('takes %s', (_name, hex) => {
    expect(isWellFormed(Buffer.from(hex.replaceAll(' ', ''), 'hex'), shape)).toBe(true);
  });

  test.each([
    ['a tag cut short', '88'],
    ['a varint cut short', '18 80'],
    ['a length without bytes', '0a 01'],
    ['a message that ends inside a field', '12 01 08'],
    ['a string that leaves its message', '12 03 12 02 61 61'],
    ['a fixed64 cut short', '79 01020304050607'],
    ['a fixed32 cut short', '7d 010203'],
    ['a field number above 2^29 - 1', '8080808010 01'],
    ['groups 101 deep', '7b'.repeat(101) + '7c'.repeat(101)],
    ['a known field as group', '0b 0c'],
    ['a known field as fixed32', '1d 01020304'],
    ['a bad tag within a group', '7b 00 7c'],
  ])('refuses %s', (_name, hex) => {
    expect(isWellFormed(Buffer.from(hex.replaceAll(' ', ''), 'hex'), shape)).toBe(false);
  });
});
