import { fixedPhase, type PhaseSchedule } from '../../policy/rule.js';
import { nearest } from '../../runtime/nearest-name.js';
import { safePrefix } from '../../runtime/shown-address.js';
import type { YamlValue } from '../yaml/yaml-document.js';
import type {
  Constraint,
  Field,
  Fields,
  ListKind,
  MappingName,
  TextsKind,
  WordOrMappingKind,
} from './field.js';
import { type FieldReader, kindName, type Located } from './field-reader.js';
import { CONSTRAINTS, keysOf, type PHASE, POLICY_FIELDS } from './policy-fields.js';
import { type Metadata, readMetadata } from './read-metadata.js';
import { readScalar, type ScalarKind, type ScalarValue } from './scalar-kinds.js';

/*
 * Reads the values of a mapping as policy-fields.ts describes them. Reports everything that the description says about
 * the values: kinds, bounds, words, missing keys, and keys that cannot be combined.
 */

/** The value of a kind. Mappings have readers, because each is read where its meaning is known. */
type KindValue<Kind> = Kind extends ScalarKind
  ? ScalarValue<Kind>
  : Kind extends { readonly kind: 'name' }
    ? string
    : Kind extends { readonly kind: 'time' }
      ? number
      : Kind extends { readonly kind: 'texts' | 'words' }
        ? readonly Located<string>[]
        : Kind extends { readonly kind: 'list' | 'headers' }
          ? readonly FieldReader[]
          : Kind extends WordOrMappingKind<infer Word>
            ? Word | FieldReader
            : Kind extends { readonly kind: 'metadata' }
              ? Metadata
              : FieldReader;

/** The value of a field: never undefined if it has a default of its own. */
export type FieldValue<One> = One extends { readonly default: unknown }
  ? One extends { readonly inherits: true }
    ? KindValue<One> | undefined
    : KindValue<One>
  : KindValue<One> | undefined;

/** The values of a mapping, by key. A value with an error is absent, or has its default. */
export type FieldValues<Of extends Fields> = { readonly [Key in keyof Of]: FieldValue<Of[Key]> };

/** Reads the values of some keys of a mapping. The caller checks the other keys. */
export function readFields<const Of extends Fields>(
  reader: FieldReader,
  fields: Of,
  constraints: readonly Constraint[] = [],
): FieldValues<Of> {
  const values = Object.entries(fields).map(([key, field]) => [key, readField(reader, key, field)]);
  for (const constraint of constraints) check(reader, constraint);
  return Object.fromEntries(values) as FieldValues<Of>;
}

function readField(reader: FieldReader, key: string, field: Field): unknown {
  const found = reader.field(key);
  if (found !== undefined) {
    const value = readKind(reader, key, field, found.value);
    if (value === '' && field.required !== undefined && !field.mayBeEmpty) reportMissing(reader, key, field);
    if (value !== undefined) return value;
  } else if (field.required !== undefined) reportMissing(reader, key, field);
  else if (reader.has(key)) reportEmpty(reader, key, field);
  return field.inherits === true ? undefined : defaultOf(field);
}

/** Reports a key without a value, which counts as absent, if that is probably not intended. */
function reportEmpty(reader: FieldReader, key: string, { empty }: Pick<Field, 'empty'>): void {
  const remedy = 'write a value after it, or remove the key';
  if (empty === 'error') reader.error(key, `"${key}" is empty; ${remedy}`);
  else if (empty === 'warning') reader.warn(key, `"${key}" is empty and is ignored; ${remedy}`);
}

/** Reports a missing key: at the key, which may be an empty text, or at the mapping. */
function reportMissing(reader: FieldReader, key: string, { kind, mayBeEmpty, required }: Field): void {
  const message = `"${key}" is missing; ${required}`;
  const atKey = ['text', 'name', 'texts', 'flag'].includes(kind) && mayBeEmpty !== true;
  if (atKey) reader.error(key, message);
  else reader.problems.error(reader.map.at, reader.path, message);
}

/** Defaults as they are written, with their values. */
function defaultOf(field: Field): unknown {
  if (field.kind !== 'duration' || typeof field.default !== 'string') return field.default;
  const read = readScalar(field, { text: field.default, plain: true }, '');
  return read.problem === undefined ? read.value : undefined;
}

function readKind(reader: FieldReader, key: string, field: Field, value: YamlValue): unknown {
  switch (field.kind) {
    case 'name':
      return reader.name(key, field.instead);
    case 'time':
      return readTime(reader, key);
    case 'texts':
      return readTexts(reader, key, field, value);
    case 'words':
      return readWords(reader, key, field.words, field.items);
    case 'mapping':
    case 'key_table':
    case 'plan_values':
    case 'kept_hits':
      return reader.mapping(key, field.instead);
    case 'list':
      return readList(reader, key, field, value);
    case 'headers':
      return reader.mappings(key, 'mappings of a header to its value');
    case 'word_or_mapping':
      return readWordOrMapping(reader, key, field, value);
    case 'metadata':
      return readMetadata(reader, key);
    case 'any':
      return undefined;
    case 'text':
      return readText(reader, key, field);
    default:
      return reader.scalar(key, field);
  }
}

/** Reads a text with at most `maxLength` characters. */
function readText(
  reader: FieldReader,
  key: string,
  { maxLength = Number.POSITIVE_INFINITY }: Pick<Field, 'maxLength'>,
): string | undefined {
  const text = reader.text(key);
  // A character has up to two UTF-16 units, so most texts need not be counted.
  if (text === undefined || text.length <= maxLength) return text;
  let length = 0;
  for (const _ of text) length++;
  if (length <= maxLength) return text;
  reader.error(key, `"${key}" has ${length} characters; write at most ${maxLength}`);
  return undefined;
}

/** Reads a time of RFC 3339 as microseconds since the epoch. */
function readTime(reader: FieldReader, key: string): number | undefined {
  const text = reader.text(key);
  if (text === undefined) return undefined;
  const micros = parseRfc3339(text);
  if (micros !== undefined) return micros;
  // A date without a time most likely means midnight. Other mistakes in a time are not guessed.
  const day = `${text}T00:00:00Z`;
  const isDay = parseRfc3339(day) !== undefined;
  const remedy = isDay ? `write ${day}` : 'write a day and a time, such as 2030-01-31T12:00:00Z';
  reader.error(key, `"${safePrefix(text)}" is not an RFC 3339 time; ${remedy}`);
  return undefined;
}

/** Reads a list of texts, or one text. Texts that are listed twice are errors. */
function readTexts(
  reader: FieldReader,
  key: string,
  { items, single }: TextsKind,
  value: YamlValue,
): readonly Located<string>[] {
  if (single === true && value.kind === 'scalar') {
    if (value.text !== '') return [{ value: value.text, at: value.at, path: reader.pathOf(key) }];
    reportEmpty(reader, key, { empty: 'error' });
    return [];
  }
  if (value.kind === 'list' && value.items.length === 0) {
    reportEmptyList(reader, key);
  }
  if (single === true && value.kind === 'map') {
    reader.error(key, `"${key}" must be a string or a list of strings, not a mapping`);
    return [];
  }
  const texts = reader.texts(key, items);
  const known = new Set<string>();
  return texts.filter(({ value: text, at, path }) => {
    if (known.has(text)) {
      reader.problems.error(at, path, `"${safePrefix(text)}" is listed twice in "${key}"; remove one`);
      return false;
    }
    known.add(text);
    return true;
  });
}

function reportEmptyList(reader: FieldReader, key: string): void {
  reader.error(key, `the list "${key}" is empty; add an item, or remove the list`);
}

function readWords(
  reader: FieldReader,
  key: string,
  words: readonly string[],
  items: string,
): readonly Located<string>[] {
  const found = reader.texts(key, items);
  for (const { value, at, path } of found) {
    if (words.includes(value)) continue;
    const near = nearest(value, words);
    const remedy = near === undefined ? `write one of ${words.join(', ')}` : `did you mean "${near}"?`;
    reader.problems.error(at, path, `"${safePrefix(value)}" is not valid in "${key}"; ${remedy}`);
  }
  return found;
}

function readList(
  reader: FieldReader,
  key: string,
  { items, first, min = 0, max = Number.POSITIVE_INFINITY }: ListKind,
  value: YamlValue,
): readonly FieldReader[] {
  const count = value.kind === 'list' ? value.items.length : min;
  if (count === 0 && min > 0) {
    reportEmptyList(reader, key);
  } else if (count < min || count > max) {
    reader.error(key, `"${key}" has ${count} items; write ${min} to ${max} items`);
  }
  return reader.mappings(key, items, first);
}

function readWordOrMapping(
  reader: FieldReader,
  key: string,
  { words, other, meaning }: WordOrMappingKind,
  value: YamlValue,
): string | FieldReader | undefined {
  if (value.kind === 'map') return reader.mapping(key);
  if (value.kind === 'scalar' && (words.length > 1 || words.includes(value.text))) {
    return reader.choice(key, words, meaning);
  }
  const choices = words.length === 1 ? words[0] : `one of ${words.join(', ')}`;
  reader.error(key, `"${key}" must not be a ${kindName(value)}; write ${choices}, or ${other}`);
  return undefined;
}

/** Reports keys that cannot be combined. */
function check(reader: FieldReader, { key, is, excludes = [], bySchema }: Constraint): void {
  const value = reader.field(key)?.value;
  if (bySchema === true || value === undefined) return;
  if (is !== undefined && !(value.kind === 'scalar' && value.text === String(is))) return;
  const name = is === undefined ? `"${key}"` : `${key}: ${is}`;
  const others = Array.isArray(excludes) ? excludes.map((other) => [other, '']) : Object.entries(excludes);
  for (const [other, why] of others) {
    if (reader.field(other) === undefined) continue;
    const remedy = why.includes(';') ? '' : '; keep one of the two';
    reader.error(other, `"${other}" cannot be combined with ${name}${why}${remedy}`);
  }
}

/** Reads all values of a mapping, and reports unknown keys. */
export function readMapping<Name extends MappingName>(
  reader: FieldReader,
  name: Name,
): FieldValues<(typeof POLICY_FIELDS)[Name]> {
  expectKeysOf(reader, name);
  return readFields(reader, POLICY_FIELDS[name], CONSTRAINTS[name]);
}

/** Mappings of envoyproxy/ratelimit, which ignores misplaced keys in them. */
const REFERENCE_MAPPINGS: readonly MappingName[] = ['file', 'descriptor', 'rate_limit', 'replaced_rule'];

/** Reports keys that a mapping does not have. */
export function expectKeysOf(reader: FieldReader, name: MappingName): void {
  const elsewhere = REFERENCE_MAPPINGS.includes(name) ? MISPLACED_KEYS : undefined;
  reader.expectKeys(keysOf(name), elsewhere, REFUSED_KEYS[name]);
}

const TIMESTAMP =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/**
 * Reads a timestamp of RFC 3339, section 5.6, as microseconds since the epoch. Smaller fractions are dropped. Returns
 * undefined for other text, including times without a zone and dates that do not exist.
 */
export function parseRfc3339(text: string): number | undefined {
  const match = TIMESTAMP.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHour, offsetMinute] = match;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  // A date that does not exist rolls over into the next month.
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return undefined;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  if (Number(offsetHour ?? 0) > 23 || Number(offsetMinute ?? 0) > 59) return undefined;
  const minutesEast = (Number(offsetHour ?? 0) * 60 + Number(offsetMinute ?? 0)) * (sign === '-' ? -1 : 1);
  const seconds =
    date.getTime() / 1000 + Number(hour) * 3600 + Number(minute) * 60 + Number(second) - minutesEast * 60;
  return seconds * 1_000_000 + Number(fraction.padEnd(6, '0').slice(0, 6));
}

/** Returns the schedule of a `phase`: the name of a phase, or RFC 3339 times. Undefined if absent or invalid. */
export function phaseOf(value: FieldValue<(typeof PHASE)['phase']>): PhaseSchedule | undefined {
  if (value === undefined) return undefined;
  return typeof value === 'string' ? fixedPhase(value) : readSchedule(value);
}

function readSchedule(schedule: FieldReader): PhaseSchedule | undefined {
  const { grace_period: gracePeriod, active } = readMapping(schedule, 'phase_schedule');
  if (schedule.field('grace_period') === undefined && schedule.field('active') === undefined) {
    schedule.problems.error(
      schedule.map.at,
      schedule.path,
      'the schedule is empty; write the time of grace_period, of active, or of both',
    );
    return undefined;
  }
  if (gracePeriod !== undefined && active !== undefined && active < gracePeriod) {
    schedule.error(
      'active',
      '"active" is earlier than "grace_period"; the grace period comes first, so write a later time',
    );
    return undefined;
  }
  return { gracePeriodAtMicros: gracePeriod ?? Infinity, activeAtMicros: active ?? Infinity };
}

/** Keys that users are likely to put in a mapping that does not have them, and what to do instead. */
const REFUSED_KEYS: Partial<Readonly<Record<MappingName, ReadonlyMap<string, string>>>> = {
  descriptor: new Map([
    [
      'actions',
      'this key belongs to a route in the Envoy configuration, where it defines descriptors; move the key ' +
        'to that route, and limit the descriptors here with "key" and "rate_limit"',
    ],
  ]),
  rate_limits_item: new Map([
    [
      'unlimited',
      'a limit in a list cannot be unlimited; remove the item, or use rate_limit: { unlimited: true }',
    ],
    [
      'quota_mode',
      'a list denies as soon as one of its limits is exceeded, so its limits cannot be quotas; remove "quota_mode"',
    ],
  ]),
  concurrency: new Map([
    [
      'pair',
      'a limit on concurrent requests needs hold tokens, because each lost end would otherwise occupy a slot ' +
        'permanently; remove "pair", and let Envoy send the hold token',
    ],
  ]),
};

/** How messages name the mappings in which users misplace keys. */
const PLACES = [
  ['file', 'at the top of the file'],
  ['descriptor', 'in an item of "descriptors"'],
  ['rate_limit', 'in "rate_limit"'],
  ['rate_limits_item', 'in an item of "rate_limits"'],
] as const satisfies readonly (readonly [MappingName, string])[];

/** Every key of these mappings. */
export const ALL_KEYS: readonly string[] = [...new Set(PLACES.flatMap(([mapping]) => keysOf(mapping)))];

function fieldOf(mapping: MappingName, key: string): Field | undefined {
  const fields: Readonly<Record<string, Field>> = POLICY_FIELDS[mapping];
  return fields[key];
}

/** Returns the places of the keys that envoyproxy/ratelimit knows, or of those that only weir has. */
function placesOf(isReference: boolean): ReadonlyMap<string, string> {
  const places = new Map<string, string>();
  for (const key of ALL_KEYS) {
    const fields = PLACES.map(([mapping]) => fieldOf(mapping, key));
    if (fields.some((field) => field?.reference === true) !== isReference) continue;
    const known = PLACES.filter(([mapping], i) => {
      // Most keys of limits are the same in a list.
      if (mapping === 'rate_limits_item' && fieldOf('rate_limit', key) !== undefined) return false;
      return fields[i] !== undefined && (fields[i].reference === true) === isReference;
    }).map(([, place]) => place);
    const last = known.pop();
    places.set(key, known.length === 0 ? `${last}` : `${known.join(', ')} or ${last}`);
  }
  return places;
}

/**
 * Keys of envoyproxy/ratelimit and the mapping that each belongs to. envoyproxy/ratelimit accepts these keys in any
 * mapping and ignores them in the wrong one, so existing files may have them anywhere. A misplaced key is therefore a
 * warning here, while an unknown key is an error.
 */
export const MISPLACED_KEYS = placesOf(true);

/** Keys that only weir has, and the mapping that each belongs to. A misplaced one is an error. */
export const WEIR_KEYS = placesOf(false);
