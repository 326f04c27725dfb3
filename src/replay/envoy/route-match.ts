import type { FieldReader } from '../../config/yaml/field-reader.js';
import type { Operator } from '../log/format-string.js';
import { headerMatchers } from './actions/header-matcher.js';
import { queryParameterMatchers } from './actions/query-matcher.js';
import { regexMatcher, type TextPredicate } from './actions/string-matcher.js';
import { type LogFields, type Predicate, ROUTE_NAME } from './log-fields.js';

/** Fields of RouteMatch whose result no log contains. */
const UNLOGGED = [
  ...['connect_matcher', 'path_match_policy', 'runtime_fraction', 'tls_context', 'dynamic_metadata'],
  ...['filter_state', 'cookies'],
];

/**
 * Compiles `match` of a route: envoy.config.route.v3.RouteMatch. If the name of the route is unique, a log with
 * ROUTE_NAME needs no other values.
 */
export function routeMatch(reader: FieldReader, log: LogFields, hasUniqueName: boolean): Predicate {
  const instead: readonly Operator[] = hasUniqueName ? [ROUTE_NAME] : [];
  const context = { log, when: 'start', user: 'match', instead } as const;
  const matches: Predicate[] = [];
  for (const key of UNLOGGED) {
    if (!reader.has(key)) continue;
    if (hasUniqueName) log.value([ROUTE_NAME], { reader, user: `match.${key}` });
    else
      reader.error(
        key,
        `the log does not show whether "${key}" matches; give each route of the host a name, and log ROUTE_NAME`,
      );
    matches.push(() => false);
  }
  const matchesPath = pathMatch(reader);
  if (matchesPath !== undefined) {
    const path = log.path('start', { reader, user: 'match', instead });
    matches.push((values) => {
      const text = path(values);
      return text !== undefined && matchesPath(text.split(/[?#]/, 1)[0] ?? '');
    });
  }
  if (reader.has('headers')) matches.push(headerMatchers(reader, 'headers', context));
  if (reader.has('query_parameters'))
    matches.push(queryParameterMatchers(reader, 'query_parameters', context, false));
  if (reader.has('grpc')) {
    const type = log.header('content-type', 'start', { reader, user: 'match.grpc', instead });
    matches.push((values) => /^application\/grpc(?:$|[+;])/.test(type(values) ?? ''));
  }
  return (values) => matches.every((one) => one(values));
}

/** Compiles the path specifier. Returns undefined if it matches every path. */
function pathMatch(reader: FieldReader): TextPredicate | undefined {
  const regex = reader.mapping('safe_regex');
  if (regex !== undefined) return regexMatcher(regex) ?? (() => false);
  const ignoresCase = reader.boolean('case_sensitive') === false;
  const fold = (text: string) => (ignoresCase ? text.toLowerCase() : text);
  const path = reader.text('path');
  if (path !== undefined) return (text) => fold(text) === fold(path);
  const separated = reader.text('path_separated_prefix');
  if (separated !== undefined) return (text) => `${fold(text)}/`.startsWith(`${fold(separated)}/`);
  const prefix = reader.text('prefix');
  if (prefix === undefined || prefix === '' || prefix === '/') return undefined;
  return (text) => fold(text).startsWith(fold(prefix));
}
