import { parseGoDuration } from '../config/yaml/go-duration.js';
import { printableLine } from '../printable.js';

/** The duration, in Go's syntax, of an option in milliseconds; a sentence where it is none from 1 ms to `most`. */
export function goMilliseconds(option: string, text: string, most: number): number | string {
  const nanos = parseGoDuration(text);
  const milliseconds = nanos === undefined ? Number.NaN : Number(nanos) / 1e6;
  if (milliseconds >= 1 && milliseconds <= most) return Math.round(milliseconds);
  return printableLine(
    `${option} "${text}" is not a duration from 1ms to ${most / 1000}s, such as 500ms or 2s`,
  );
}
