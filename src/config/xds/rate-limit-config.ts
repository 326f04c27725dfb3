import { REMOVED_POLICY_KEYS } from '../../runtime/removed-names.js';
import type { Field, Fields, MappingName } from '../read/field.js';
import { POLICY_FIELDS } from '../read/policy-fields.js';
import { WHOLE_FILE } from '../yaml/config-problem.js';
import type { YamlField, YamlList, YamlMap, YamlScalar, YamlValue } from '../yaml/yaml-document.js';

/** A decoded message: the fields that are set, by name, with the types of the proto file. */
export type Message = Readonly<Record<string, unknown>>;

/** A google.protobuf.Value with the one field that is set. */
interface XdsValue {
  readonly numberValue?: number;
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly structValue?: XdsStruct;
  readonly listValue?: { readonly values?: readonly XdsValue[] };
}
interface XdsStruct {
  readonly fields?: Readonly<Record<string, XdsValue>>;
}
/** google.protobuf.Duration or Timestamp. */
interface Seconds {
  readonly seconds?: number;
  readonly nanos?: number;
}
type Texts = Readonly<Record<string, string>>;

/** Fields of envoyproxy/ratelimit that are ignored if the given field of weir is set instead. */
const REPLACED_FIELDS: Readonly<Record<string, readonly string[]>> = {
  value: ['value_cidr', 'value_regex'],
  rate_limit: ['rate_limits'],
  unit: ['token_bucket', 'concurrency'],
  requests_per_unit: ['token_bucket', 'concurrency'],
};

/**
 * Fields of a RateLimitPolicy, which is used for both kinds of limits. The checks for files report fields that do
 * not apply to a kind.
 */
const LIMIT_FIELDS: Fields = { ...POLICY_FIELDS.rate_limit, ...POLICY_FIELDS.rate_limits_item };

/**
 * Returns the document of a policy file with the same content, so that both are checked and compiled in the same way.
 * `config` is a ratelimit.config.ratelimit.v3.RateLimitConfig. Its fields have the names in {@link POLICY_FIELDS}.
 */
export function toDocument(config: Message): YamlMap {
  return mapping('file', config);
}

function mapping(name: MappingName, message: Message): YamlMap {
  switch (name) {
    case 'rate_limit':
    case 'rate_limits_item':
      return map(Object.entries(limit(message)));
    case 'derive_rule':
      return deriveRule(message);
    default:
      return map(Object.entries(values(POLICY_FIELDS[name], message)));
  }
}

function values(fields: Fields, message: Message): Record<string, YamlValue> {
  const found: Record<string, YamlValue> = {};
  for (const [key, field] of Object.entries(fields)) {
    const isReplaced = REPLACED_FIELDS[key]?.some((other) => isSet(message[other])) === true;
    const read = isReplaced ? undefined : fieldValue(field, key, message);
    if (read !== undefined) found[key] = read;
  }
  // Their values do not matter.
  for (const key of REMOVED_POLICY_KEYS.keys()) if (isSet(message[key])) found[key] = map([]);
  return found;
}

function limit(message: Message): Record<string, YamlValue> {
  const found = values(LIMIT_FIELDS, message);
  const isMissing = found['unit'] !== undefined && found['requests_per_unit'] === undefined;
  // Protobuf does not distinguish 0 from an absent field. If there is a unit, 0 is intended.
  return isMissing && message['unlimited'] !== true ? { ...found, requests_per_unit: plain('0') } : found;
}

/** Returns a derive rule. Its condition keys come from the sender, so messages do not show them, as with files. */
function deriveRule(message: Message): YamlMap {
  const conditions = Object.entries((message['conditions'] ?? {}) as Texts).map(
    // A condition named "value" must not be taken for the value of the rule.
    ([key, item]) => [key === 'value' ? 'conditions.value' : key, text(item)] as const,
  );
  const own = Object.entries(values(POLICY_FIELDS.derive_rule, message));
  return map([...conditions, ...own], conditions.length);
}

/**
 * Returns the value of one field; undefined if it is absent. Its form follows from the kind, except for those that
 * {@link Field.xds} names. Texts that are empty, numbers that are 0 and lists without items count as absent.
 */
function fieldValue(field: Field, key: string, message: Message): YamlValue | undefined {
  const item = message[key];
  const { xds } = field;
  if (xds === 'file_only') return undefined;
  if (xds === 'kept') return field.kind === 'count' ? plain(String(item ?? 0)) : text(textOf(item));
  if (field.kind === 'word_or_mapping') return wordOrMapping(field, item, message);
  if (!isSet(item)) return undefined;
  if (xds === 'wrapped') return plain(String((item as { readonly value?: number }).value ?? 0));
  switch (field.kind) {
    case 'text':
    case 'name':
    case 'word':
      return item === '' ? undefined : text(textOf(item));
    case 'unit':
      return item === 'UNKNOWN' ? undefined : text(String(item));
    case 'count':
      return item === 0 && xds !== 'optional' ? undefined : plain(String(item));
    case 'flag':
    case 'number':
      return plain(String(item));
    case 'texts':
      return list((item as readonly string[]).map(text));
    case 'words': {
      // A single empty text is the empty list.
      const words = item as readonly string[];
      return list(words.length === 1 && words[0] === '' ? [] : words.map(text));
    }
    case 'mapping':
      return mapping(field.of, item as Message);
    case 'list':
      return list((item as readonly Message[]).map((one) => mapping(field.of, one)));
    case 'duration':
      return text(duration(item as Seconds));
    case 'time':
      return text(time(item as Seconds));
    case 'metadata':
      return struct(item as XdsStruct);
    case 'key_table': {
      const tenants = textsMap(((item as Message)['tenants'] ?? {}) as Texts);
      return map(tenants, tenants.length);
    }
    case 'kept_hits':
      return map(textsMap(item as Texts));
    case 'headers': {
      const headers = textsMap(item as Texts);
      return headers.length === 0 ? undefined : list([map(headers)]);
    }
    // Only files have these.
    case 'plan_values':
    case 'any':
      return undefined;
  }
}

/** Returns the word of a field, or the mapping that another field, or the field `custom` of a message, has instead. */
function wordOrMapping(
  { of, xds }: Extract<Field, { readonly kind: 'word_or_mapping' }>,
  item: unknown,
  message: Message,
): YamlValue | undefined {
  if (xds === 'preset') {
    if (!isSet(item)) return undefined;
    const { preset, custom } = item as Message;
    return custom === undefined ? text(textOf(preset)) : mapping(of, custom as Message);
  }
  const other = typeof xds === 'object' ? message[xds.mappingIn] : undefined;
  if (other !== undefined) return mapping(of, other as Message);
  return item === undefined || item === '' ? undefined : text(textOf(item));
}

function textOf(item: unknown): string {
  return (item ?? '') as string;
}

function textsMap(texts: Texts): (readonly [string, YamlScalar])[] {
  return Object.entries(texts).map(([key, item]) => [key, text(item)] as const);
}

/**
 * Returns the duration in Go's notation, without rounding. Both parts have the same sign
 * (google/protobuf/duration.proto).
 */
function duration({ seconds = 0, nanos = 0 }: Seconds): string {
  const sign = seconds < 0 || nanos < 0 ? '-' : '';
  const fraction = nanos === 0 ? '' : `${Math.abs(nanos)}ns`;
  return sign + (seconds === 0 && nanos !== 0 ? fraction : `${Math.abs(seconds)}s${fraction}`);
}

/**
 * Returns an RFC 3339 time. A time that RFC 3339 cannot express is written in seconds, which the checks for files
 * reject.
 */
function time({ seconds = 0, nanos = 0 }: Seconds): string {
  const [from, to] = [-62_135_596_800, 253_402_300_799];
  if (seconds < from || seconds > to || nanos < 0 || nanos > 999_999_999) return `${seconds}s${nanos}ns`;
  const date = new Date(seconds * 1000).toISOString();
  return `${date.slice(0, 19)}.${String(nanos).padStart(9, '0')}Z`;
}

function struct({ fields = {} }: XdsStruct): YamlMap {
  return map(Object.entries(fields).map(([key, item]) => [key, value(item)] as const));
}

function value({ structValue, listValue, stringValue, numberValue, boolValue }: XdsValue): YamlValue {
  if (structValue !== undefined) return struct(structValue);
  if (listValue !== undefined) return list((listValue.values ?? []).map(value));
  if (stringValue !== undefined) return text(stringValue);
  return plain(String(numberValue ?? boolValue ?? null));
}

/** Returns a mapping. Messages do not show its first `hidden` keys. */
function map(pairs: readonly (readonly [string, YamlValue])[], hidden = 0): YamlMap {
  const fields = new Map<string, YamlField>();
  pairs.forEach(([key, item], index) => {
    fields.set(key, { key, keyAt: WHOLE_FILE, index, shown: index >= hidden, value: item });
  });
  return { kind: 'map', fields, at: WHOLE_FILE };
}

function list(items: readonly YamlValue[]): YamlList {
  return { kind: 'list', items, at: WHOLE_FILE };
}

function text(content: string): YamlScalar {
  return { kind: 'scalar', text: content, plain: false, at: WHOLE_FILE };
}

function plain(content: string): YamlScalar {
  return { kind: 'scalar', text: content, plain: true, at: WHOLE_FILE };
}

function isSet(item: unknown): boolean {
  return item !== undefined && !(Array.isArray(item) && item.length === 0);
}
