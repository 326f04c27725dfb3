/**
 * The only list of the policy format: every mapping, every key in it, and the form in which a management server sends
 * the value. Everything that needs the keys is derived from this list or compared to it by a test: the readers (through
 * policy-keys.ts), the JSON Schema, the xDS messages (proto/ratelimit/config/ratelimit/v3/rls_conf.proto) and the
 * manual.
 */

/** The mappings of a policy, with their names in messages and the manual. */
export type MappingName =
  | 'file'
  | 'descriptor'
  | 'rate_limit'
  | 'rate_limits_item'
  | 'token_bucket'
  | 'concurrency'
  | 'hold'
  | 'replaced_rule'
  | 'denied_response'
  | 'on_over'
  | 'phase_schedule'
  | 'local_share'
  | 'plans'
  | 'plan_value'
  | 'derive_item'
  | 'derive_rule';

/**
 * The form of a value in an xDS resource, in the field with the name of the key:
 *
 * - `text`: string, empty if absent; `kept_text`: string, never absent
 * - `unit`: RateLimitUnit, UNKNOWN if absent
 * - `flag`: bool, false if absent; `optional_flag`: bool with presence
 * - `count`: uint32, 0 if absent; `kept_count`: uint32, never absent
 * - `optional_count`: uint32 with presence
 * - `wrapped_count`: google.protobuf.UInt32Value
 * - `percent`: double with presence
 * - `texts`: repeated string, none if absent; `families`: the same, where a single empty string is the empty list
 * - `duration`: google.protobuf.Duration; `time`: google.protobuf.Timestamp
 * - `metadata`: google.protobuf.Struct; `key_table`: KeyTable, a map of strings
 * - `phase`: string, or a PhaseSchedule in the field whose name ends in `_schedule`
 * - `store_failure`: string, or a LocalShare in the field whose name ends in `_share`
 * - `denied_response`: a DeniedResponse, whose preset is a string or whose body is a mapping
 * - `header_values`: map of strings
 * - `mapping`, `list`: one message, or several
 * - `file_only`: no field, because only files have the key
 */
export type FieldForm =
  | 'text'
  | 'kept_text'
  | 'unit'
  | 'flag'
  | 'optional_flag'
  | 'count'
  | 'kept_count'
  | 'optional_count'
  | 'wrapped_count'
  | 'percent'
  | 'texts'
  | 'families'
  | 'duration'
  | 'time'
  | 'metadata'
  | 'key_table'
  | 'phase'
  | 'store_failure'
  | 'denied_response'
  | 'header_values'
  | 'file_only'
  | { readonly mapping: MappingName }
  | { readonly list: MappingName };

/** The keys of one mapping, in the order in which messages list them. */
export type MappingFields = Readonly<Record<string, FieldForm>>;

/** Keys that set the rate of a `rate_limit`, or an item of `rate_limits`. */
export const RATE_FIELDS = {
  token_bucket: { mapping: 'token_bucket' },
  unit: 'unit',
  requests_per_unit: 'count',
  unit_multiplier: 'count',
  calendar: 'text',
  algorithm: 'text',
  burst: 'count',
  concurrency: { mapping: 'concurrency' },
  hold: { mapping: 'hold' },
  allow_debt: 'flag',
  max_debt: 'optional_count',
} as const satisfies MappingFields;

const NAMES = { name: 'text', replaces: { list: 'replaced_rule' } } as const satisfies MappingFields;

const ANSWERS = {
  on_store_failure: 'store_failure',
  response_headers: 'families',
  request_headers: 'families',
  denied_response: 'denied_response',
} as const satisfies MappingFields;

export const POLICY_FIELDS = {
  file: {
    domain: 'text',
    phase: 'phase',
    algorithm: 'text',
    response_headers: 'families',
    request_headers: 'families',
    denied_response: 'denied_response',
    decision_metadata: 'optional_flag',
    on_store_failure: 'store_failure',
    on_unmatched: 'text',
    enforce_percent: 'percent',
    derive: { list: 'derive_item' },
    // The rows are a file of weir's machine, which a management server cannot name.
    plans: 'file_only',
    descriptors: { list: 'descriptor' },
  },
  descriptor: {
    key: 'text',
    value: 'text',
    value_cidr: 'texts',
    value_regex: 'texts',
    phase: 'phase',
    share_threshold: 'flag',
    shadow_mode: 'flag',
    quota_mode: 'flag',
    detailed_metric: 'flag',
    value_to_metric: 'flag',
    metadata: 'metadata',
    rate_limit: { mapping: 'rate_limit' },
    rate_limits: { list: 'rate_limits_item' },
    enforce_percent: 'percent',
    on_unmatched: 'text',
    descriptors: { list: 'descriptor' },
  },
  rate_limit: { ...NAMES, ...RATE_FIELDS, unlimited: 'flag', ...ANSWERS, on_over: { mapping: 'on_over' } },
  rate_limits_item: {
    ...NAMES,
    ...RATE_FIELDS,
    ...ANSWERS,
    on_over: { mapping: 'on_over' },
    // biome-ignore lint/suspicious/noThenProperty: a key of policies
    then: 'text',
    phase: 'phase',
    shadow_mode: 'optional_flag',
    enforce_percent: 'percent',
  },
  token_bucket: { max_tokens: 'kept_count', tokens_per_fill: 'wrapped_count', fill_interval: 'duration' },
  concurrency: { max: 'kept_count', expires_after: 'duration', retry_after: 'duration' },
  hold: {
    amount: 'count',
    from: 'text',
    expires_after: 'duration',
    unknown: 'text',
    pair: 'text',
  },
  replaced_rule: { name: 'text' },
  denied_response: { body: 'kept_text', content_type: 'text' },
  on_over: { allow: 'flag', request_headers: 'header_values', metadata: 'metadata' },
  phase_schedule: { grace_period: 'time', active: 'time' },
  local_share: { local: 'percent' },
  plans: {
    by: 'file_only',
    from: 'file_only',
    columns: 'file_only',
    default: 'file_only',
    define: 'file_only',
    max_drop: 'file_only',
    max_drop_from: 'file_only',
  },
  plan_value: { plan: 'file_only', default: 'file_only' },
  derive_item: {
    entry: 'text',
    from: 'texts',
    rules: { list: 'derive_rule' },
    sha256: 'key_table',
    // A management server cannot name files of weir's machine, so it sends the table itself.
    sha256_file: 'file_only',
  },
  // The mapping also has the keys of `from`, which xDS sends in the field `conditions`.
  derive_rule: { value: 'text' },
} as const satisfies Readonly<Record<MappingName, MappingFields>>;

/** Returns the keys of a mapping. */
export function keysOf(mapping: MappingName): readonly string[] {
  return Object.keys(POLICY_FIELDS[mapping]);
}
