import { expect, test } from '@jest/globals';
import { WireWriter } from '../../../src/codec/wire-writer.js';

/** Encodes a varint: seven bits for each byte, lowest bits first (Protocol Buffers, "Base 128 Varints"). */
function varintOf(value: bigint): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return [...bytes, Number(rest)];
}

const around = [7, 14, 21, 28, 31, 32, 35, 42, 49, 53].flatMap((bits) => [
  2n ** BigInt(bits) - 1n,
  2n ** BigInt(bits),
  2n ** BigInt(bits) + 1n,
]);
const VALUES = [1n, ...around, 4_000_000_000n, 1_764_087_600n].filter((value) => value < 2n ** 53n);

test.each(VALUES)('%s is encoded in the minimum number of bytes', (value) => {
  const writer = new WireWriter();
  writer.begin(16);
  writer.varint(Number(value));
  expect([...writer.finish()]).toEqual(varintOf(value));
});
