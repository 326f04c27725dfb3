/**
 * Milliseconds for each unit of `grpc-timeout`, except those below a millisecond
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).
 */
const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
};

/** Maximum delay of a Node.js timer in milliseconds, 24.8 days. */
const MAX_TIMER_MS = 2_147_483_647;

/**
 * Parses a `grpc-timeout` header. Returns microseconds, rounded up, Infinity if it is longer than any timer, or NaN if
 * it is malformed. A valid value has at most eight digits and a unit.
 */
export function timeoutMicros(header: string): number {
  const digits = header.length - 1;
  if (digits < 1 || digits > 8) return Number.NaN;
  let count = 0;
  for (let index = 0; index < digits; index++) {
    const digit = header.charCodeAt(index) - 0x30;
    if (digit < 0 || digit > 9) return Number.NaN;
    count = count * 10 + digit;
  }
  const unit = header[digits] as string;
  if (unit === 'n') return Math.ceil(count / 1000);
  if (unit === 'u') return count;
  const milliseconds = count * (UNIT_MS[unit] ?? Number.NaN);
  return milliseconds > MAX_TIMER_MS ? Number.POSITIVE_INFINITY : milliseconds * 1000;
}
