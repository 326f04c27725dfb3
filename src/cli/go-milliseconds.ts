import { parseGoDuration } from '../config/yaml/go-duration.js';
import { printableLine } from '../printable.js';

/**
 * Converts the value of an option, a duration in Go's syntax, to milliseconds. Returns an error message if the value is
 * invalid or not between 1 and `maxMs` milliseconds.
 */
export function goMilliseconds(option: string, text: string, maxMs: number): number | string {
  const nanos = parseGoDuration(text);
  const milliseconds = nanos === undefined ? Number.NaN : Number(nanos) / 1e6;
  if (milliseconds >= 1 && milliseconds <= maxMs) return Math.round(milliseconds);
  return printableLine(
    `${option} "${text}" is not a duration from 1ms to ${maxMs / 1000}s, such as 500ms or 2s`,
  );
}
