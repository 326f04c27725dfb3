import { itemsAt, textAt, valueAt } from '../../../config/manifests/manifest.js';
import type { Position, ProblemList } from '../../../config/yaml/config-problem.js';
import { FieldReader } from '../../../config/yaml/field-reader.js';
import type { YamlMap, YamlValue } from '../../../config/yaml/yaml-document.js';
import type { ActionContext } from '../actions/action.js';
import { type CompiledRateLimit, compileRateLimit } from '../rate-limit.js';

/** A rule of a BackendTrafficPolicy (gateway.envoyproxy.io/v1alpha1, RateLimitRule). */
export interface GatewayRule {
  /** The first entry of each descriptor, which is also the last part of the domain; undefined for the route's name. */
  readonly sharedName: string | undefined;
  readonly rateLimits: readonly CompiledRateLimit[];
}

/** A message of Envoy as plain data. */
type Data = string | number | boolean | readonly Data[] | { readonly [key: string]: Data };

/**
 * Reads `rules` of a policy named `namespace/name`, and compiles the messages that Envoy Gateway sends to Envoy for
 * these rules. Entries have the number of the rule among the rules that are shared, or among those that are not.
 */
export function readGatewayRules(
  policy: YamlMap,
  name: string,
  problems: ProblemList,
  context: ActionContext,
): readonly GatewayRule[] {
  const counts = { shared: 0, own: 0 };
  return itemsAt(policy, 'spec', 'rateLimit', 'global', 'rules').map((rule, i) => {
    const isShared = textAt(rule, 'shared') === 'true';
    const index = isShared ? counts.shared++ : counts.own++;
    const path = `spec.rateLimit.global.rules[${i}]`;
    const rateLimits = messagesOf(rule, index).flatMap((message) => {
      const reader = new FieldReader(yamlOf(message, rule.at) as YamlMap, path, problems);
      return compileRateLimit(reader, 'filter', context) ?? [];
    });
    return { sharedName: isShared ? `${name}/rule/${i}` : undefined, rateLimits };
  });
}

/** Returns the RateLimit messages of a rule: for each method, one for the request, and one for its response. */
function messagesOf(rule: YamlValue, index: number): readonly Data[] {
  const selectors = itemsAt(rule, 'clientSelectors');
  const all = (key: string) => selectors.flatMap((selector) => itemsAt(selector, key));
  const [headers, methods, queryParams] = [all('headers'), all('methods'), all('queryParams')];
  const path = selectors.flatMap((selector) => valueAt(selector, 'path') ?? []).at(-1);
  const cidr = selectors.flatMap((selector) => valueAt(selector, 'sourceCIDR') ?? []).at(-1);
  const key = (match: number) => `rule-${index}-match-${match}`;
  const before = headers.map((header, i) => headerAction(header, key(i)));
  const after = [
    ...(path === undefined ? [] : [pathAction(path, `rule-${index}-path`)]),
    ...(cidr === undefined ? [] : addressActions(cidr)),
    ...queryParams.map((parameter, i) => queryAction(parameter, key(headers.length + i))),
  ];
  const ofMethods =
    methods.length === 0
      ? [[]]
      : methods.map((method) => [
          valueMatch(`rule-${index}-method`, method, {
            name: ':method',
            string_match: { exact: textAt(method, 'value') },
          }),
        ]);
  const metadata = valueAt(rule, 'limit', 'fromMetadata');
  const limit =
    metadata === undefined ? {} : { limit: { dynamic_metadata: { metadata_key: metadataKey(metadata) } } };
  return ofMethods.flatMap((method) => {
    const matches = [...before, ...method, ...after];
    const actions: Data = matches.length > 0 ? matches : [generic(key(-1))];
    const [request, response] = [valueAt(rule, 'cost', 'request'), valueAt(rule, 'cost', 'response')];
    const start: Data = { actions, ...limit, ...(request !== undefined && { hits_addend: hits(request) }) };
    if (response === undefined) return [start];
    return [start, { actions, ...limit, hits_addend: hits(response), apply_on_stream_done: true }];
  });
}

function generic(key: string): Data {
  return { generic_key: { descriptor_key: key, descriptor_value: key } };
}

function isInverted(match: YamlValue): boolean {
  return textAt(match, 'invert') === 'true';
}

function headerAction(header: YamlValue, key: string): Data {
  const name = textAt(header, 'name');
  if (textAt(header, 'type') === 'Distinct')
    return { request_headers: { header_name: name, descriptor_key: key } };
  return valueMatch(key, header, { name, string_match: textMatch(header) });
}

function valueMatch(key: string, match: YamlValue, header: Data): Data {
  const expect_match = !isInverted(match);
  return {
    header_value_match: { descriptor_key: key, descriptor_value: key, expect_match, headers: [header] },
  };
}

/** Returns the StringMatcher of a match with a type and a value. */
function textMatch(match: YamlValue): Data {
  const value = textAt(match, 'value');
  return textAt(match, 'type') === 'RegularExpression' ? { safe_regex: { regex: value } } : { exact: value };
}

function pathAction(path: YamlValue, key: string): Data {
  return valueMatch(key, path, { name: ':path', string_match: pathMatch(path) });
}

/** Envoy Gateway compares the whole path, with its query. A prefix ends where a segment does. */
function pathMatch(path: YamlValue): Data {
  const type = textAt(path, 'type') || 'PathPrefix';
  if (type !== 'PathPrefix') return textMatch(path);
  const prefix = textAt(path, 'value');
  if (prefix === '/') return { prefix };
  const escaped = prefix.replace(/\/$/, '').replaceAll(/[\\.+*?()|[\]{}^$]/g, String.raw`\$&`);
  return { safe_regex: { regex: `^${escaped}(/.*|\\?.*|#.*|;.*|$)` } };
}

function addressActions(cidr: YamlValue): readonly Data[] {
  const value = textAt(cidr, 'value');
  const [prefix = '', length = prefix.includes(':') ? '128' : '32'] = value.split('/');
  const invert_match = isInverted(cidr);
  const address_matcher = {
    ranges: [{ address_prefix: prefix, prefix_len: Number(length) }],
    invert_match,
  };
  const action = (descriptor_key: string, descriptor_value: string): Data => ({
    remote_address_match: { descriptor_key, descriptor_value, address_matcher },
  });
  return [
    action('masked_remote_address', invert_match ? `invert:${value}` : value),
    ...(textAt(cidr, 'type') === 'Distinct'
      ? [action('remote_address', '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%')]
      : []),
  ];
}

function queryAction(parameter: YamlValue, key: string): Data {
  const name = textAt(parameter, 'name');
  if (textAt(parameter, 'type') === 'Distinct')
    return { query_parameters: { query_parameter_name: name, descriptor_key: key } };
  const match = {
    descriptor_key: key,
    descriptor_value: key,
    expect_match: !isInverted(parameter),
    query_parameters: [{ name, string_match: textMatch(parameter) }],
  };
  return { query_parameter_value_match: match };
}

function metadataKey(metadata: YamlValue): Data {
  return { key: textAt(metadata, 'namespace'), path: [{ key: textAt(metadata, 'key') }] };
}

/** Returns HitsAddend for a RateLimitCostSpecifier. */
function hits(cost: YamlValue): Data {
  const metadata = valueAt(cost, 'metadata');
  if (metadata === undefined) return { number: Number(textAt(cost, 'number')) };
  return { format: `%DYNAMIC_METADATA(${textAt(metadata, 'namespace')}:${textAt(metadata, 'key')})%` };
}

/** Returns data as YAML whose values are all at one position. */
function yamlOf(data: Data, at: Position): YamlValue {
  if (typeof data !== 'object')
    return { kind: 'scalar', text: String(data), plain: typeof data !== 'string', at };
  if (Array.isArray(data)) return { kind: 'list', items: data.map((item) => yamlOf(item, at)), at };
  const fields = Object.entries(data).map(
    ([key, value], index) => [key, { key, keyAt: at, index, shown: true, value: yamlOf(value, at) }] as const,
  );
  return { kind: 'map', fields: new Map(fields), at };
}
