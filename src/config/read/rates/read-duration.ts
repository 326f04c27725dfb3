import { shownStart } from '../../../runtime/shown-address.js';
import type { FieldReader } from '../../yaml/field-reader.js';
import { parseGoDuration } from '../../yaml/go-duration.js';
import { asGoDuration } from './duration-spelling.js';

/**
 * Reads a duration in Go's notation. Returns nanoseconds, or undefined if the key is absent or not a duration. An error
 * suggests a duration of at most `maxHours`; the caller checks the bounds of a valid one.
 */
export function readNanos(reader: FieldReader, key: string, maxHours?: number): bigint | undefined {
  const text = reader.text(key);
  if (text === undefined) return undefined;
  const nanos = parseGoDuration(text);
  if (nanos !== undefined) return nanos;
  const meant = asGoDuration(text, maxHours);
  const remedy =
    meant === undefined ? 'write a number and a unit, such as 150ms, 1s or 1h30m' : `write ${meant}`;
  reader.error(key, `"${shownStart(text)}" is not a valid duration; ${remedy}`);
  return undefined;
}
