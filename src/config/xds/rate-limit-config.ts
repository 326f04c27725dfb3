import { WHOLE_FILE } from '../yaml/config-problem.js';
import type { YamlField, YamlList, YamlMap, YamlScalar, YamlValue } from '../yaml/yaml-document.js';

/** A google.protobuf.Value as protobufjs decodes it: `kind` names the field that is set. */
export interface XdsValue {
  readonly kind?: 'nullValue' | 'numberValue' | 'stringValue' | 'boolValue' | 'structValue' | 'listValue';
  readonly numberValue?: number;
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly structValue?: XdsStruct;
  readonly listValue?: { readonly values: readonly XdsValue[] };
}
export interface XdsStruct {
  readonly fields: Readonly<Record<string, XdsValue>>;
}

/** ratelimit.config.ratelimit.v3.RateLimitConfig (proto/ratelimit/config/ratelimit/v3/rls_conf.proto). */
export interface RateLimitConfig {
  readonly name: string;
  readonly domain: string;
  readonly descriptors: readonly RateLimitDescriptor[];
  readonly responseHeaders: readonly string[];
  readonly phase: string;
}
export interface RateLimitDescriptor {
  readonly key: string;
  readonly value: string;
  readonly rateLimit: RateLimitPolicy | null;
  readonly descriptors: readonly RateLimitDescriptor[];
  readonly shadowMode: boolean;
  readonly detailedMetric: boolean;
  readonly quotaMode: boolean;
  readonly metadata: XdsStruct | null;
  readonly shareThreshold: boolean;
  readonly valueToMetric: boolean;
  readonly phase: string;
}
export interface RateLimitPolicy {
  /** Name in RateLimitUnit, or the number where it has none. */
  readonly unit: string | number;
  readonly requestsPerUnit: number;
  readonly unlimited: boolean;
  readonly name: string;
  readonly replaces: readonly { readonly name: string }[];
  readonly tokenBucket: TokenBucket | null;
}
export interface TokenBucket {
  readonly maxTokens: number;
  readonly tokensPerFill: { readonly value: number } | null;
  readonly fillInterval: { readonly seconds: number; readonly nanos: number } | null;
}

/**
 * The document that a policy file with the same content would be, so that both are checked and compiled alike. A field
 * that holds its default is left out, as the wire does not tell it from an absent one; where absent and 0 differ in a
 * file, 0 is meant.
 */
export function toDocument(config: RateLimitConfig): YamlMap {
  return map({
    domain: text(config.domain),
    phase: textUnlessEmpty(config.phase),
    response_headers: listUnlessEmpty(config.responseHeaders.map(text)),
    descriptors: listUnlessEmpty(config.descriptors.map(descriptor)),
  });
}

function descriptor(node: RateLimitDescriptor): YamlMap {
  return map({
    key: text(node.key),
    value: textUnlessEmpty(node.value),
    phase: textUnlessEmpty(node.phase),
    share_threshold: flag(node.shareThreshold),
    shadow_mode: flag(node.shadowMode),
    quota_mode: flag(node.quotaMode),
    detailed_metric: flag(node.detailedMetric),
    value_to_metric: flag(node.valueToMetric),
    metadata: node.metadata === null ? undefined : struct(node.metadata),
    rate_limit: node.rateLimit === null ? undefined : rateLimit(node.rateLimit),
    descriptors: listUnlessEmpty(node.descriptors.map(descriptor)),
  });
}

function rateLimit(policy: RateLimitPolicy): YamlMap {
  const { unit, requestsPerUnit, tokenBucket } = policy;
  const hasUnit = tokenBucket === null && unit !== 'UNKNOWN';
  // Of a rule that is unlimited only a number that was written is worth a word.
  const hasNumber = tokenBucket === null && (requestsPerUnit > 0 || (hasUnit && !policy.unlimited));
  return map({
    name: textUnlessEmpty(policy.name),
    replaces: listUnlessEmpty(policy.replaces.map(({ name }) => map({ name: text(name) }))),
    unlimited: flag(policy.unlimited),
    unit: hasUnit ? text(String(unit)) : undefined,
    requests_per_unit: hasNumber ? plain(String(requestsPerUnit)) : undefined,
    token_bucket: tokenBucket === null ? undefined : bucket(tokenBucket),
  });
}

function bucket({ maxTokens, tokensPerFill, fillInterval }: TokenBucket): YamlMap {
  return map({
    max_tokens: plain(String(maxTokens)),
    tokens_per_fill: tokensPerFill === null ? undefined : plain(String(tokensPerFill.value)),
    fill_interval: fillInterval === null ? undefined : text(duration(fillInterval)),
  });
}

/** Go's syntax, exactly: both parts have the same sign (google/protobuf/duration.proto). */
function duration({ seconds, nanos }: { readonly seconds: number; readonly nanos: number }): string {
  const sign = seconds < 0 || nanos < 0 ? '-' : '';
  return `${sign}${Math.abs(seconds)}s${Math.abs(nanos)}ns`;
}

function struct({ fields }: XdsStruct): YamlMap {
  return map(Object.fromEntries(Object.entries(fields).map(([key, item]) => [key, value(item)])));
}

function value(item: XdsValue): YamlValue {
  switch (item.kind) {
    case 'structValue':
      return struct(item.structValue ?? { fields: {} });
    case 'listValue':
      return list((item.listValue?.values ?? []).map(value));
    case 'stringValue':
      return text(item.stringValue ?? '');
    case 'numberValue':
      return plain(String(item.numberValue ?? 0));
    case 'boolValue':
      return plain(String(item.boolValue ?? false));
    default:
      return plain('null');
  }
}

function map(values: Readonly<Record<string, YamlValue | undefined>>): YamlMap {
  const fields = new Map<string, YamlField>();
  for (const [key, item] of Object.entries(values)) {
    if (item === undefined) continue;
    fields.set(key, { key, keyAt: WHOLE_FILE, index: fields.size, shown: true, value: item });
  }
  return { kind: 'map', fields, at: WHOLE_FILE };
}

function list(items: readonly YamlValue[]): YamlList {
  return { kind: 'list', items, at: WHOLE_FILE };
}

function listUnlessEmpty(items: readonly YamlValue[]): YamlList | undefined {
  return items.length === 0 ? undefined : list(items);
}

function text(content: string): YamlScalar {
  return { kind: 'scalar', text: content, plain: false, at: WHOLE_FILE };
}

function textUnlessEmpty(content: string): YamlScalar | undefined {
  return content === '' ? undefined : text(content);
}

function plain(content: string): YamlScalar {
  return { kind: 'scalar', text: content, plain: true, at: WHOLE_FILE };
}

function flag(set: boolean): YamlScalar | undefined {
  return set ? plain('true') : undefined;
}
