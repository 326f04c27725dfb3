import type { Descriptor, RateLimitRequest } from '../codec/messages.js';
import { type BucketKey, entriesKey, overrideKey } from '../config/bucket-key.js';
import type { DomainPolicy, Match } from '../config/policy.js';
import type { Enforcement, TakeItem, TakeOutcome } from '../limiter/bucket-store.js';
import { type Rate, type WindowUnit, windowRate } from '../limiter/rate.js';
import { phaseAt, type Rule, type StoreFailurePolicy } from '../limiter/rule.js';

/** What one descriptor asks of one bucket. */
export interface PlannedTake extends TakeItem {
  /** `Rule.name`; '' for an override, as in the reference. */
  readonly name: string;
  /** For metrics and logs: `Rule.path`, or `override`. */
  readonly label: string;
  /** `quota_mode`, whatever the phase makes of `enforcement`. */
  readonly quota: boolean;
  readonly onStoreFailure: StoreFailurePolicy;
}

/** One descriptor on its way from match to answer. */
export class Decision {
  readonly match: Match;
  /** Absent where no bucket is concerned: no rule, unlimited, replaced. */
  take: PlannedTake | undefined;
  readonly unlimited: boolean;
  /** What the store, or the failure policy, said; absent without take, and where the failure policy `allow` answered. */
  outcome: TakeOutcome | undefined = undefined;

  constructor(match: Match, take: PlannedTake | undefined, unlimited: boolean) {
    this.match = match;
    this.take = take;
    this.unlimited = unlimited;
  }
}

/** A request that cannot be decided because it is wrong; `message` is safe for the caller. */
export interface BadRequest {
  readonly message: string;
}

/** envoy.type.v3.RateLimitUnit; RateLimitResponse's WEEK (7) is taken too, since callers mix the two up. */
const OVERRIDE_UNITS: Readonly<Record<number, WindowUnit>> = {
  1: 'second',
  2: 'minute',
  3: 'hour',
  4: 'day',
  5: 'month',
  6: 'year',
  7: 'week',
};

/** The label of a limit override in metrics and logs: overrides come from callers, so they never make series of their own. */
const OVERRIDE_LABEL = 'override';

/** The first thing wrong with the descriptors of a request to a known domain, or undefined. */
export function findBadDescriptor(descriptors: readonly Descriptor[]): BadRequest | undefined {
  for (let index = 0; index < descriptors.length; index++) {
    const descriptor = descriptors[index] as Descriptor;
    for (let at = 0; at < descriptor.entries.length; at++) {
      if (descriptor.entries[at]?.key === '') {
        return { message: `descriptors[${index}].entries[${at}].key must not be empty` };
      }
    }
    if (descriptor.limit !== undefined && OVERRIDE_UNITS[descriptor.limit.unit] === undefined) {
      return {
        message:
          `descriptors[${index}].limit.unit must be one of SECOND (1), MINUTE (2), HOUR (3), DAY (4), MONTH (5), ` +
          `YEAR (6), WEEK (7), not ${descriptor.limit.unit}`,
      };
    }
  }
  return undefined;
}

/** How many hits a descriptor asks for: its own addend, else the request's, where 0 means 1. */
function hitsOf(descriptor: Descriptor, request: RateLimitRequest): number {
  return descriptor.hitsAddend ?? (request.hitsAddend === 0 ? 1 : request.hitsAddend);
}

function enforcementOf(rule: Rule, wallMicros: number): Enforcement {
  if (rule.shadowMode || phaseAt(rule.phase, wallMicros) !== 'active') return 'observe';
  return rule.quotaMode ? 'quota' : 'enforce';
}

function planOne(
  policy: DomainPolicy,
  request: RateLimitRequest,
  descriptor: Descriptor,
  wallMicros: number,
): Decision {
  const match = policy.match(descriptor.entries);
  const { rule } = match;
  let rate: Rate;
  let bucket: BucketKey = match;
  let enforcement: Enforcement;
  if (descriptor.limit !== undefined && match.entries.length > 0) {
    const unit = OVERRIDE_UNITS[descriptor.limit.unit] as WindowUnit;
    rate = windowRate(unit, descriptor.limit.requestsPerUnit);
    const base = rule === undefined ? entriesKey(policy.domain, match.entries) : match;
    bucket = overrideKey(base, unit, rate.requestsPerUnit);
    enforcement = phaseAt(match.phase, wallMicros) === 'active' ? 'enforce' : 'observe';
  } else if (rule?.rate === undefined) {
    return new Decision(match, undefined, rule !== undefined);
  } else {
    rate = rule.rate;
    enforcement = enforcementOf(rule, wallMicros);
  }
  const overridden = descriptor.limit !== undefined;
  const take: PlannedTake = {
    key: bucket.key,
    tagLength: bucket.tagLength,
    rate,
    hits: hitsOf(descriptor, request),
    refund: descriptor.isNegativeHits,
    enforcement,
    name: overridden ? '' : (rule?.name ?? ''),
    label: overridden ? OVERRIDE_LABEL : (rule?.path ?? ''),
    quota: !overridden && rule?.quotaMode === true,
    onStoreFailure: match.onStoreFailure,
  };
  return new Decision(match, take, false);
}

/** Drops the takes whose rule another matched rule names in `replaces`. */
function applyReplaces(decisions: readonly Decision[]): void {
  const names = new Set<string>();
  for (const { match } of decisions) for (const name of match.rule?.replaces ?? []) names.add(name);
  for (const decision of decisions) {
    const { take } = decision;
    if (take !== undefined && take.name !== '' && names.has(take.name)) decision.take = undefined;
  }
}

/**
 * Matches every descriptor of a checked request against one snapshot of the domain's policy. One element per descriptor, in
 * order.
 */
export function plan(
  policy: DomainPolicy,
  request: RateLimitRequest,
  wallMicros: number,
): readonly Decision[] {
  const { descriptors } = request;
  const decisions = new Array<Decision>(descriptors.length);
  let replaces = false;
  for (let i = 0; i < descriptors.length; i++) {
    const decision = planOne(policy, request, descriptors[i] as Descriptor, wallMicros);
    const { rule } = decision.match;
    if (rule !== undefined && rule.replaces.length > 0) replaces = true;
    decisions[i] = decision;
  }
  if (replaces) applyReplaces(decisions);
  return decisions;
}

/** What the store is asked, in the order of the descriptors. */
export function takesOf(decisions: readonly Decision[]): readonly PlannedTake[] {
  let count = 0;
  for (let i = 0; i < decisions.length; i++) if ((decisions[i] as Decision).take !== undefined) count++;
  const takes = new Array<PlannedTake>(count);
  let next = 0;
  for (let i = 0; i < decisions.length; i++) {
    const { take } = decisions[i] as Decision;
    if (take !== undefined) takes[next++] = take;
  }
  return takes;
}
