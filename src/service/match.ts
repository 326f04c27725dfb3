import type { Descriptor, RateLimitOverride } from '../codec/messages.js';
import { windowRate } from '../limiter/fixed-window.js';
import type { NewHold } from '../limiter/holds/hold.js';
import type { Rate } from '../limiter/rate.js';
import { tokenBucketRate } from '../limiter/token-bucket.js';
import { UNIT_MICROS, type WindowUnit } from '../limiter/window-unit.js';
import { entriesKey, extendedKey, overrideKey, shapePart } from '../policy/names/bucket-key.js';
import { blockedKey, isBlocked, unblockedRule } from '../policy/plans/plan-rules.js';
import type { Algorithm, Match } from '../policy/policy.js';
import type { HoldSpec, Rule } from '../policy/rule.js';
import { append } from '../runtime/append.js';
import { applyReplacesAndQuotas, enforcementOf, enforcementOfRule } from './enforcement.js';
import { type BoundHold, newHold, noHold } from './holds/hold-ids.js';
import type { GivenUpReason, HoldRecord } from './record/decision-record.js';
import {
  DescriptorState,
  hitsOf,
  type MatchedTake,
  NO_TAKES,
  OVERRIDE_LABEL,
  type RequestContext,
} from './request-context.js';

/**
 * Matches every descriptor of a validated request against one snapshot of the domain's policy, and plans the takes: one
 * item for each bucket. If the request exceeds a bound, returns this bound, and the decisions are incomplete.
 */
export function matchAndPlan(context: RequestContext): GivenUpReason | undefined {
  const { policy, options } = context;
  const { descriptors } = context.request;
  const { matchWork, maxLimits } = options;
  matchWork.reset();
  let states: DescriptorState[] = [];
  let limits = 0;
  for (let i = 0; i < descriptors.length; i++) {
    const descriptor = descriptors[i] as Descriptor;
    let state = context.settlements === undefined ? undefined : settlementDecision(context, descriptor, i);
    if (state === undefined) {
      const match = policy.match(descriptor.entries, matchWork);
      if (matchWork.exceeded !== undefined) return matchWork.exceeded;
      state = matchRules(context, descriptor, match);
    }
    limits += state.takes.length + state.oldestSettlements.length;
    if (limits > maxLimits) return 'limits';
    states = append(states, state);
    context.states = states;
  }
  const hasQuotas = policy.hasQuotas || options.answers.quotaMode;
  if (policy.hasReplaces || hasQuotas) applyReplacesAndQuotas(context);
  return undefined;
}

const NONE: readonly never[] = [];

/**
 * Returns the decision for the descriptor at `index` if it has a hold token, because limits do not apply to such a
 * descriptor. Returns undefined if the descriptor has no token. Only domains with holds have tokens.
 */
function settlementDecision(
  { policy, options, settlements }: RequestContext,
  descriptor: Descriptor,
  index: number,
): DescriptorState | undefined {
  const ends = settlements?.ends[index];
  if (ends === undefined) return undefined;
  const { entries } = descriptor;
  const { entry } = options.answers.holdNames;
  const { phase, onStoreFailure } = policy;
  // The token is long, and logs do not have to contain it.
  const hidden = { key: entry, value: '[hold token]' };
  const match: Match = {
    rules: NONE,
    keys: NONE,
    hashTagLength: 0,
    phase,
    onStoreFailure,
    entries: entries.length === 1 ? [hidden] : entries.map((one) => (one.key === entry ? hidden : one)),
    onUnmatched: undefined,
    statNames: NONE,
  };
  return new DescriptorState(match, NO_TAKES, false, false, ends);
}

/** Plans the takes of a matched descriptor. */
export function matchRules(context: RequestContext, descriptor: Descriptor, match: Match): DescriptorState {
  const { rules, entries } = match;
  if (descriptor.limit !== undefined && entries.length > 0) {
    const take = takeOfOverride(context, descriptor, match, descriptor.limit);
    return new DescriptorState(match, [take], false, true);
  }
  const count = rules.length;
  const unlimited = count > 0 && (rules[0] as Rule).rate === undefined;
  if (count === 0 || unlimited) return new DescriptorState(match, NO_TAKES, unlimited);
  const takes = new Array<MatchedTake>(count);
  for (let i = 0; i < count; i++) takes[i] = takeOfRule(context, descriptor, match, i, rules[i] as Rule);
  const state = new DescriptorState(match, takes, false);
  if (!context.policy.hasHolds) return state;
  const others = isBlocked(rules[0] as Rule) ? takesOfUnblocked(context, descriptor, match) : NO_TAKES;
  return separateSettlements(state, others);
}

/**
 * Returns the takes of a blocked customer as if the customer were not blocked, so that the holds of requests in flight
 * can still be settled.
 */
function takesOfUnblocked(
  context: RequestContext,
  descriptor: Descriptor,
  match: Match,
): readonly MatchedTake[] {
  return match.rules.flatMap((rule, index) => {
    const unblocked = unblockedRule(rule);
    if (unblocked?.hold?.pair !== 'oldest') return [];
    return [takeOfRule(context, descriptor, match, index, unblocked)];
  });
}

/**
 * Returns the take of a limit as a whole, for all classes, and as if the customer were not blocked, because only this
 * take contains the bucket of the limit.
 */
export function takeWithoutBlock(
  context: RequestContext,
  descriptor: Descriptor,
  match: Match,
  take: MatchedTake,
): MatchedTake {
  const { rule } = take;
  const whole = rule && (unblockedRule(rule) ?? rule.shared);
  if (whole === undefined) return take;
  return takeOfRule(context, descriptor, match, match.rules.indexOf(rule as Rule), whole);
}

/** A refund of 0 hits is a peek. */
function isRefund({ isNegativeHits }: Descriptor, hits: number): boolean {
  return isNegativeHits && hits > 0;
}

/** Returns the take of a rule. The take has the names of the rule at `index` of a match. */
function takeOfRule(
  context: RequestContext,
  descriptor: Descriptor,
  match: Match,
  index: number,
  rule: Rule,
): MatchedTake {
  const spills = rule.nextLimit !== '';
  const { request } = context;
  const { answers } = context.options;
  const isSoft = rule.onOver !== undefined;
  // A request is denied by quotas only if all of them deny it, but a blocked customer is denied in any case.
  const isPlain = rule.isAlwaysEnforced && !answers.quotaMode;
  const quota = !isPlain && !isSoft && !isBlocked(rule) && (answers.quotaMode || rule.quotaMode);
  const phaseEnforcement = isPlain ? 'enforce' : enforcementOfRule(rule, quota, context);
  const ruleEnforcement = spills ? 'spill' : isSoft ? 'observe' : phaseEnforcement;
  const asked = hitsOf(descriptor, request);
  const refund = isRefund(descriptor, asked);
  const hold = refund ? undefined : rule.hold;
  const pairsOldest = hold?.pair === 'oldest';
  // A call with 0 hits is a peek. The exception is a rule with `pair: oldest`, for which such a call starts a request,
  // and a call with hits ends one. A refund of 0 hits is a peek for every rule.
  const starts = pairsOldest ? asked === 0 && !descriptor.isNegativeHits : asked > 0;
  const isEnd = pairsOldest && asked > 0;
  const hits = starts ? context.boundedSlots(rule.rate, hold?.amount ?? asked) : asked;
  const key = match.keys[index] as string;
  const { hashTagLength } = match;
  return {
    key: !isPlain && isBlocked(rule) ? blockedKey({ key, hashTagLength }) : key,
    hashTagLength,
    rate: rule.rate as Rate,
    hits,
    refund,
    holds: hold !== undefined && !isEnd ? holdOf(rule.digest, starts ? hits : 0, hold) : undefined,
    enforcement: answers.shadowMode && !spills ? 'observe' : ruleEnforcement,
    ruleEnforcement,
    appliesOnOver: isSoft && phaseEnforcement === 'enforce' && !answers.shadowMode,
    chain: NO_TAKES,
    rule,
    name: rule.name,
    statName: match.statNames[index] as string,
    rulePath: rule.path,
    quota,
    shadow: rule.shadowMode,
    onStoreFailure: rule.onStoreFailure,
    outcome: undefined,
  };
}

function holdOf(digest: string, hits: number, { expiresAfterMillis, unknown }: HoldSpec): BoundHold {
  const frees = unknown === 'free';
  return hits === 0 ? noHold(expiresAfterMillis, frees) : newHold(digest, hits, expiresAfterMillis, frees);
}

/** Returns the take of a limit override, which replaces the node's rules. */
function takeOfOverride(
  context: RequestContext,
  descriptor: Descriptor,
  match: Match,
  limit: RateLimitOverride,
): MatchedTake {
  const { policy, request } = context;
  const { answers } = context.options;
  const unit = OVERRIDE_UNITS[limit.unit] as WindowUnit;
  const rate = overrideRate(unit, limit.requestsPerUnit, policy.overrideAlgorithm);
  const base = overrideKey(
    entriesKey(policy.domain, match.entries, policy.secretKeys),
    unit,
    limit.requestsPerUnit,
  );
  const { key, hashTagLength } = extendedKey(base, shapePart(rate));
  const quota = answers.quotaMode;
  const ruleEnforcement = enforcementOf(match.phase, false, quota, context);
  const hits = hitsOf(descriptor, request);
  return {
    key,
    hashTagLength,
    rate,
    hits,
    refund: isRefund(descriptor, hits),
    holds: undefined,
    enforcement: answers.shadowMode ? 'observe' : ruleEnforcement,
    ruleEnforcement,
    appliesOnOver: false,
    chain: NO_TAKES,
    rule: undefined,
    name: '',
    statName: '',
    rulePath: OVERRIDE_LABEL,
    quota,
    shadow: false,
    onStoreFailure: match.onStoreFailure,
    outcome: undefined,
  };
}

function overrideRate(unit: WindowUnit, requests: number, algorithm: Algorithm): Rate {
  if (algorithm === 'fixed_window' || requests === 0) return windowRate(unit, requests);
  return tokenBucketRate(requests, requests, UNIT_MICROS[unit]);
}

/**
 * Window units by their number in envoy.type.v3.RateLimitUnit. Also contains WEEK (7) of RateLimitResponse, because
 * callers confuse the two enums.
 */
export const OVERRIDE_UNITS: Readonly<Record<number, WindowUnit>> = {
  1: 'second',
  2: 'minute',
  3: 'hour',
  4: 'day',
  5: 'month',
  6: 'year',
  7: 'week',
};

/** Returns the first error in the descriptors of a request to a known domain, as a message for the caller. */
export function findBadDescriptor(descriptors: readonly Descriptor[]): string | undefined {
  for (let index = 0; index < descriptors.length; index++) {
    const descriptor = descriptors[index] as Descriptor;
    for (let at = 0; at < descriptor.entries.length; at++) {
      if (descriptor.entries[at]?.key === '') {
        return `descriptors[${index}].entries[${at}].key must not be empty`;
      }
    }
    if (descriptor.limit !== undefined && OVERRIDE_UNITS[descriptor.limit.unit] === undefined) {
      return (
        `descriptors[${index}].limit.unit must be one of SECOND (1), MINUTE (2), HOUR (3), DAY (4), MONTH (5), ` +
        `YEAR (6), WEEK (7), not ${descriptor.limit.unit}`
      );
    }
  }
  return undefined;
}

/** A planned item of a rule. */
interface MatchedCall {
  readonly rule: Rule | undefined;
  readonly holds?: NewHold | undefined;
  readonly refund: boolean;
}

/** The planned items of a descriptor. */
interface Takes<T> {
  takes: readonly T[];
  oldestSettlements: readonly T[];
  settlementRecords: readonly HoldRecord[] | undefined;
}

/**
 * Moves the items that report the end of a request to a rule with `pair: oldest` to `oldestSettlements`. Ignores all
 * other items in `others`.
 */
function separateSettlements<T extends MatchedCall, D extends Takes<T>>(state: D, others: readonly T[]): D {
  const { takes } = state;
  if (!takes.some(isEnd) && !others.some(isEnd)) return state;
  state.oldestSettlements = [...takes, ...others].filter(isEnd);
  state.takes = takes.filter((take) => !isEnd(take));
  state.settlementRecords = [];
  return state;
}

/**
 * For such a rule, an item is the start of a request with a hold, a refund, or the end of a request with the use as its
 * hits.
 */
function isEnd({ rule, holds, refund }: MatchedCall): boolean {
  return rule?.hold?.pair === 'oldest' && holds === undefined && !refund;
}
