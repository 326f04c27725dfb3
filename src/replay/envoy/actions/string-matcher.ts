import type { FieldReader } from '../../../config/yaml/field-reader.js';
import { unboundedWork } from '../../../policy/match-work.js';
import { patternSize, RegexList } from '../../../policy/values/regex-matcher.js';

/** A condition of a text. */
export type TextPredicate = (text: string) => boolean;

const WORK = unboundedWork();

/** Compiles envoy.type.matcher.v3.StringMatcher. Reports problems and returns undefined. */
export function stringMatcher(reader: FieldReader): TextPredicate | undefined {
  reader.expectKeys(['exact', 'prefix', 'suffix', 'contains', 'safe_regex', 'ignore_case']);
  const regex = reader.mapping('safe_regex');
  if (regex !== undefined) return regexMatcher(regex);
  const kind = (['exact', 'prefix', 'suffix', 'contains'] as const).find((key) => reader.has(key));
  const text = kind === undefined ? undefined : reader.text(kind);
  if (kind === undefined || text === undefined) {
    reader.problems.error(
      reader.map.at,
      reader.path,
      'the matcher has no pattern; set exact, prefix, suffix, contains or safe_regex',
    );
    return undefined;
  }
  if (reader.boolean('ignore_case') !== true) return comparison(kind, text);
  const lower = comparison(kind, text.toLowerCase());
  return (value) => lower(value.toLowerCase());
}

/** Returns a matcher for a pattern that is not a regular expression. */
export function comparison(kind: 'exact' | 'prefix' | 'suffix' | 'contains', pattern: string): TextPredicate {
  switch (kind) {
    case 'exact':
      return (text) => text === pattern;
    case 'prefix':
      return (text) => text.startsWith(pattern);
    case 'suffix':
      return (text) => text.endsWith(pattern);
    case 'contains':
      return (text) => text.includes(pattern);
  }
}

/** Compiles envoy.type.matcher.v3.RegexMatcher, which matches the whole text. */
export function regexMatcher(reader: FieldReader): TextPredicate | undefined {
  const pattern = reader.text('regex');
  if (pattern === undefined) {
    reader.problems.error(reader.map.at, reader.path, '"regex" is missing; write a regular expression');
    return undefined;
  }
  const size = patternSize(pattern);
  if (typeof size === 'string') {
    reader.error('regex', size);
    return undefined;
  }
  const list = new RegexList<true>();
  list.add([pattern], [size], true);
  return (text) => list.find(text, WORK) === true;
}
