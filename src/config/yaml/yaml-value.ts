import { safePrefix } from '../../runtime/shown-address.js';
import type { Position } from './config-problem.js';

/** The meaning of an unquoted string in YAML 1.1, as gopkg.in/yaml.v2 reads it for envoyproxy/ratelimit. */
type PlainValue =
  | { readonly kind: 'null' }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'integer'; readonly value: bigint }
  | { readonly kind: 'float'; readonly value: number }
  | { readonly kind: 'text' };

/** Unquoted strings that mean null (YAML 1.1, https://yaml.org/type/null.html). */
const NULL_TEXTS = ['', '~', 'null', 'Null', 'NULL'];

const WORDS: ReadonlyMap<string, PlainValue> = new Map([
  ...wordsOf({ kind: 'null' }, NULL_TEXTS),
  ...wordsOf({ kind: 'boolean', value: true }, ['y', 'Y', 'yes', 'Yes', 'YES']),
  ...wordsOf({ kind: 'boolean', value: true }, ['true', 'True', 'TRUE', 'on', 'On', 'ON']),
  ...wordsOf({ kind: 'boolean', value: false }, ['n', 'N', 'no', 'No', 'NO']),
  ...wordsOf({ kind: 'boolean', value: false }, ['false', 'False', 'FALSE', 'off', 'Off', 'OFF']),
  ...wordsOf({ kind: 'float', value: Number.NaN }, ['.nan', '.NaN', '.NAN']),
  ...wordsOf({ kind: 'float', value: Infinity }, ['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF']),
  ...wordsOf({ kind: 'float', value: -Infinity }, ['-.inf', '-.Inf', '-.INF']),
]);

const TEXT: PlainValue = { kind: 'text' };
/** Maximum length of a number, which bounds the work. Longer text is not a number. */
const MAX_NUMBER_LENGTH = 80;
const MAX_UINT64 = (1n << 64n) - 1n;
const MIN_INT64 = -(1n << 63n);
/** Largest value that envoyproxy/ratelimit reads as an integer: a Go int. */
export const MAX_INT64 = (1n << 63n) - 1n;

function wordsOf(value: PlainValue, words: readonly string[]): readonly (readonly [string, PlainValue])[] {
  return words.map((word) => [word, value]);
}

/** Tells whether a string means null if it is unquoted. */
export function isNullText(text: string): boolean {
  return NULL_TEXTS.includes(text);
}

/** Reads an unquoted string. */
export function readPlain(text: string): PlainValue {
  const word = WORDS.get(text);
  if (word !== undefined) return word;
  if (text.length > MAX_NUMBER_LENGTH || !/^[-+.0-9]/.test(text)) return TEXT;
  const integer = readInteger(text);
  if (integer !== undefined) return { kind: 'integer', value: integer };
  return readFloat(text.startsWith('.') ? text : text.replaceAll('_', '')) ?? TEXT;
}

/** Reads a decimal, 0x, 0b, 0o or octal (leading 0) integer of 64 bits, with `_` anywhere after the first character. */
function readInteger(text: string): bigint | undefined {
  const match = /^([+-]?)(0x[0-9a-f]+|0b[01]+|0o[0-7]+|0[0-7]*|[1-9][0-9]*)$/i.exec(text.replaceAll('_', ''));
  if (match === null || text.startsWith('.')) return undefined;
  const digits = match[2] as string;
  const magnitude = BigInt(/^0[0-7]/.test(digits) ? `0o${digits.slice(1)}` : digits.toLowerCase());
  const value = match[1] === '-' ? -magnitude : magnitude;
  // Only a number without a sign may use all 64 bits.
  if (value < MIN_INT64 || value > (match[1] === '' ? MAX_UINT64 : -MIN_INT64 - 1n)) return undefined;
  return value;
}

function readFloat(text: string): PlainValue | undefined {
  if (!/^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? { kind: 'float', value } : undefined;
}

/**
 * Returns the text that Go prints for a value as a mapping's key: the shortest decimal, with an exponent below 1e-4 and
 * from 1e21 on.
 */
export function goText(plain: PlainValue, text: string): string {
  if (plain.kind === 'text') return text;
  if (plain.kind === 'null') return '<nil>';
  if (plain.kind !== 'float') return String(plain.value);
  const { value } = plain;
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const magnitude = Math.abs(value);
  if (magnitude >= 1e-4 && magnitude < 1e21) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
}

/** Maximum size of a file in bytes: four times the maximum of a Kubernetes ConfigMap or Secret. */
export const MAX_FILE_BYTES = 4 * 1024 * 1024;
/** Maximum number of values that aliases and merge keys of one file may add, because each may double the file. */
export const MAX_ALIAS_VALUES = 100_000;
/** Message for a shell variable that was not substituted. */
export const VARIABLE =
  '"${" begins a variable, and weir does not substitute variables; run the file through envsubst first, ' +
  'and load the result';
/** Maximum nesting of mappings and lists. Real policies have less than twenty levels. */
export const MAX_YAML_DEPTH = 200;

/**
 * A YAML document for the policy reader. Every value has its position, and scalars keep their source text, as in
 * envoyproxy/ratelimit: `007`, `yes` and `0x1F` stay as written. Aliases and merge keys are resolved.
 */
export type YamlValue = YamlScalar | YamlMap | YamlList;

export interface YamlScalar {
  readonly kind: 'scalar';
  /** The text without quotes and escapes. */
  readonly text: string;
  /** Whether the scalar is unquoted, and may be read as a number, a boolean or null. */
  readonly plain: boolean;
  readonly at: Position;
}

export interface YamlField {
  readonly key: string;
  readonly keyAt: Position;
  /** Whether the key is unquoted, and may be read as a number, a boolean or null in metadata. */
  readonly keyPlain?: boolean;
  /** 0-based position in the mapping as written. Names the field if its key must not be shown. */
  readonly index: number;
  /** Whether messages may show the key. */
  readonly shown: boolean;
  readonly value: YamlValue;
}

export interface YamlMap {
  readonly kind: 'map';
  readonly fields: ReadonlyMap<string, YamlField>;
  readonly at: Position;
}

export interface YamlList {
  readonly kind: 'list';
  readonly items: readonly YamlValue[];
  readonly at: Position;
}

/** Tells whether the value is an unquoted null, which makes the field count as absent. */
export function isNull(value: YamlValue): boolean {
  return value.kind === 'scalar' && value.plain && isNullText(value.text);
}

/**
 * Tells whether messages may show a key of the mapping at `path`. If not, nothing below the key is shown either, and
 * paths name the key by position.
 */
export type ShowKey = (path: string, key: string) => boolean;

/** Appends a key to a path in the document. Keys that are not plain words are quoted. */
export function joinPath(path: string, key: string): string {
  if (!/^[\w.<-]+$/.test(key)) return `${path}[${JSON.stringify(safePrefix(key))}]`;
  return path === '' ? key : `${path}.${key}`;
}
