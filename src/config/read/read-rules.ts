import { isSameFailurePolicy, type StoreFailurePolicy } from '../../limiter/failure-policy.js';
import type { RuleSpec } from '../../policy/rule.js';
import { shownStart } from '../../runtime/shown-address.js';
import type { Fields } from './field.js';
import type { FieldReader, Located } from './field-reader.js';
import { expectKeysOf, type FieldValues, readFields, readMapping } from './field-values.js';
import { POLICY_FIELDS, RATE_FIELDS, RATE_KEYS } from './policy-fields.js';
import type { RateDefaults } from './rates/rate-fields.js';
import { readRate } from './rates/read-rate.js';
import { readOnOver, warnOfUnusedResponse } from './read-on-over.js';
import { phaseOf } from './read-phase.js';
import { answersOf } from './read-response.js';
import { checkSpill, decidedByLast } from './read-spill.js';
import { unitOf } from './scalar-kinds.js';

/** The values of a descriptor. */
export type DescriptorValues = FieldValues<(typeof POLICY_FIELDS)['descriptor']>;

/** What a limit has from its descriptor and its file, unless it sets its own. */
export type LimitBase = Pick<
  RuleSpec,
  'phase' | 'shadowMode' | 'quotaMode' | 'enforcePercent' | 'onStoreFailure' | 'metadata'
>;

/** The rules of one node. */
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
  const limits = isList
    ? readList(reader, values.rate_limits ?? [], base, defaults, replaced)
    : readSingle(reader, values.rate_limit, base, defaults, replaced);
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
      `"${shownStart(value)}" is a limit in the same list, so it would never apply; remove the limit, or ` +
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
      `the name "${shownStart(name)}" could be confused with a position in the list; add a letter to the name`,
    );
  }
  if (before.some((other) => other.name === name)) {
    const shown = shownStart(name);
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
    spillsTo: values.then ?? '',
  };
  if (unlimited) checkUnlimited(reader);
  const isLimited = !unlimited && !reader.isBad('unlimited');
  const limit = isLimited ? readRate(reader, defaults) : undefined;
  if (reader.problems.errorCount > errorsBefore || (isLimited && limit === undefined)) return undefined;
  if (onOver !== undefined) warnOfUnusedResponse(reader, defaults);
  replaced.push(...located);
  return { ...base, ...own, rate: limit?.rate, hold: limit?.hold, plan: limit?.plan };
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
