/**
 * A number of protobuf that begins at `from`, of up to 64 bits, rounded beyond 2^53, and where it ends; undefined where
 * it does not, within ten bytes or those that there are.
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
