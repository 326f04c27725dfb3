import { parseGoDuration } from '../../config/yaml/go-duration.js';
import { ALGORITHMS } from '../../policy/policy.js';
import { LOG_LEVELS, type LogLevel } from '../../telemetry/logger.js';

/** Properties of a variable in envoyproxy/ratelimit, the reference. */
interface ReferenceSetting {
  /** Default in the reference, in the form in which a user would set it. */
  readonly default: string;
  /** Meaning of an empty value in the reference, if it differs from an unset variable and weir supports it. */
  readonly whenEmpty?: string | undefined;
  /** Sentence with differences from the reference other than the default. */
  readonly differs?: string | undefined;
}

/** Properties that rows have in addition to name, type and default. */
interface Particulars {
  readonly help: string;
  readonly max?: number;
  /** Keeps the value out of logs and messages. */
  readonly secret?: true;
}

export interface Row<Type extends SettingType = SettingType> extends Particulars {
  /** Name of the environment variable. */
  readonly name: string;
  readonly type: Type;
  /** Default, as it would be written. '' means unset. */
  readonly default: string;
  /** See {@link when}. */
  readonly conditions: readonly string[];
  /** Undefined if only weir has the variable. */
  readonly reference?: ReferenceSetting;
}

/** Settings with values that are not accepted, with the reason and the remedy. */
export interface RefusedSetting {
  readonly variables: readonly string[];
  readonly sentence: string;
}

/** Declares a setting that only weir has. */
export function own<Type extends SettingType>(
  name: string,
  type: Type,
  value: string,
  more: Particulars,
): Row<Type> {
  return { name, type, default: value, conditions: [], ...more };
}

/** Declares a setting that the reference has, too. Its default there is `theirs`, by default the same as in weir. */
export function shared<Type extends SettingType>(
  name: string,
  type: Type,
  value: string,
  more: Particulars & Omit<ReferenceSetting, 'default'> & { readonly theirs?: string },
): Row<Type> {
  const { theirs = value, whenEmpty, differs, ...rest } = more;
  return { ...own(name, type, value, rest), reference: { default: theirs, whenEmpty, differs } };
}

/**
 * Declares settings that have no effect without a condition on another setting: `REDIS_URL` (is set, or above 0),
 * `GRPC_TRANSPORT=h2`, or `GRPC_UDS=` (is unset). `or` separates alternatives. The log names settings without effect.
 */
export function when<Rows extends Readonly<Record<string, Row>>>(condition: string, rows: Rows): Rows {
  const entries = Object.entries(rows).map(([key, row]) => [
    key,
    { ...row, conditions: [condition, ...row.conditions] },
  ]);
  return Object.fromEntries(entries) as Rows;
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
} as const;

export type SettingTypes = {
  [Type in keyof typeof CHOICES]: (typeof CHOICES)[Type]['words'][number];
} & {
  string: string;
  port: number;
  /** Whole number, at least 1. */
  count: number;
  /** Whole number, at least 0. */
  integer: number;
  /** Whole number, at least 0; undefined if unset. */
  optional_integer: number | undefined;
  /** Number of at least 0, optionally with a fraction. */
  number: number;
  boolean: boolean;
  /** List such as `true,false`. */
  boolean_list: readonly boolean[];
  /** Duration in Go's syntax, such as `150ms` or `1h30m`; parsed to microseconds. */
  duration: number;
  /** Duration above 0. */
  timeout: number;
  /** Duration; undefined if unset. */
  optional_duration: number | undefined;
  /** Duration above 0; undefined if unset. */
  optional_timeout: number | undefined;
  /** List such as `a,b`. */
  string_list: readonly string[];
  /** Pairs such as `name:value,name:value`, in their order. */
  string_map: ReadonlyMap<string, string>;
  /** Pairs such as `name=value,name=value`, in their order. */
  metadata_map: ReadonlyMap<string, string>;
  /** Fractions from 0 to 1, such as `denied=1,ok=0.01`; undefined if unset. */
  decision_sample: { readonly denied: number; readonly ok: number } | undefined;
};
export type SettingType = keyof SettingTypes;

/** A parsed value, or a description of valid values. */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly expected: string };

interface ValueType<Value> {
  /** Undefined for an invalid value. */
  parse(text: string, max: number): Value | undefined;
  /** Describes valid values, after "is not". */
  expected: string | ((max: number) => string);
  /** Whether an empty text is valid and means undefined. */
  isOptional?: boolean;
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

function wholeNumber(least: number): ValueType<number> {
  return {
    parse(text, max) {
      const [, sign, digits] = INTEGER.exec(text) ?? [];
      if (digits === undefined) return undefined;
      const plain = digits.replaceAll('_', '').replace(/^0(?=\d)/, '0o');
      const value = sign === '-' ? 0 - Number(plain) : Number(plain);
      return Number.isSafeInteger(value) && value >= least && value <= max ? value : undefined;
    },
    expected: (max) => `a whole number ${range(least, max)}`,
  };
}

function range(least: number, most: number): string {
  return most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
}

/** Go's time.ParseDuration, rounded up to whole microseconds. Returns undefined for an invalid or negative duration. */
function parseDuration(text: string): number | undefined {
  const nanos = parseGoDuration(text);
  return nanos === undefined || nanos < 0n ? undefined : Number((nanos + 999n) / 1000n);
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

/** Reads `denied=1,ok=0.01`, or one of both. A missing share is 0. */
function readSample(text: string): SettingTypes['decision_sample'] {
  const shares = { denied: 0, ok: 0 };
  const named = new Set<string>();
  for (const part of text.split(',')) {
    const [, name = '', digits = ''] = /^\s*(denied|ok)\s*[=:]\s*(\d+\.?\d*|\.\d+)\s*$/.exec(part) ?? [];
    const share = Number(digits);
    if ((name !== 'denied' && name !== 'ok') || named.has(name) || share > 1) return undefined;
    named.add(name);
    shares[name] = share;
  }
  return shares;
}

function choice<Type extends keyof typeof CHOICES>(type: Type): ValueType<SettingTypes[Type]> {
  const { words, inAnyCase }: { readonly words: readonly string[]; readonly inAnyCase: boolean } =
    CHOICES[type];
  return {
    parse: (text) =>
      words.find((word) => word === text || (inAnyCase && word.toLowerCase() === text.toLowerCase())) as
        | SettingTypes[Type]
        | undefined,
    expected: `one of ${words.filter((word) => word !== '').join(', ')}`,
  };
}

function optional<Value>(type: ValueType<Value>): ValueType<Value> {
  return { ...type, isOptional: true };
}

const INTEGER_TYPE = wholeNumber(0);
const BOOLEAN: ValueType<boolean> = { parse: goBoolean, expected: 'true or false' };
const DURATION: ValueType<number> = {
  parse: parseDuration,
  expected: 'a duration such as 150ms, 2s or 1h30m',
};
const TIMEOUT: ValueType<number> = {
  parse: (text) => parseDuration(text) || undefined,
  expected: 'a duration above 0 such as 150ms, 2s or 1h30m',
};

const CHOICE_TYPES = Object.keys(CHOICES) as (keyof typeof CHOICES)[];

const VALUE_TYPES: { readonly [Type in SettingType]: ValueType<SettingTypes[Type]> } = {
  string: { parse: (text) => text, expected: 'a text' },
  port: { parse: (text) => INTEGER_TYPE.parse(text, 65_535), expected: 'a port number from 0 to 65535' },
  count: wholeNumber(1),
  integer: INTEGER_TYPE,
  optional_integer: optional(INTEGER_TYPE),
  number: {
    parse(text, max) {
      const value = /^\+?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
      return value >= 0 && value <= max ? value : undefined;
    },
    expected: (max) => `a number ${range(0, max)}`,
  },
  boolean: BOOLEAN,
  boolean_list: {
    parse(text) {
      const values = text.split(',').map((item) => goBoolean(item.trim()));
      return values.includes(undefined) ? undefined : (values as boolean[]);
    },
    expected: 'true or false, or a list such as true,false',
  },
  duration: DURATION,
  timeout: TIMEOUT,
  optional_duration: optional(DURATION),
  optional_timeout: optional(TIMEOUT),
  string_list: {
    parse: (text) => (text === '' ? [] : text.split(',').map((item) => item.trim())),
    expected: 'a list such as a,b',
  },
  string_map: {
    parse: (text) => readPairs(text, ':', '='),
    expected: 'a list such as name:value,name:value',
  },
  metadata_map: {
    parse: (text) => readPairs(text, '=', ':'),
    expected: 'a list such as name=value,name=value',
  },
  decision_sample: optional({
    parse: readSample,
    expected: 'a list of fractions from 0 to 1 for denied and other requests, such as denied=1,ok=0.01',
  }),
  ...(Object.fromEntries(CHOICE_TYPES.map((type) => [type, choice(type)])) as {
    readonly [Type in keyof typeof CHOICES]: ValueType<SettingTypes[Type]>;
  }),
};

const YES = /^(?:y|yes|on|enabled?|true)$/i;
const NO = /^(?:n|no|off|disabled?|false)$/i;
/** Sizes such as `512MB`, `512Mi` or `1 GiB`. All units are powers of 1024, as for memory. */
const BYTES = /^(\d{1,6}) ?([kmg])i?b?$/i;

/** Returns the valid value that the user probably meant by an invalid one, or undefined if that is unclear. */
function meantValue(type: SettingType, text: string, max: number): string | number | undefined {
  switch (type) {
    case 'boolean':
      return YES.test(text) ? 'true' : NO.test(text) ? 'false' : undefined;
    case 'port':
      return /^[^:]{0,255}:(\d{1,5})$/.exec(text)?.[1];
    case 'count':
    case 'integer':
    case 'optional_integer': {
      const [, digits, unit = ''] = BYTES.exec(text) ?? [];
      return digits && Number(digits) * 1024 ** ('kmg'.indexOf(unit.toLowerCase()) + 1);
    }
    case 'number': {
      const [, percent, sign] = /^(\d{1,3}(?:\.\d{1,3})?)(%?)$/.exec(text) ?? [];
      // A number such as 1.5 is more likely a fraction that is too large.
      const isPercentage = Number(percent) <= 100 && (sign === '%' || Number.isInteger(Number(percent)));
      return max === 1 && isPercentage ? Number(percent) / 100 : undefined;
    }
    case 'duration':
    case 'timeout':
    case 'optional_duration':
    case 'optional_timeout':
      return /^\d*[1-9](?:\.\d+)?$/.test(text) ? `${text}s` : undefined;
    default:
      return undefined;
  }
}

/** Parses a value of a type, with the syntax of the reference (Go). */
export function parseValue(
  type: SettingType,
  text: string,
  max = Number.MAX_SAFE_INTEGER,
): Parsed<SettingTypes[SettingType]> {
  const { parse, expected, isOptional } = VALUE_TYPES[type];
  const isUnset = isOptional === true && text === '';
  const value = isUnset ? undefined : parse(text, max);
  if (value !== undefined || isUnset) return { ok: true, value };
  const valid = typeof expected === 'string' ? expected : expected(max);
  const meant = meantValue(type, text.trim(), max);
  return { ok: false, expected: meant === undefined ? valid : `${valid}; write ${meant}` };
}
