import type { FieldReader } from '../../../config/yaml/field-reader.js';
import type { LogFields, NeedOptions, Predicate, When } from '../log-fields.js';
import { comparison, regexMatcher, stringMatcher, type TextPredicate } from './string-matcher.js';

const KEYS = [
  ...[
    'name',
    'string_match',
    'present_match',
    'range_match',
    'invert_match',
    'treat_missing_header_as_empty',
  ],
  ...['exact_match', 'prefix_match', 'suffix_match', 'contains_match', 'safe_regex_match'],
];

/** The log, and the part of the configuration that a matcher belongs to. */
export interface MatcherContext {
  readonly log: LogFields;
  readonly when: When;
  /** The part of the configuration that needs the value; see {@link NeedOptions}. */
  readonly user: string;
  readonly instead?: NeedOptions['instead'];
}

/** Compiles the list `key` of envoy.config.route.v3.HeaderMatcher, which must all match. */
export function headerMatchers(reader: FieldReader, key: string, context: MatcherContext): Predicate {
  const all = reader.mappings(key, 'header matchers', 'name').map((each) => headerMatcher(each, context));
  return (values) => all.every((matches) => matches?.(values) === true);
}

/** Compiles envoy.config.route.v3.HeaderMatcher. Reports problems and returns undefined. */
export function headerMatcher(reader: FieldReader, context: MatcherContext): Predicate | undefined {
  reader.expectKeys(KEYS);
  const name = reader.text('name');
  if (name === undefined) {
    reader.problems.error(reader.map.at, reader.path, '"name" is missing; write the name of the header');
    return undefined;
  }
  const value = context.log.header(name, context.when, needOf(reader, context));
  const invert = reader.boolean('invert_match') === true;
  const missingIsEmpty = reader.boolean('treat_missing_header_as_empty') === true;
  const valueKeys = KEYS.filter((key) => key.endsWith('_match') && !/^(?:present|invert)_/.test(key));
  if (!valueKeys.some((key) => reader.has(key))) {
    const wanted = reader.boolean('present_match') !== false;
    return (values) => ((value(values) !== undefined || missingIsEmpty) === wanted) !== invert;
  }
  const matches = valueMatcher(reader);
  if (matches === undefined) return undefined;
  return (values) => {
    const text = value(values) ?? (missingIsEmpty ? '' : undefined);
    // Without the header, an inverted match does not match either.
    return text !== undefined && matches(text) !== invert;
  };
}

/** Returns the need of a matcher. */
export function needOf(reader: FieldReader, { user, instead }: MatcherContext): NeedOptions {
  return { reader, user, ...(instead !== undefined && { instead }) };
}

function valueMatcher(reader: FieldReader): TextPredicate | undefined {
  for (const kind of ['exact', 'prefix', 'suffix', 'contains'] as const) {
    const text = reader.text(`${kind}_match`);
    if (text !== undefined) return comparison(kind, text);
  }
  const string = reader.mapping('string_match');
  if (string !== undefined) return stringMatcher(string);
  const regex = reader.mapping('safe_regex_match');
  if (regex !== undefined) return regexMatcher(regex);
  const range = reader.mapping('range_match');
  return range === undefined ? undefined : rangeMatcher(range);
}

/** Compiles envoy.type.v3.Int64Range, whose end is exclusive. */
function rangeMatcher(reader: FieldReader): TextPredicate {
  const limit = Number.MAX_SAFE_INTEGER;
  const start = reader.integer('start', -limit, limit) ?? 0;
  const end = reader.integer('end', -limit, limit) ?? 0;
  return (text) => {
    const number = /^\s*[+-]?\d+\s*$/.test(text) ? Number(text) : Number.NaN;
    return number >= start && number < end;
  };
}
