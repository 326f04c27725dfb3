import { WINDOW_UNITS, type WindowUnit } from '../../limiter/window-unit.js';
import { describeMicros } from '../../policy/describe.js';
import { nearest } from '../../runtime/nearest-name.js';
import { safePrefix } from '../../runtime/shown-address.js';
import { parseGoDuration } from '../yaml/go-duration.js';
import { readPlain, type YamlScalar } from '../yaml/yaml-value.js';

/*
 * The kinds of single values, and the only code that reads them. A literal in a limit, a cell of a table of plans, a
 * default and a value of a plan have the same kinds, so they have the same values and the same errors.
 */

/** A kind of single values, with its bounds. */
export type ScalarKind =
  /** Any text, also one that YAML reads as a number. */
  | { readonly kind: 'text' }
  | { readonly kind: 'flag' }
  | CountKind
  | NumberKind
  | DurationKind
  | { readonly kind: 'unit' }
  | WordKind;

/** A whole number. */
export interface CountKind {
  readonly kind: 'count';
  readonly min: number;
  readonly max: number;
  /** The smallest number in messages, if others than the reader refuse smaller ones. Default: `min`. */
  readonly shownMin?: number;
  /** What else to write for a smaller number, and for a word that means no limit. */
  readonly less?: string;
}

/** A number with or without decimals. */
export interface NumberKind {
  readonly kind: 'number';
  readonly min: number;
  readonly max: number;
  /** What the number is, with an example. */
  readonly meaning?: string;
}

/** A length of time in Go's notation. Bounds and values are in microseconds. */
export interface DurationKind {
  readonly kind: 'duration';
  readonly min: number;
  readonly max: number;
  /** See {@link CountKind.shownMin}. */
  readonly shownMin?: number;
  /** The value must be a multiple of this time. */
  readonly step: number;
  /** What else to write for a shorter time. */
  readonly less?: string;
}

/** One of several words. */
export interface WordKind<Word extends string = string> {
  readonly kind: 'word';
  readonly words: readonly Word[];
  /** What the words mean, if no word is similar to the value. */
  readonly meaning?: string;
}

/** The value of a kind. A duration is in microseconds. */
export type ScalarValue<Kind extends ScalarKind> = Kind extends { readonly kind: 'text' }
  ? string
  : Kind extends { readonly kind: 'flag' }
    ? boolean
    : Kind extends { readonly kind: 'unit' }
      ? WindowUnit
      : Kind extends WordKind<infer Word>
        ? Word
        : number;

/** A value as written. */
export type Scalar = Pick<YamlScalar, 'text' | 'plain'>;

/** The value, perhaps with a warning, or the problem, both as sentences for messages. */
export type ScalarResult<Value> =
  | { readonly value: Value; readonly warning?: string; readonly problem?: undefined }
  | { readonly problem: string };

/** Reads a value that is present and not null. `name` is its key or column in messages. */
export function readScalar<const Kind extends ScalarKind>(
  kind: Kind,
  scalar: Scalar,
  name: string,
): ScalarResult<ScalarValue<Kind>>;
export function readScalar(kind: ScalarKind, scalar: Scalar, name: string): ScalarResult<unknown> {
  switch (kind.kind) {
    case 'text':
      return { value: scalar.text };
    case 'flag':
      return readFlag(scalar, name);
    case 'count':
      return readCount(kind, scalar, name);
    case 'number':
      return readNumber(kind, scalar, name);
    case 'duration':
      return readDuration(kind, scalar, name);
    case 'unit':
      return readUnit(scalar);
    case 'word':
      return readWord(kind, scalar);
  }
}

/** Returns the problem of a list or a mapping (`found`) in the place of a value. */
export function notScalar(
  kind: ScalarKind,
  name: string,
  found: string,
  instead = 'write a single string',
): string {
  const remedy = remedyOf(kind);
  return remedy === undefined
    ? `"${name}" must be a string, not a ${found}; ${instead}`
    : `"${name}" is a ${found}; ${remedy}`;
}

/** Returns the remedy for another value than a number or a flag. */
function remedyOf(kind: ScalarKind): string | undefined {
  if (kind.kind === 'flag') return 'write true or false';
  if (kind.kind === 'count') return `write a whole number from ${kind.shownMin ?? kind.min} to ${kind.max}`;
  if (kind.kind !== 'number') return undefined;
  const { min, max, meaning } = kind;
  const bounds = `${min < 1e-3 && min > 0 ? min.toFixed(6) : min} to ${max}`;
  return `write a number from ${bounds}${meaning === undefined ? '' : `, ${meaning}`}`;
}

/** Reads `true` or `false` in any spelling of YAML 1.1. */
function readFlag(scalar: Scalar, name: string): ScalarResult<boolean> {
  const plain = scalar.plain ? readPlain(scalar.text) : undefined;
  if (plain?.kind === 'boolean') return { value: plain.value };
  return { problem: `"${name}" is ${found(scalar)}; ${remedyOf({ kind: 'flag' })}${unquoted(scalar)}` };
}

function readCount(kind: CountKind, scalar: Scalar, name: string): ScalarResult<number> {
  const { min, max, less } = kind;
  const number = wholeNumber(scalar);
  if (number !== undefined && number >= BigInt(min) && number <= BigInt(max)) {
    return { value: Number(number), ...octalWarning(scalar, number) };
  }
  const remedy = `${remedyOf(kind)}${unquoted(scalar)}`;
  const isLess = (number !== undefined && number < BigInt(min)) || NO_LIMIT.test(scalar.text);
  const hint = less !== undefined && isLess ? `, ${less}` : '';
  return { problem: `"${name}" is ${found(scalar)}; ${remedy}${hint}` };
}

/** Matches `1.000`, which is 1 in some countries and a thousand in others. */
export const AMBIGUOUS_POINT = /^[-+]?\d{1,3}\.\d{3}$/;

/**
 * Returns the whole number; undefined for other text. Databases and spreadsheets write `1000.0`, which counts as 1000.
 */
function wholeNumber({ plain: isPlain, text }: Scalar): bigint | undefined {
  const plain = isPlain ? readPlain(text) : undefined;
  if (plain?.kind === 'integer') return plain.value;
  if (AMBIGUOUS_POINT.test(text)) return undefined;
  if (plain?.kind !== 'float' || !Number.isSafeInteger(plain.value)) return undefined;
  return BigInt(plain.value);
}

function readNumber(kind: NumberKind, scalar: Scalar, name: string): ScalarResult<number> {
  const plain = scalar.plain ? readPlain(scalar.text) : undefined;
  const number = plain?.kind === 'integer' || plain?.kind === 'float' ? Number(plain.value) : Number.NaN;
  if (number >= kind.min && number <= kind.max) {
    return { value: number, ...(plain?.kind === 'integer' && octalWarning(scalar, plain.value)) };
  }
  return { problem: `"${name}" is ${found(scalar)}; ${remedyOf(kind)}${unquoted(scalar)}` };
}

function octalWarning({ text }: Scalar, number: bigint): { readonly warning?: string } {
  if (!/^[+-]?0[0-9_]/.test(text)) return {};
  return {
    warning:
      `YAML reads "${text}" as an octal number, which is ${number} in decimal; write the number ` +
      'without the leading 0',
  };
}

/** Names of the steps of durations. */
const STEPS: ReadonlyMap<number, string> = new Map([
  [1, 'microseconds'],
  [1000, 'milliseconds'],
  [1_000_000, 'seconds'],
]);

function readDuration(kind: DurationKind, { text }: Scalar, name: string): ScalarResult<number> {
  const { min, max, step, less, shownMin = min } = kind;
  const nanos = parseGoDuration(text);
  if (nanos === undefined) {
    const remedy = 'write a number and a unit, such as 150ms, 1s or 1h30m';
    return { problem: `"${safePrefix(text)}" is not a valid duration; ${remedy}` };
  }
  const isShort = nanos < BigInt(min) * 1000n;
  if (!isShort && nanos <= BigInt(max) * 1000n) {
    if (nanos % (BigInt(step) * 1000n) === 0n) return { value: Number(nanos / 1000n) };
    return { problem: `"${name}" is ${text}; write a whole number of ${STEPS.get(step)}` };
  }
  const hint = less !== undefined && isShort ? `, ${less}` : '';
  const bounds = `${describeMicros(shownMin)} to ${describeMicros(max)}`;
  return { problem: `"${name}" is ${safePrefix(text)}; write a duration from ${bounds}${hint}` };
}

/** Finds a unit in upper or lower case, as envoyproxy/ratelimit does. */
export function unitOf(text: string): WindowUnit | undefined {
  return WINDOW_UNITS.find((candidate) => candidate === text.toLowerCase());
}

function readUnit({ text }: Scalar): ScalarResult<WindowUnit> {
  const unit = unitOf(text);
  if (unit !== undefined) return { value: unit };
  // A length such as `5 minutes` is not a misspelled unit.
  const near = /\d/.test(text) ? undefined : nearest(text, WINDOW_UNITS);
  const remedy = near === undefined ? `write one of ${WINDOW_UNITS.join(', ')}` : `did you mean "${near}"?`;
  return { problem: `"${safePrefix(text)}" is not a valid unit; ${remedy}` };
}

function readWord({ words, meaning }: WordKind, { text }: Scalar): ScalarResult<string> {
  if (words.includes(text)) return { value: text };
  const near = nearest(text, words);
  const help = meaning === undefined ? '' : `; ${meaning}`;
  const hint = near === undefined ? help : `; did you mean "${near}"?`;
  const wrong =
    words.length === 1 ? `not a valid value; write ${words[0]}` : `not one of ${words.join(', ')}${hint}`;
  return { problem: `"${safePrefix(text)}" is ${wrong}` };
}

/** Describes a text in the place of a number or a flag: `-10`, `"many"`, `the string "5"`. */
function found({ text: whole, plain }: Scalar): string {
  const text = safePrefix(whole);
  if (!plain) return `the string "${text}"`;
  return readPlain(whole).kind === 'text' ? `"${text}"` : text;
}

/** Returns the end of a remedy if the quotes are the mistake, or a part of it. */
function unquoted({ plain }: Scalar): string {
  return plain ? '' : ', without quotes';
}

const NO_LIMIT = /^(?:unlimited|infinite|infinity|\.?inf|none)$/i;
