import { isUtf8 } from 'node:buffer';
import { MAX_INT64, type PlainValue, readPlain } from './yaml-scalar.js';

/**
 * The value of a scalar with an explicit tag, with an optional warning, or the reason why the value does not match the
 * tag.
 */
export type TaggedScalar =
  | { readonly text: string; readonly plain: boolean; readonly tag?: string; readonly warning?: string }
  | { readonly tagMismatch: string };

const CORE = 'tag:yaml.org,2002:';
/** Tags that the value must match, with the word for the expected value. */
const CORE_KINDS = {
  int: { kind: 'integer', tagMismatch: 'a whole number' },
  float: { kind: 'float', tagMismatch: 'a number' },
  bool: { kind: 'boolean', tagMismatch: 'true or false' },
  null: { kind: 'null', tagMismatch: 'null' },
} as const satisfies Readonly<
  Record<string, { readonly kind: PlainValue['kind']; readonly tagMismatch: string }>
>;

const NOT_UTF8 =
  'this !!binary value is not UTF-8 text; the value matches any request with non-UTF-8 bytes in the same positions';

/**
 * Reads a scalar with an explicit tag as gopkg.in/yaml.v2 does for envoyproxy/ratelimit. Quotes have no effect, the
 * value must match a core tag, `!!binary` is decoded, and a value with an unknown tag is a string. `isPlain`: without
 * quotes.
 */
export function readTagged(tag: string, text: string, isPlain: boolean): TaggedScalar {
  const name = tag.startsWith(CORE) ? tag.slice(CORE.length) : '';
  if (text === '<<' && (name === 'merge' || (tag === '!' && isPlain))) return { text, plain: true };
  if (name === 'binary') return readBinary(text);
  if (name === 'timestamp') return isTimestamp(text) ? { text, plain: false } : tagMismatch(name, 'a date');
  if (!isCoreKind(name)) return { text, plain: false };
  const expected = CORE_KINDS[name];
  const value = readPlain(text);
  if (value.kind === expected.kind) return { text, plain: true, tag: `!!${name}` };
  if (name === 'float' && value.kind === 'integer' && value.value <= MAX_INT64) {
    return { text: `${Number(value.value)}.0`, plain: true, tag: '!!float' };
  }
  return tagMismatch(name, expected.tagMismatch);
}

function isCoreKind(name: string): name is keyof typeof CORE_KINDS {
  return Object.hasOwn(CORE_KINDS, name);
}

/** Returns the error for a value that does not match. The text does not repeat the value, which may be secret. */
function tagMismatch(name: string, expected: string): TaggedScalar {
  return {
    tagMismatch: `the value has the tag !!${name} and is not ${expected}; correct the value, or remove the tag`,
  };
}

function readBinary(text: string): TaggedScalar {
  const digits = text.replaceAll(/[\r\n]/g, '');
  if (digits.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(digits))
    return tagMismatch('binary', 'base64');
  const bytes = Buffer.from(digits, 'base64');
  const decoded = { text: bytes.toString('utf8'), plain: false };
  return isUtf8(bytes) ? decoded : { ...decoded, warning: NOT_UTF8 };
}

const DATE = /^(\d{4})-(\d{1,2})-(\d{1,2})$/;
const TIME = /^(\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d+)?$/;
const ZONE = /(?:Z|[+-](\d\d):(\d\d))$/;

/**
 * Tells whether the text has a form that yaml.v2 knows: a date, a date and time separated by a space, or a date, time
 * and zone separated by T or t.
 */
function isTimestamp(text: string): boolean {
  const [date = '', behind] = text.split(/[Tt ]/, 2);
  if (!isDate(date)) return false;
  if (behind === undefined) return text === date;
  if (text.length !== date.length + 1 + behind.length) return false;
  if (text[date.length] === ' ') return isTime(behind);
  const zone = ZONE.exec(behind);
  if (zone === null || Number(zone[1] ?? 0) > 24 || Number(zone[2] ?? 0) > 60) return false;
  return isTime(behind.slice(0, zone.index));
}

function isDate(text: string): boolean {
  const [, year, month, day] = DATE.exec(text) ?? [];
  if (year === undefined || Number(month) < 1 || Number(month) > 12 || Number(day) < 1) return false;
  const days = new Date(0);
  // Day 0 is the last day of the month before. Unlike Date.UTC, setUTCFullYear does not map years below 100 to 1900.
  days.setUTCFullYear(Number(year), Number(month), 0);
  return Number(day) <= days.getUTCDate();
}

function isTime(text: string): boolean {
  const [, hour, minute, second] = TIME.exec(text) ?? [];
  return hour !== undefined && Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60;
}
