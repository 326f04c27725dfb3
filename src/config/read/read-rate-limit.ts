import type { PlannedRate } from '../../policy/plans/plan-rate.js';
import type { RateSpec } from '../../policy/rate-spec.js';
import type { HoldSpec, OnOver } from '../../policy/rule.js';
import type { Fields } from './field.js';
import type { FieldReader, Located } from './field-reader.js';
import { expectKeysOf, type FieldValues, readFields, readMapping } from './field-values.js';
import { POLICY_FIELDS, RATE_FIELDS, RATE_KEYS } from './policy-fields.js';
import type { RateDefaults, RateFields } from './rates/rate-fields.js';
import { readRate } from './rates/read-rate.js';
import { readOnOver, warnOfUnusedResponse } from './read-on-over.js';
import { type Answers, answersOf } from './read-response.js';
import { unitOf } from './scalar-kinds.js';

/** A `rate_limit` as written in the file. */
export interface RateLimitFields extends Answers {
  readonly name: string;
  /** Absent if `unlimited: true`. */
  readonly rate: RateSpec | undefined;
  /** Absent for a limit without holds. */
  readonly hold: HoldSpec | undefined;
  /** Absent if no number comes from a plan. */
  readonly plan: PlannedRate | undefined;
  readonly replaces: readonly Located<string>[];
  readonly onOver: OnOver | undefined;
}

/** The keys of an item of `rate_limits` that only lists have. */
export type ListValues = FieldValues<
  Pick<(typeof POLICY_FIELDS)['rate_limits_item'], 'then' | 'phase' | 'shadow_mode' | 'enforce_percent'>
>;

/** Reads a `rate_limit`. Returns undefined if it has errors, all of which are reported. */
export function readRateLimit(reader: FieldReader, defaults: RateDefaults): RateLimitFields | undefined {
  const errorsBefore = reader.problems.errorCount;
  expectKeysOf(reader, 'rate_limit');
  const values = readFields(reader, RATE_LIMIT);
  const fields = namedFields(values);
  if (values.unlimited) checkUnlimited(reader);
  const isLimited = !values.unlimited && !reader.isBad('unlimited');
  const limit = isLimited ? readRate(reader, defaults) : undefined;
  if (reader.problems.errorCount > errorsBefore) return undefined;
  if (fields.onOver !== undefined) warnOfUnusedResponse(reader, defaults);
  return { ...fields, rate: limit?.rate, hold: limit?.hold, plan: limit?.plan };
}

/** An item of `rate_limits`: the limit, undefined if it has errors, and what only items have. */
export interface LimitItem {
  readonly fields: RateLimitFields | undefined;
  readonly values: ListValues;
}

/** Reads an item of `rate_limits`. Its rate is never absent. */
export function readLimit(reader: FieldReader, defaults: RateDefaults): LimitItem {
  const errorsBefore = reader.problems.errorCount;
  expectKeysOf(reader, 'rate_limits_item');
  const values = readFields(reader, LIST_ITEM);
  const named = namedFields(values);
  const limit = readRate(reader, defaults);
  const isValid = reader.problems.errorCount === errorsBefore && limit !== undefined;
  if (isValid && named.onOver !== undefined) warnOfUnusedResponse(reader, defaults);
  return { fields: isValid ? { ...named, plan: undefined, ...limit } : undefined, values };
}

/** The keys of both kinds of limits, except for those of the rate, which may come from a plan. */
const RATE_LIMIT = withoutRate(POLICY_FIELDS.rate_limit);
const LIST_ITEM = withoutRate(POLICY_FIELDS.rate_limits_item);

function withoutRate<Of extends Fields>(fields: Of): Omit<Of, (typeof RATE_KEYS)[number]> {
  const isRate = (key: string): boolean => RATE_KEYS.some((one) => one === key);
  const others = Object.entries(fields).filter(([key]) => !isRate(key));
  return Object.fromEntries(others) as unknown as Omit<Of, (typeof RATE_KEYS)[number]>;
}

/** Returns the fields of both kinds of limits, except for the rate. */
function namedFields(
  values: Pick<FieldValues<typeof RATE_LIMIT>, keyof typeof RATE_LIMIT & keyof typeof LIST_ITEM>,
): Omit<RateLimitFields, keyof RateFields> {
  const { name = '', replaces = [], on_over: onOver } = values;
  return {
    name,
    replaces: readReplaces(replaces, name),
    ...answersOf(values),
    onOver: onOver && readOnOver(onOver),
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
