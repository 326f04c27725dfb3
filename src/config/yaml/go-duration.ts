/** Nanoseconds per unit of Go's `time.ParseDuration`. */
const UNIT_NANOS: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1_000n],
  ['\u00b5s', 1_000n], // micro sign
  ['\u03bcs', 1_000n], // Greek letter mu
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
]);
const MAX_INT64 = 2n ** 63n - 1n;
const PART = /^(\d*)(?:\.(\d*))?([a-z\u00b5\u03bc]+)/;

/**
 * Reads a duration in Go's notation (https://pkg.go.dev/time#ParseDuration): `150ms`, `1h30m`, `1.5s`, `0`. Returns
 * exact nanoseconds, or undefined if the text is not a duration or overflows Go's 64 bits.
 */
export function parseGoDuration(text: string): bigint | undefined {
  const negative = text.startsWith('-');
  let rest = negative || text.startsWith('+') ? text.slice(1) : text;
  if (rest === '0') return 0n;
  if (rest === '' || rest.length > 200) return undefined;
  let nanos = 0n;
  while (rest !== '') {
    const match = PART.exec(rest);
    if (match === null) return undefined;
    const [whole, digits = '', fraction = '', unit = ''] = match;
    const factor = UNIT_NANOS.get(unit);
    if (factor === undefined || (digits === '' && fraction === '')) return undefined;
    nanos += BigInt(digits === '' ? '0' : digits) * factor;
    if (fraction !== '') nanos += (BigInt(fraction) * factor) / 10n ** BigInt(fraction.length);
    if (nanos > MAX_INT64) return undefined;
    rest = rest.slice(whole.length);
  }
  return negative ? -nanos : nanos;
}
