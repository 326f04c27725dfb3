import { isSameFailurePolicy, type StoreFailurePolicy } from '../../limiter/failure-policy.js';
import type { AddedHeader, OnOver, RuleSpec } from '../../policy/rule.js';
import { nearest } from '../../runtime/nearest-name.js';
import { safePrefix } from '../../runtime/shown-address.js';
import type { Fields } from './field.js';
import type { FieldReader, Located } from './field-reader.js';
import { expectKeysOf, type FieldValues, phaseOf, readFields, readMapping } from './field-values.js';
import type { RateDefaults } from './plans/plan-limit.js';
import { MAX_HEADER_LENGTH, MAX_HEADERS, POLICY_FIELDS, RATE_FIELDS, RATE_KEYS } from './policy-fields.js';
import { withLeases } from './read-leases.js';
import { readRate } from './read-rate.js';
import { answersOf, TOKEN } from './read-response.js';
import { unitOf } from './scalar-kinds.js';

export type DescriptorValues = FieldValues<(typeof POLICY_FIELDS)['descriptor']>;

/** What a limit has from its descriptor and its file, unless it sets its own. */
export type LimitBase = Pick<
  RuleSpec,
  'phase' | 'shadowMode' | 'quotaMode' | 'enforcePercent' | 'onStoreFailure' | 'metadata'
>;

export interface NodeRules {
  /** See Match.rules; empty if one of the rules has an error. */
  readonly rules: readonly RuleSpec[];
  /** Whether the rules are items of `rate_limits`. */
  readonly isList: boolean;
  /** Failure policy of limit overrides at the node: that of its limits if they agree, else that of the file. */
  readonly onStoreFailure: StoreFailurePolicy;
  /** Names that the rules replace. */
  readonly replaced: readonly Located<string>[];
}

/** Reads `rate_limit` or `rate_limits`, and the keys of the descriptor that apply to them. */
export function readRules(
  reader: FieldReader,
  values: DescriptorValues,
  base: LimitBase,
  defaults: RateDefaults,
): NodeRules {
  const { shadowMode, quotaMode, metadata, onStoreFailure } = base;
  const isList = reader.field('rate_limits') !== undefined;
  const replaced: Located<string>[] = [];
  const items = values.rate_limits ?? (values.rate_limit === undefined ? [] : [values.rate_limit]);
  const read = isList
    ? readList(reader, values.rate_limits ?? [], base, defaults, replaced)
    : readSingle(reader, values.rate_limit, base, defaults, replaced);
  const limits = withLeases(items, read);
  checkEnds(reader, limits);
  const isLeaf = isEmptyList(reader, 'descriptors');
  if (reader.field('rate_limit') === undefined && reader.field('rate_limits') === undefined) {
    warnOfIgnoredFields(reader, {
      shadow_mode: shadowMode,
      quota_mode: quotaMode,
      detailed_metric: values.detailed_metric,
      metadata: metadata !== undefined,
    });
    if (isLeaf && reader.field('enforce_percent') !== undefined) {
      reader.warn(
        'enforce_percent',
        '"enforce_percent" has no effect without a limit in the same descriptor or below it; add a ' +
          'limit, or remove "enforce_percent"',
      );
    }
  }
  const [first] = limits;
  const agreed =
    first !== undefined &&
    limits.every((limit) => isSameFailurePolicy(limit.onStoreFailure, first.onStoreFailure));
  return {
    rules: limits,
    isList,
    onStoreFailure: agreed ? first.onStoreFailure : onStoreFailure,
    replaced,
  };
}

/** Reads the `rate_limit`, if present. */
function readSingle(
  reader: FieldReader,
  limitReader: FieldReader | undefined,
  base: LimitBase,
  defaults: RateDefaults,
  replaced: Located<string>[],
): readonly RuleSpec[] {
  const rule = limitReader && readLimit(limitReader, 'rate_limit', base, defaults, replaced);
  if (rule === undefined) return [];
  const isLeaf = isEmptyList(reader, 'descriptors');
  if (rule.rate === undefined && isLeaf && reader.field('enforce_percent') !== undefined) {
    reader.warn(
      'enforce_percent',
      '"enforce_percent" has no effect, because the rule is unlimited; remove it',
    );
  }
  if (rule.onOver !== undefined && base.quotaMode) {
    reader.error(
      'quota_mode',
      '"quota_mode" cannot be combined with "on_over", because a soft limit never denies; remove one of the two',
    );
  }
  return [rule];
}

/** Reads the items of `rate_limits`. */
function readList(
  reader: FieldReader,
  items: readonly FieldReader[],
  base: LimitBase,
  defaults: RateDefaults,
  replaced: Located<string>[],
): readonly RuleSpec[] {
  if (base.quotaMode) {
    reader.error(
      'quota_mode',
      '"quota_mode" cannot be combined with "rate_limits", because a list denies as soon as one of its ' +
        'limits is exceeded; remove "quota_mode", or write a single "rate_limit"',
    );
  }
  const rules: RuleSpec[] = [];
  const located: Located<string>[] = [];
  for (const item of items) {
    const rule = readLimit(item, 'rate_limits_item', base, defaults, located);
    if (rule === undefined) continue;
    checkName(item, rule.name, rules);
    rules.push(rule);
  }
  if (rules.length === items.length) checkSpill(items, rules);
  for (const { value, at, path } of located) {
    if (!rules.some(({ name }) => name === value)) continue;
    const message =
      `"${safePrefix(value)}" is a limit in the same list, so it would never apply; remove the limit, or ` +
      'remove this item from "replaces"';
    reader.problems.error(at, path, message);
  }
  replaced.push(...located);
  return decidedByLast(rules);
}

/**
 * Checks that the ends of requests free all slots that their starts took. Ends with `pair: oldest` have no token.
 */
function checkEnds(reader: FieldReader, limits: readonly RuleSpec[]): void {
  const hasSlots = limits.some(({ rate }) => rate?.kind === 'concurrency');
  if (!hasSlots || !limits.some(({ hold }) => hold?.pair === 'oldest')) return;
  reader.error(
    'rate_limits',
    'pair: oldest cannot be combined with "concurrency" in one descriptor, because its ends free no slots; remove ' +
      'one of the two limits, or remove "pair"',
  );
}

/**
 * Checks that names are unique in a list. Metrics and bucket names identify limits by name, or by position if they have
 * none.
 */
function checkName(item: FieldReader, name: string, before: readonly RuleSpec[]): void {
  if (name === '') return;
  if (/^[0-9]+$/.test(name)) {
    item.error(
      'name',
      `the name "${safePrefix(name)}" could be confused with a position in the list; add a letter to the name`,
    );
  }
  if (before.some((other) => other.name === name)) {
    const shown = safePrefix(name);
    item.error('name', `two limits in this list are named "${shown}"; give each its own name`);
  }
}

function warnOfIgnoredFields(reader: FieldReader, fields: Readonly<Record<string, boolean>>): void {
  for (const [key, set] of Object.entries(fields)) {
    if (!set) continue;
    reader.warn(
      key,
      `"${key}" has no effect without a limit in the same descriptor; add "rate_limit" or ` +
        `"rate_limits", or remove "${key}"`,
    );
  }
}

/** Tells whether the field has no items. */
function isEmptyList(reader: FieldReader, key: string): boolean {
  const value = reader.field(key)?.value;
  return value === undefined || (value.kind === 'list' && value.items.length === 0);
}

/** The keys of both kinds of limits, except for those of the rate, which may come from a plan. */
const LIMITS = {
  rate_limit: withoutRate(POLICY_FIELDS.rate_limit),
  rate_limits_item: withoutRate(POLICY_FIELDS.rate_limits_item),
};
type LimitValues = FieldValues<typeof LIMITS.rate_limit> &
  Partial<FieldValues<typeof LIMITS.rate_limits_item>>;

function withoutRate<Of extends Fields>(fields: Of): Omit<Of, (typeof RATE_KEYS)[number]> {
  const isRate = (key: string): boolean => RATE_KEYS.some((one) => one === key);
  const others = Object.entries(fields).filter(([key]) => !isRate(key));
  return Object.fromEntries(others) as unknown as Omit<Of, (typeof RATE_KEYS)[number]>;
}

/**
 * Reads a `rate_limit`, or an item of `rate_limits`, whose rate is never absent. Returns undefined if it has errors,
 * all of which are reported. Otherwise, adds the names that it replaces to `replaced`.
 */
function readLimit(
  reader: FieldReader,
  mapping: keyof typeof LIMITS,
  base: LimitBase,
  defaults: RateDefaults,
  replaced: Located<string>[],
): RuleSpec | undefined {
  const errorsBefore = reader.problems.errorCount;
  expectKeysOf(reader, mapping);
  const values = readFields<Fields>(reader, LIMITS[mapping]) as unknown as LimitValues;
  const { name = '', on_over: onOver, unlimited = false } = values;
  const located = readReplaces(values.replaces ?? [], name);
  const answers = answersOf(values);
  const own = {
    ...answers,
    name,
    replaces: located.map(({ value }) => value),
    onOver: onOver && readOnOver(onOver),
    onStoreFailure: answers.onStoreFailure ?? base.onStoreFailure,
    phase: phaseOf(values.phase) ?? base.phase,
    shadowMode: values.shadow_mode ?? base.shadowMode,
    enforcePercent: values.enforce_percent ?? base.enforcePercent,
    nextLimit: values.then ?? '',
  };
  if (unlimited) checkUnlimited(reader);
  const isLimited = !unlimited && !reader.isBad('unlimited');
  const limit = isLimited ? readRate(reader, defaults) : undefined;
  if (reader.problems.errorCount > errorsBefore || (isLimited && limit === undefined)) return undefined;
  if (onOver !== undefined) warnOfUnusedResponse(reader, defaults);
  replaced.push(...located);
  return {
    ...base,
    ...own,
    rate: limit?.rate,
    hold: limit?.hold,
    plan: limit?.plan,
    priorities: limit?.priorities,
    lease: limit?.lease ?? defaults.lease,
  };
}

function readReplaces(items: readonly FieldReader[], name: string): readonly Located<string>[] {
  const replaces: Located<string>[] = [];
  for (const item of items) {
    const { name: replaced = '' } = readMapping(item, 'replaced_rule');
    if (replaced !== '' && replaced === name) {
      item.error('name', `"replaces" contains the rule's own name "${name}"; remove it`);
    } else if (replaced !== '') {
      replaces.push({ value: replaced, at: item.at('name'), path: item.pathOf('name') });
    }
  }
  return replaces;
}

/** Checks the keys of an unlimited rule, which cannot have those that set a rate. */
function checkUnlimited(reader: FieldReader): void {
  const ignored: string[] = ['response_headers', 'request_headers', 'denied_response', 'on_over'];
  const unit = reader.name('unit');
  // envoyproxy/ratelimit ignores these two here; it does not know the unit either.
  if (unit !== undefined && unitOf(unit) === undefined) ignored.push('unit');
  if (reader.scalar('requests_per_unit', RATE_FIELDS.requests_per_unit) !== undefined) {
    ignored.push('requests_per_unit');
  }
  for (const key of new Set([...RATE_KEYS, ...ignored])) {
    if (reader.field(key) === undefined || reader.isBad(key)) continue;
    if (ignored.includes(key))
      reader.warn(key, `"${key}" is ignored, because the rule is unlimited; remove it`);
    else reader.error(key, `an unlimited rule cannot have "${key}"; remove "${key}" or "unlimited"`);
  }
}

/** A field name, RFC 9110 section 5.1. */
const HEADER_NAME = new RegExp(`^${TOKEN}$`);
const MAX_NAME_LENGTH = 128;
/** A field value, RFC 9110 section 5.5, in ASCII and without white space at its ends. */
const HEADER_VALUE = /^[!-~](?:[ -~]*[!-~])?$/;
/** Headers with a meaning for Envoy, weir, or the way in which the upstream reads the request. */
const RESERVED_HEADER =
  /^(?:authorization|connection|content-[a-z-]+|cookie|expect|forwarded|host|keep-alive|proxy-[a-z-]+|ratelimit.*|retry-after|te|trailer|transfer-encoding|upgrade|x-envoy-.*|x-forwarded-.*|x-ratelimit-.*)$/;

/** Reads `on_over` of a limit. */
function readOnOver(onOver: FieldReader): OnOver {
  const { allow, request_headers: headers = [], metadata } = readMapping(onOver, 'on_over');
  if (allow === false) {
    onOver.error(
      'allow',
      '"allow" is false, but a limit that denies has no request to mark; write allow: true',
    );
  }
  return { requestHeaders: readHeaders(headers), metadata };
}

/** Warns about a `denied_response` of a soft limit, unless a plan may block customers. */
function warnOfUnusedResponse(reader: FieldReader, { hasCustomer, plans }: RateDefaults): void {
  if (reader.field('denied_response') === undefined || (hasCustomer && plans?.mayBlock === true)) return;
  const why = !hasCustomer
    ? 'a limit with "on_over" never denies'
    : 'a limit with "on_over" denies only for plans with "blocked: true", and no plan has "blocked"';
  reader.warn('denied_response', `"denied_response" is ignored, because ${why}; remove it`);
}

function readHeaders(items: readonly FieldReader[]): readonly AddedHeader[] {
  const headers: AddedHeader[] = [];
  for (const item of items) {
    const keys = [...item.map.fields.keys()];
    if (keys.length === 0 || (keys.includes('key') && keys.includes('value'))) {
      item.problems.error(
        item.map.at,
        item.path,
        'write the name and the value of the header, as in { x-weir-over: burst }',
      );
      continue;
    }
    for (const key of keys) {
      const value = item.field(key) === undefined ? '' : item.text(key);
      if (value === undefined) continue;
      const problem = headerProblem(key.toLowerCase(), value, headers);
      if (problem === undefined) headers.push({ key: key.toLowerCase(), value });
      else item.error(key, problem);
    }
  }
  return headers;
}

function headerProblem(key: string, value: string, before: readonly AddedHeader[]): string | undefined {
  const shown = JSON.stringify(safePrefix(key));
  if (!HEADER_NAME.test(key) || key.length > MAX_NAME_LENGTH)
    return `${shown} is not a valid header name; write a name, such as x-weir-over`;
  if (RESERVED_HEADER.test(key))
    return `${shown} already has a meaning; write another name, such as x-weir-over`;
  if (before.some((other) => other.key === key)) return `${shown} is set twice; remove one of the two`;
  if (!HEADER_VALUE.test(value) || value.length > MAX_HEADER_LENGTH)
    return `the value of ${shown} must have 1 to ${MAX_HEADER_LENGTH} visible ASCII characters; change the value`;
  return before.length === MAX_HEADERS
    ? `a limit can add at most ${MAX_HEADERS} headers; remove this one`
    : undefined;
}

/** Keys of a limit with `then` that belong to the last limit of its chain, which decides for all of them. */
const OF_THE_LAST = ['phase', 'shadow_mode', 'enforce_percent', 'on_store_failure'];

/** Checks `then` in the items of `rate_limits`. `rules` contains the limit of each item. */
function checkSpill(items: readonly FieldReader[], rules: readonly RuleSpec[]): void {
  items.forEach((item, index) => {
    const { nextLimit } = rules[index] as RuleSpec;
    const isTarget = index > 0 && rules[index - 1]?.nextLimit !== '';
    if (nextLimit === '' && !isTarget) return;
    checkKind(item, rules[index] as RuleSpec);
    if (nextLimit === '') return;
    const problem = targetProblem(rules, index);
    if (problem !== undefined) item.error('then', problem);
    for (const key of OF_THE_LAST) {
      if (item.field(key) === undefined) continue;
      item.error(
        key,
        `"${key}" cannot be combined with "then", because the last limit of the chain decides; move the key to ` +
          'that limit',
      );
    }
  });
}

/** Returns the rules of a list, where the limits of a chain have the settings of its last limit, which decides. */
function decidedByLast(rules: readonly RuleSpec[]): readonly RuleSpec[] {
  const decided = [...rules];
  for (let at = rules.length - 2; at >= 0; at--) {
    const rule = rules[at] as RuleSpec;
    const { phase, shadowMode, enforcePercent, onStoreFailure } = decided[at + 1] as RuleSpec;
    if (rule.nextLimit !== '') decided[at] = { ...rule, phase, shadowMode, enforcePercent, onStoreFailure };
  }
  return decided;
}

/** Reports settings that no limit of a chain can have. */
function checkKind(item: FieldReader, { rate, hold, onOver, nextLimit }: RuleSpec): void {
  const refuse = (key: string, reason: string): void =>
    item.error(
      key,
      `"${key}" cannot be in a chain of limits ("then"), because ${reason}; remove one of the two`,
    );
  if (rate?.kind === 'concurrency')
    refuse('concurrency', 'the end of a request does not know which limit paid');
  else if (hold !== undefined) refuse('hold', 'the end of a request does not know which limit paid');
  else if (nextLimit !== '' && rate !== undefined && rate.maxDebt > 0)
    refuse('allow_debt', 'a limit that can go into debt never spills');
  if (onOver !== undefined) refuse('on_over', 'requests over a soft limit pass');
}

/** Returns what is wrong with the name in `then`; undefined if nothing is. */
function targetProblem(rules: readonly RuleSpec[], index: number): string | undefined {
  const { name, nextLimit } = rules[index] as RuleSpec;
  if (rules[index + 1]?.name === nextLimit) return undefined;
  const shown = safePrefix(nextLimit);
  if (nextLimit === name)
    return `"then" contains the limit's own name "${shown}"; write the name of the next limit`;
  const at = rules.findIndex((rule) => rule.name === nextLimit);
  if (at >= 0)
    return `"${shown}" must directly follow this limit in the list; move one of the two limits, or change "then"`;
  const similar = nearest(
    nextLimit,
    rules.map((rule) => rule.name).filter((other) => other !== '' && other !== name),
  );
  const hint = similar === undefined ? 'write the name of the next limit' : `did you mean "${similar}"?`;
  return `no limit in this list is named "${shown}"; ${hint}`;
}
