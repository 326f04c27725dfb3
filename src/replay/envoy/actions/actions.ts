import type { FieldReader } from '../../../config/yaml/field-reader.js';
import type { LineValues } from '../../log/log-format.js';
import type { LogValue, NeedOptions, When } from '../log-fields.js';
import { type Action, type ActionContext, NO_ENTRY } from './action.js';
import { addressMatcher, maskedAddress } from './address.js';
import { formatter } from './formatter.js';
import { headerMatchers } from './header-matcher.js';
import { metadataAction } from './metadata-action.js';
import { queryParameter, queryParameterMatchers } from './query-matcher.js';

/** Compiles the fields of one action. Reports problems and returns undefined. */
type Compile = (reader: FieldReader, context: ActionContext, when: When) => Action | undefined;

/** Actions of envoy.config.route.v3.RateLimit.Action by field name. */
const ACTIONS: ReadonlyMap<string, Compile> = new Map<string, Compile>([
  ['source_cluster', sourceCluster],
  ['destination_cluster', destinationCluster],
  ['request_headers', requestHeaders],
  ['query_parameters', queryParameters],
  ['remote_address', remoteAddress],
  ['generic_key', genericKey],
  ['header_value_match', headerValueMatch],
  ['dynamic_metadata', metadataAction],
  ['metadata', metadataAction],
  ['masked_remote_address', maskedRemoteAddress],
  ['query_parameter_value_match', queryParameterValueMatch],
  ['remote_address_match', remoteAddressMatch],
]);

/** Compiles an item of `actions`. Reports problems and returns undefined. */
export function compileAction(reader: FieldReader, context: ActionContext, when: When): Action | undefined {
  const [field] = reader.map.fields.values();
  const compile = field === undefined ? undefined : ACTIONS.get(field.key);
  if (field === undefined || compile === undefined || reader.map.fields.size > 1) {
    const name = field?.shown === true ? `"${field.key.slice(0, 60)}"` : 'this action';
    const problem =
      field?.key === 'extension'
        ? 'an extension cannot be replayed, because the log does not contain its result'
        : `${name} is not a single action that can be replayed`;
    const known = `use one of ${[...ACTIONS.keys()].join(', ')}`;
    reader.problems.error(field?.keyAt ?? reader.map.at, reader.path, `${problem}; ${known}`);
    return undefined;
  }
  const fields = reader.mapping(field.key);
  return fields === undefined ? undefined : compile(fields, context, when);
}

function need(reader: FieldReader): NeedOptions {
  return { reader, user: reader.path.slice(reader.path.lastIndexOf('.') + 1) };
}

/** Reads a text without which the action is not valid. */
export function required(reader: FieldReader, key: string): string {
  const text = reader.text(key);
  if (text === undefined && !reader.has(key))
    reader.problems.error(reader.map.at, reader.path, `"${key}" is missing; write a value`);
  return text ?? '';
}

function sourceCluster(reader: FieldReader, context: ActionContext): Action | undefined {
  const { localCluster } = context;
  if (localCluster === undefined) {
    reader.problems.error(
      reader.map.at,
      reader.path,
      'the configuration does not contain the name of the local cluster; set node.cluster in the bootstrap of Envoy',
    );
    return undefined;
  }
  return { entry: () => ({ key: 'source_cluster', value: localCluster }) };
}

function destinationCluster(reader: FieldReader, { log, knowsClusters }: ActionContext): Action {
  const logged: LogValue = knowsClusters
    ? () => undefined
    : log.value(['UPSTREAM_CLUSTER_RAW', 'UPSTREAM_CLUSTER'], need(reader));
  return {
    entry: (values, route) => {
      const value = route.cluster?.(values) ?? logged(values);
      return value === undefined ? undefined : { key: 'destination_cluster', value };
    },
  };
}

/** Returns an action for a value that may be absent. */
function valueOrSkip(reader: FieldReader, value: LogValue): Action {
  const key = required(reader, 'descriptor_key');
  const absent = reader.boolean('skip_if_absent') === true ? NO_ENTRY : undefined;
  return {
    entry: (values) => {
      const text = value(values);
      return text === undefined ? absent : { key, value: text };
    },
  };
}

function requestHeaders(reader: FieldReader, { log }: ActionContext, when: When): Action {
  reader.expectKeys(['header_name', 'descriptor_key', 'skip_if_absent']);
  const name = required(reader, 'header_name');
  log.addSource(reader.text('descriptor_key') ?? '', name.toLowerCase());
  return valueOrSkip(reader, log.header(name, when, need(reader)));
}

function queryParameters(reader: FieldReader, { log }: ActionContext, when: When): Action {
  reader.expectKeys(['query_parameter_name', 'descriptor_key', 'skip_if_absent']);
  const name = required(reader, 'query_parameter_name');
  log.addSource(reader.text('descriptor_key') ?? '', name);
  const path = log.path(when, need(reader));
  return valueOrSkip(reader, (values) => queryParameter(path(values), name, true));
}

function remoteAddress(reader: FieldReader, { log }: ActionContext): Action {
  const address = log.remoteAddress(need(reader));
  return {
    entry: (values) => {
      const value = address(values);
      return value === undefined ? undefined : { key: 'remote_address', value };
    },
  };
}

function maskedRemoteAddress(reader: FieldReader, { log }: ActionContext): Action {
  reader.expectKeys(['v4_prefix_mask_len', 'v6_prefix_mask_len']);
  const v4Length = reader.integer('v4_prefix_mask_len', 0, 32) ?? 32;
  const v6Length = reader.integer('v6_prefix_mask_len', 0, 128) ?? 128;
  const address = log.remoteAddress(need(reader));
  return {
    entry: (values) => {
      const value = maskedAddress(address(values) ?? '', v4Length, v6Length);
      return value === undefined ? undefined : { key: 'masked_remote_address', value };
    },
  };
}

/** Envoy 1.40 does not substitute operators in `descriptor_value` of this action. */
function genericKey(reader: FieldReader): Action {
  reader.expectKeys(['descriptor_value', 'descriptor_key', 'default_value']);
  const entry = {
    key: reader.text('descriptor_key') || 'generic_key',
    value: required(reader, 'descriptor_value'),
  };
  return { entry: () => entry };
}

function headerValueMatch(reader: FieldReader, { log }: ActionContext, when: When): Action {
  reader.expectKeys(['descriptor_value', 'descriptor_key', 'default_value', 'expect_match', 'headers']);
  const matches = headerMatchers(reader, 'headers', { log, when, user: need(reader).user });
  return matchAction(reader, 'header_match', matches);
}

function queryParameterValueMatch(reader: FieldReader, { log }: ActionContext, when: When): Action {
  reader.expectKeys([
    'descriptor_value',
    'descriptor_key',
    'default_value',
    'expect_match',
    'query_parameters',
  ]);
  const matches = queryParameterMatchers(
    reader,
    'query_parameters',
    { log, when, user: need(reader).user },
    true,
  );
  return matchAction(reader, 'query_match', matches);
}

function matchAction(
  reader: FieldReader,
  defaultKey: string,
  matches: (values: LineValues) => boolean,
): Action {
  const entry = {
    key: reader.text('descriptor_key') || defaultKey,
    value: required(reader, 'descriptor_value'),
  };
  const expected = reader.boolean('expect_match') !== false;
  return { entry: (values) => (matches(values) === expected ? entry : undefined) };
}

function remoteAddressMatch(reader: FieldReader, { log }: ActionContext): Action {
  reader.expectKeys(['descriptor_value', 'descriptor_key', 'default_value', 'address_matcher']);
  const key = reader.text('descriptor_key') || 'remote_address_match';
  const value = formatter(reader, 'descriptor_value', log, need(reader));
  const fallback = reader.text('default_value');
  const matcher = reader.mapping('address_matcher');
  const matches = matcher === undefined ? () => false : addressMatcher(matcher);
  const address = log.remoteAddress(need(reader));
  return {
    entry: (values) => {
      if (!matches(address(values) ?? '')) return undefined;
      const text = value(values) || fallback;
      return text === undefined ? undefined : { key, value: text };
    },
  };
}
