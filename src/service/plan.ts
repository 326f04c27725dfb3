import type { Descriptor, RateLimitRequest } from '../codec/messages.js';
import { type BucketKey, entriesKey, overrideKey } from '../config/bucket-key.js';
import type { DomainPolicy, Match } from '../config/policy.js';
import type { Enforcement, TakeItem, TakeOutcome } from '../limiter/bucket-store.js';
import { type Rate, type WindowUnit, windowRate } from '../limiter/rate.js';
import { type PhaseSchedule, phaseAt, type StoreFailurePolicy } from '../limiter/rule.js';
import type { AnswerOptions } from './answer-options.js';

/** What one descriptor asks of one bucket. */
export interface PlannedTake extends TakeItem {
  /** What the store is told: {@link weight}, or `observe` where the request cannot be denied for it. */
  enforcement: Enforcement;
  /** How the rule itself weighs in the answer, by phase, `shadow_mode` and `quota_mode`. */
  readonly weight: Enforcement;
  /** `Rule.name`; '' for an override, as in the reference. */
  readonly name: string;
  /** For metrics and logs: `Rule.path`, or `override`. */
  readonly label: string;
  /** `quota_mode` or QUOTA_MODE, whatever the phase makes of {@link weight}. */
  readonly quota: boolean;
  /** `shadow_mode` of the rule. */
  readonly shadow: boolean;
  /** A limit override, not a rule. */
  readonly override: boolean;
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

const NO_NAMES: readonly string[] = [];

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

function weightOf(phase: PhaseSchedule, shadow: boolean, quota: boolean, wallMicros: number): Enforcement {
  if (shadow || phaseAt(phase, wallMicros) !== 'active') return 'observe';
  return quota ? 'quota' : 'enforce';
}

function planOne(
  policy: DomainPolicy,
  request: RateLimitRequest,
  descriptor: Descriptor,
  wallMicros: number,
  options: AnswerOptions,
): Decision {
  const match = policy.match(descriptor.entries);
  const { rule } = match;
  const override = descriptor.limit !== undefined && match.entries.length > 0;
  let rate: Rate;
  let bucket: BucketKey = match;
  let shadow = false;
  let { quotaMode: quota } = options;
  let phase: PhaseSchedule;
  if (descriptor.limit !== undefined && override) {
    const unit = OVERRIDE_UNITS[descriptor.limit.unit] as WindowUnit;
    rate = windowRate(unit, descriptor.limit.requestsPerUnit);
    bucket = overrideKey(entriesKey(policy.domain, match.entries), unit, rate.requestsPerUnit);
    phase = match.phase;
  } else if (rule?.rate === undefined) {
    return new Decision(match, undefined, rule !== undefined);
  } else {
    rate = rule.rate;
    phase = rule.phase;
    shadow = rule.shadowMode;
    quota ||= rule.quotaMode;
  }
  const weight = weightOf(phase, shadow, quota, wallMicros);
  const take: PlannedTake = {
    key: bucket.key,
    tagLength: bucket.tagLength,
    rate,
    hits: hitsOf(descriptor, request),
    refund: descriptor.isNegativeHits,
    enforcement: options.shadowMode ? 'observe' : weight,
    weight,
    name: override ? '' : (rule?.name ?? ''),
    label: override ? OVERRIDE_LABEL : (rule?.path ?? ''),
    quota,
    shadow,
    override,
    onStoreFailure: match.onStoreFailure,
  };
  return new Decision(match, take, false);
}

/** What the rule of a decision replaces; a limit override stands in the place of the rule and replaces nothing. */
function replacesOf({ match, take }: Decision): readonly string[] {
  return match.rule === undefined || take?.override === true ? NO_NAMES : match.rule.replaces;
}

/** Drops the takes whose rule another matched rule names in `replaces`. */
function applyReplaces(decisions: readonly Decision[]): void {
  const names = new Set<string>();
  for (const decision of decisions) for (const name of replacesOf(decision)) names.add(name);
  for (const decision of decisions) {
    const { take } = decision;
    if (take !== undefined && take.name !== '' && names.has(take.name)) decision.take = undefined;
  }
}

/**
 * Whether a decision counts as a quota that always passes, as in the reference: then no quota denies the request. So does a quota
 * in shadow mode, and under QUOTA_MODE a descriptor without a limit.
 */
export function isPassingQuota({ take, unlimited }: Decision, quotaMode: boolean): boolean {
  return take === undefined ? quotaMode && !unlimited : take.quota && take.shadow;
}

/** Beside a quota that always passes the others deny nothing, and the store need not know of them. */
function applyPassingQuotas(decisions: readonly Decision[], quotaMode: boolean): void {
  if (!decisions.some((decision) => isPassingQuota(decision, quotaMode))) return;
  for (const { take } of decisions) if (take?.enforcement === 'quota') take.enforcement = 'observe';
}

/**
 * Matches every descriptor of a checked request against one snapshot of the domain's policy. One element per descriptor, in
 * order.
 */
export function plan(
  policy: DomainPolicy,
  request: RateLimitRequest,
  wallMicros: number,
  options: AnswerOptions,
): readonly Decision[] {
  const { descriptors } = request;
  const decisions = new Array<Decision>(descriptors.length);
  let replaces = false;
  let quotas = false;
  for (let i = 0; i < descriptors.length; i++) {
    const decision = planOne(policy, request, descriptors[i] as Descriptor, wallMicros, options);
    if (replacesOf(decision).length > 0) replaces = true;
    if (decision.take?.quota === true) quotas = true;
    decisions[i] = decision;
  }
  if (replaces) applyReplaces(decisions);
  if (quotas) applyPassingQuotas(decisions, options.quotaMode);
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
