import { parseGoDuration } from '../../config/yaml/go-duration.js';
import { ALGORITHMS } from '../../policy/policy.js';
import { LOG_LEVELS, type LogLevel } from '../../telemetry/logger.js';
import type { SettingType, SettingTypes } from './spec.js';

/** A parsed value, or a description of valid values. */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly expected: string };

function good<T>(value: T): Parsed<T> {
  return { ok: true, value };
}

function bad(expected: string): { readonly ok: false; readonly expected: string } {
  return { ok: false, expected };
}

const TRUE = ['1', 't', 'T', 'true', 'TRUE', 'True'];
const FALSE = ['0', 'f', 'F', 'false', 'FALSE', 'False'];

/** Go's strconv.ParseBool. Returns undefined for an invalid value. */
export function goBoolean(text: string): boolean | undefined {
  if (TRUE.includes(text)) return true;
  return FALSE.includes(text) ? false : undefined;
}

/** Syntax of Go's strconv.ParseInt with base 0: `0x`, `0o` or `0` for octal, `0b`, and `_` between digits. */
const INTEGER = /^([+-]?)(0x(?:_?[\da-f])+|0o(?:_?[0-7])+|0b(?:_?[01])+|0(?:_?[0-7])*|[1-9](?:_?\d)*)$/i;

function wholeNumber(text: string, least: number, most: number): number | undefined {
  const [, sign, digits] = INTEGER.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const plain = digits.replaceAll('_', '').replace(/^0(?=\d)/, '0o');
  const value = sign === '-' ? 0 - Number(plain) : Number(plain);
  return Number.isSafeInteger(value) && value >= least && value <= most ? value : undefined;
}

/** Go's time.ParseDuration, rounded up to whole microseconds. Returns undefined for an invalid or negative duration. */
function parseDuration(text: string): number | undefined {
  const nanos = parseGoDuration(text);
  if (nanos === undefined || nanos < 0n) return undefined;
  return Number((nanos + 999n) / 1000n);
}

/** Describes the range of a number for messages. */
function range(least: number, most: number): string {
  return most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
}

function unitHint(text: string): string {
  if (text.startsWith('-')) return '; the duration must not be negative';
  return /^\d+(?:\.\d+)?$/.test(text) ? `; add the unit, for example ${text}s` : '';
}

/**
 * Reads pairs that are separated by commas. The first `separator` separates name and value, or the first `other` in a
 * pair without one.
 */
export function readPairs(
  text: string,
  separator: string,
  other: string,
): ReadonlyMap<string, string> | undefined {
  const map = new Map<string, string>();
  for (const pair of text === '' ? [] : text.split(',')) {
    const at = pair.includes(separator) ? pair.indexOf(separator) : pair.indexOf(other);
    const name = pair.slice(0, Math.max(at, 0)).trim();
    if (name === '') return undefined;
    map.set(name, pair.slice(at + 1).trim());
  }
  return map;
}

const SAMPLE = 'a list of fractions from 0 to 1 for denied and other requests, such as denied=1,ok=0.01';

/** Reads `denied=1,ok=0.01`, or one of both. A missing share is 0. */
function readSample(text: string): Parsed<SettingTypes['decision_sample']> {
  if (text === '') return good(undefined);
  const shares = { denied: 0, ok: 0 };
  const named = new Set<string>();
  for (const part of text.split(',')) {
    const [, name = '', digits = ''] = /^\s*(denied|ok)\s*[=:]\s*(\d+\.?\d*|\.\d+)\s*$/.exec(part) ?? [];
    const share = Number(digits);
    if ((name !== 'denied' && name !== 'ok') || named.has(name)) return bad(SAMPLE);
    if (share > 1) return bad(`${SAMPLE}; ${name} is more than 1`);
    named.add(name);
    shares[name] = share;
  }
  return good(shares);
}

function oneOf(words: readonly string[]): string {
  const [only] = words;
  return words.length === 1 ? `${only}, the only valid value` : `one of ${words.join(', ')}`;
}

/** Types whose values are words. The Helm chart accepts the same words. */
export const CHOICES = {
  log_level: { words: Object.keys(LOG_LEVELS) as LogLevel[], inAnyCase: true },
  log_format: { words: ['auto', 'json', 'text'], inAnyCase: true },
  grpc_transport: { words: ['h2', 'grpc-js'], inAnyCase: false },
  worker_scheduling: { words: ['round-robin', 'kernel', 'reuse-port'], inAnyCase: false },
  trace_protocol: { words: ['http', 'grpc'], inAnyCase: false },
  config_type: { words: ['FILE', 'GRPC_XDS_SOTW'], inAnyCase: false },
  backend_type: { words: ['', 'redis', 'memcache'], inAnyCase: false },
  redis_socket_type: { words: ['', 'tcp', 'unix'], inAnyCase: false },
  redis_type: { words: ['single', 'cluster', 'sentinel'], inAnyCase: true },
  pool_on_empty: { words: ['WAIT', 'CREATE', 'ERROR'], inAnyCase: true },
  algorithm: { words: ALGORITHMS, inAnyCase: true },
} as const satisfies {
  readonly [T in SettingType]?: { readonly words: readonly SettingTypes[T][]; readonly inAnyCase: boolean };
};

/** Returns a parser that accepts one of the words of a type. */
function choice<T extends keyof typeof CHOICES>(type: T): (text: string) => Parsed<SettingTypes[T]> {
  const { words, inAnyCase }: { readonly words: readonly string[]; readonly inAnyCase: boolean } =
    CHOICES[type];
  return (text) => {
    const word = words.find((one) => one === text || (inAnyCase && one.toLowerCase() === text.toLowerCase()));
    return word === undefined ? bad(oneOf(words.filter((one) => one !== ''))) : good(word as SettingTypes[T]);
  };
}

/** Words that are common for switches, with the value that they stand for. */
const SWITCH_WORDS: ReadonlyMap<string, boolean> = new Map(
  [true, false].flatMap((value) =>
    (value ? 'y yes on enable enabled true' : 'n no off disable disabled false')
      .split(' ')
      .map((word) => [word, value] as const),
  ),
);

/**
 * Returns the number of bytes of strings such as `512MB`, `512Mi` or `1 GiB`. All units are powers of 1024, as for
 * memory.
 */
function bytesOf(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,6}) ?([kmg])i?b?$/i.exec(text.trim()) ?? [];
  return digits === '' ? undefined : Number(digits) * 1024 ** ('kmg'.indexOf(unit.toLowerCase()) + 1);
}

/** Describes a whole number from `least` to `most` for messages. */
function expectedNumber(text: string, least: number, most: number): string {
  const bytes = bytesOf(text);
  return `a whole number ${range(least, most)}${bytes === undefined ? '' : `; write ${bytes}`}`;
}

/**
 * Returns the fraction of a string that is probably a percentage, such as `80` or `80%`. Otherwise returns undefined.
 */
function percentageAsShare(text: string): number | undefined {
  const [, percent = '', sign = ''] = /^(\d{1,3}(?:\.\d{1,3})?)(%?)$/.exec(text.trim()) ?? [];
  const value = Number(percent);
  // A number such as 1.5 is more likely a fraction that is too large.
  const isPercentage =
    percent !== '' && value <= 100 && (sign === '%' || (value > 1 && Number.isInteger(value)));
  return isPercentage ? value / 100 : undefined;
}

const parsers: { readonly [T in SettingType]: (text: string, max?: number) => Parsed<SettingTypes[T]> } = {
  string: (text) => good(text),
  port: (text) => {
    const value = wholeNumber(text, 0, 65_535);
    if (value !== undefined) return good(value);
    const [, port] = /^[^:]{0,255}:(\d{1,5})$/.exec(text) ?? [];
    return bad(`a port number from 0 to 65535${port === undefined ? '' : `; write ${port}`}`);
  },
  count: (text, max = Number.MAX_SAFE_INTEGER) => {
    const value = wholeNumber(text, 1, max);
    return value === undefined ? bad(expectedNumber(text, 1, max)) : good(value);
  },
  integer: (text, max = Number.MAX_SAFE_INTEGER) => {
    const value = wholeNumber(text, 0, max);
    return value === undefined ? bad(expectedNumber(text, 0, max)) : good(value);
  },
  optional_integer: (text, max) => (text === '' ? good(undefined) : parsers.integer(text, max)),
  number: (text, max = Number.MAX_SAFE_INTEGER) => {
    const value = /^\+?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
    if (value >= 0 && value <= max) return good(value);
    const share = max === 1 ? percentageAsShare(text) : undefined;
    return bad(`a number ${range(0, max)}${share === undefined ? '' : `; write ${share}`}`);
  },
  boolean: (text) => {
    const value = goBoolean(text);
    if (value !== undefined) return good(value);
    const meant = SWITCH_WORDS.get(text.trim().toLowerCase());
    return bad(
      meant === undefined
        ? 'true or false (also 1, t, T, TRUE, True, 0, f, F, FALSE, False)'
        : `true or false; write ${meant}`,
    );
  },
  boolean_list: (text) => {
    const values: boolean[] = [];
    for (const item of text.split(',')) {
      const parsed = parsers.boolean(item.trim());
      if (!parsed.ok) return parsed;
      values.push(parsed.value);
    }
    return good(values);
  },
  duration: (text) => {
    const value = parseDuration(text);
    return value === undefined ? bad(`a duration such as 150ms, 2s or 1h30m${unitHint(text)}`) : good(value);
  },
  optional_duration: (text) => (text === '' ? good(undefined) : parsers.duration(text)),
  string_list: (text) => good(text === '' ? [] : text.split(',').map((item) => item.trim())),
  string_map: (text) => {
    const map = readPairs(text, ':', '=');
    return map === undefined ? bad('a list such as name:value,name:value') : good(map);
  },
  metadata_map: (text) => {
    const map = readPairs(text, '=', ':');
    return map === undefined ? bad('a list such as name=value,name=value') : good(map);
  },
  log_level: choice('log_level'),
  log_format: choice('log_format'),
  decision_sample: readSample,
  grpc_transport: choice('grpc_transport'),
  worker_scheduling: choice('worker_scheduling'),
  trace_protocol: choice('trace_protocol'),
  config_type: choice('config_type'),
  backend_type: choice('backend_type'),
  redis_socket_type: choice('redis_socket_type'),
  redis_type: choice('redis_type'),
  pool_on_empty: choice('pool_on_empty'),
  algorithm: choice('algorithm'),
};

/** Parses a value of a type, with the syntax of the reference (Go). */
export function parseValue(type: SettingType, text: string, max?: number): Parsed<SettingTypes[SettingType]> {
  return parsers[type](text, max);
}
