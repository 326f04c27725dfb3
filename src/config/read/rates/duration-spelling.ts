import { UNIT_MICROS, type WindowUnit } from '../../../limiter/window-unit.js';
import { parseGoDuration } from '../../yaml/go-duration.js';

/** A number of units: `minute` and 5 for 5 minutes. */
interface UnitCount {
  readonly unit: WindowUnit;
  readonly count: number;
}

/** Spellings of units. `m` means minutes, as in Go. */
const SPELLINGS: ReadonlyMap<string, WindowUnit> = new Map(
  (
    [
      ['second', 's sec secs second seconds'],
      ['minute', 'm min mins minute minutes'],
      ['hour', 'h hr hrs hour hours'],
      ['day', 'd day days'],
      ['week', 'w wk wks week weeks'],
      ['month', 'mo month months'],
      ['year', 'y yr yrs year years'],
    ] as const
  ).flatMap(([unit, words]) => words.split(' ').map((word) => [word, unit] as const)),
);

/** The next larger unit of each unit, and its length in the smaller unit. */
const NEXT_LARGER_UNIT: ReadonlyMap<WindowUnit, readonly [larger: WindowUnit, of: number]> = new Map([
  ['second', ['minute', 60]],
  ['minute', ['hour', 60]],
  ['hour', ['day', 24]],
]);

/**
 * Reads a length of time in everyday notation: `5m`, `300s`, `1h30m`, `2 days` or `min`. Returns it in the largest
 * unit, up to days, that divides it. Returns undefined for other text or a fraction of a second.
 */
function readLength(text: string): UnitCount | undefined {
  const [, digits = '', word = ''] = /^(\d{0,9}) *([a-z]{1,7})$/i.exec(text.trim()) ?? [];
  const spelled = SPELLINGS.get(word.toLowerCase());
  if (spelled !== undefined) return inLargest({ unit: spelled, count: digits === '' ? 1 : Number(digits) });
  const nanos = parseGoDuration(text) ?? 0n;
  if (nanos % 1_000_000_000n !== 0n) return undefined;
  return inLargest({ unit: 'second', count: Number(nanos / 1_000_000_000n) });
}

function inLargest({ unit, count }: UnitCount): UnitCount | undefined {
  if (count < 1) return undefined;
  const [larger, of] = NEXT_LARGER_UNIT.get(unit) ?? [];
  return larger === undefined || of === undefined || count % of !== 0
    ? { unit, count }
    : inLargest({ unit: larger, count: count / of });
}

/** Returns the correct keys for a `unit` that is a length of time: `unit: minute, unit_multiplier: 5` for `5m`. */
export function asUnit(text: string): string | undefined {
  const length = readLength(text);
  if (length === undefined) return undefined;
  const { unit, count } = length;
  return count === 1 ? `unit: ${unit}` : `unit: ${unit}, unit_multiplier: ${count}`;
}

/**
 * Returns Go's notation for a length of time in another notation: `24h` for `1d`, `5m` for `5 minutes`. For a longer
 * time than `maxHours`, returns `at most` and the maximum.
 */
export function asGoDuration(text: string, maxHours: number): string | undefined {
  const length = readLength(/^\d+$/.test(text) ? `${text}s` : text);
  if (length === undefined) return undefined;
  const seconds = (UNIT_MICROS[length.unit] / 1_000_000) * length.count;
  if (seconds > 3600 * maxHours) return `at most ${maxHours}h`;
  if (seconds % 3600 === 0) return `${seconds / 3600}h`;
  return seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`;
}
