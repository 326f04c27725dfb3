import { valueAt } from '../../../config/manifests/manifest.js';
import type { FieldReader } from '../../../config/yaml/field-reader.js';
import { readPlain } from '../../../config/yaml/yaml-scalar.js';
import type { LogValue, When } from '../log-fields.js';
import { type Action, type ActionContext, NO_ENTRY, type RouteFacts } from './action.js';

/** Keys of a value in metadata: the namespace, and then at least one key. */
export type MetadataPath = readonly string[];

/** The path of the hold token that weir returns; see docs/policy/concurrency.md. */
const HOLD_TOKEN = 'envoy.filters.http.ratelimit:hold';

/** The operators for the sources of envoy.config.route.v3.RateLimit.Action.MetaData. */
const SOURCES: ReadonlyMap<string, (path: string) => string> = new Map([
  ['DYNAMIC', (path: string) => `DYNAMIC_METADATA(${path})`],
  ['ROUTE_ENTRY', (path: string) => `METADATA(ROUTE:${path})`],
  ['CLUSTER_ENTRY', (path: string) => `METADATA(CLUSTER:${path})`],
]);

/** Reads envoy.type.metadata.v3.MetadataKey in the field `key`. Reports problems and returns undefined. */
export function metadataPath(reader: FieldReader, key: string): MetadataPath | undefined {
  const fields = reader.mapping(key);
  const namespace = fields?.text('key');
  const path = fields?.mappings('path', 'path segments', 'key').map((segment) => segment.text('key') ?? '');
  if (namespace !== undefined && path !== undefined && path.length > 0) return [namespace, ...path];
  reader.problems.error(
    reader.map.at,
    reader.path,
    `"${key}" must have a "key", which is the namespace, and a "path"; write { key: namespace, path: [{ key: name }] }`,
  );
  return undefined;
}

/**
 * Compiles envoy.config.route.v3.RateLimit.Action.MetaData, and its predecessor DynamicMetaData. Envoy uses only
 * strings, and ignores a number. The log does not tell them apart, so the replay uses both.
 */
export function metadataAction(reader: FieldReader, context: ActionContext, when: When): Action | undefined {
  reader.expectKeys(['descriptor_key', 'metadata_key', 'default_value', 'source', 'skip_if_absent']);
  const key = reader.text('descriptor_key') ?? '';
  const path = metadataPath(reader, 'metadata_key');
  const source = reader.choice('source', [...SOURCES.keys()]) ?? 'DYNAMIC';
  if (path === undefined) return undefined;
  const name = path.join(':');
  if (when === 'end' && source === 'DYNAMIC' && name === HOLD_TOKEN) {
    // The hold lasts as long as the request.
    context.log.value(['DURATION'], { reader, user: 'the hold token' });
    return { entry: () => ({ key, value: '' }), isHoldToken: true };
  }
  const fallback = reader.text('default_value') || undefined;
  const absent = reader.boolean('skip_if_absent') === true ? NO_ENTRY : undefined;
  const value = metadataValue(reader, context, source, path, fallback !== undefined || absent === NO_ENTRY);
  return {
    entry: (values, route) => {
      const text = value(values, route) || fallback;
      return text === undefined ? absent : { key, value: text };
    },
  };
}

type MetadataValue = (values: Parameters<LogValue>[0], route: RouteFacts) => string | undefined;

function metadataValue(
  reader: FieldReader,
  { log, knowsMetadata }: ActionContext,
  source: string,
  path: MetadataPath,
  optional: boolean,
): MetadataValue {
  if (source === 'ROUTE_ENTRY' && knowsMetadata) return (_values, route) => stringAt(route, path);
  const operator = SOURCES.get(source)?.(path.join(':')) ?? '';
  return log.value([operator], { reader, user: 'metadata', optional });
}

function stringAt({ metadata }: RouteFacts, path: MetadataPath): string | undefined {
  const value = valueAt(metadata, ...path);
  if (value?.kind !== 'scalar') return undefined;
  return !value.plain || readPlain(value.text).kind === 'text' ? value.text : undefined;
}
