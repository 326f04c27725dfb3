/**
 * Reads a protobuf varint of up to 64 bits at `from`. Returns its value, rounded above 2^53, and the position of its
 * end. Returns undefined if it does not end within ten bytes or within the input.
 */
export function readVarint(
  bytes: Uint8Array,
  from: number,
): readonly [value: number, end: number] | undefined {
  let value = 0;
  for (let i = 0; i < 10; i++) {
    const byte = bytes[from + i];
    if (byte === undefined) return undefined;
    value += (byte % 128) * 128 ** i;
    if (byte < 128) return [value, from + i + 1];
  }
  return undefined;
}
