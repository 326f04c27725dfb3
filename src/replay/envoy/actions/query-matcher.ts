import type { FieldReader } from '../../../config/yaml/field-reader.js';
import type { Predicate } from '../log-fields.js';
import { type MatcherContext, needOf } from './header-matcher.js';
import { stringMatcher } from './string-matcher.js';

/**
 * Returns the first value of a query parameter; undefined if the path does not have it. Envoy decodes names and values
 * for the actions of rate limits, but not to match routes.
 */
export function queryParameter(path: string | undefined, name: string, decodes: boolean): string | undefined {
  const decoded = decodes ? percentDecoded : (text: string) => text;
  const question = path?.indexOf('?') ?? -1;
  if (path === undefined || question < 0) return undefined;
  const [query = ''] = path.slice(question + 1).split('#', 1);
  for (const parameter of query.split('&')) {
    const equals = parameter.indexOf('=');
    const key = equals < 0 ? parameter : parameter.slice(0, equals);
    if (decoded(key) === name) return equals < 0 ? '' : decoded(parameter.slice(equals + 1));
  }
  return undefined;
}

/** Decodes `%20`, but not `+`. Invalid escapes do not change. */
function percentDecoded(text: string): string {
  if (!text.includes('%')) return text;
  return text.replaceAll(/(?:%[0-9a-fA-F]{2})+/g, (escapes) =>
    Buffer.from(escapes.replaceAll('%', ''), 'hex').toString('utf8'),
  );
}

/** Compiles a list of envoy.config.route.v3.QueryParameterMatcher, which must all match. */
export function queryParameterMatchers(
  reader: FieldReader,
  key: string,
  context: MatcherContext,
  decodes: boolean,
): Predicate {
  const all = reader
    .mappings(key, 'query parameter matchers', 'name')
    .map((each) => queryParameterMatcher(each, context, decodes));
  return (values) => all.every((matches) => matches?.(values) === true);
}

function queryParameterMatcher(
  reader: FieldReader,
  context: MatcherContext,
  decodes: boolean,
): Predicate | undefined {
  reader.expectKeys(['name', 'string_match', 'present_match']);
  const name = reader.text('name');
  if (name === undefined) {
    reader.problems.error(reader.map.at, reader.path, '"name" is missing; write the name of the parameter');
    return undefined;
  }
  const path = context.log.path(context.when, needOf(reader, context));
  const string = reader.mapping('string_match');
  if (string === undefined) return (values) => queryParameter(path(values), name, decodes) !== undefined;
  const matches = stringMatcher(string);
  if (matches === undefined) return undefined;
  return (values) => {
    const value = queryParameter(path(values), name, decodes);
    return value !== undefined && matches(value);
  };
}
