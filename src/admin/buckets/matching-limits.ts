import type { Descriptor } from '../../codec/messages.js';
import type { Entry } from '../../limiter/entry.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import type { MatchWork } from '../../policy/match-work.js';
import type { Match } from '../../policy/policy.js';
import type { AnswerOptions } from '../../service/answer/answer-options.js';
import { CALLER_WITHOUT_DEADLINE } from '../../service/caller.js';
import { applyReplacesAndQuotas } from '../../service/enforcement/quotas-and-replaces.js';
import { matchAndPlan, OVERRIDE_UNITS, planDescriptor, takeWithoutBlock } from '../../service/match.js';
import { type Decision, type PlannedTake, RequestContext } from '../../service/plan.js';
import type { OverrideLimit } from './read-question.js';

/** Context in which a descriptor is planned, as in a request. */
export interface PlanSource {
  readonly policy: CompiledPolicy;
  readonly wallMicros: number;
  readonly answers: AnswerOptions;
  readonly maxLimits: number;
  readonly matchWork: MatchWork;
}

/** A limit of a descriptor. */
export interface MatchingLimit {
  /** The take of a request. */
  readonly take: PlannedTake;
  /** The take from the limit's bucket. It differs from `take` if the customer is blocked. */
  readonly bucket: PlannedTake;
}

/** Limits of a descriptor. */
export interface MatchingLimits {
  readonly match: Match;
  /** In the order of the policy file. */
  readonly limits: readonly MatchingLimit[];
  readonly unlimited: boolean;
}

function contextOf(
  { policy, wallMicros, answers, maxLimits, matchWork }: PlanSource,
  entries: readonly Entry[],
  override?: OverrideLimit,
): RequestContext {
  const limit = override && {
    requestsPerUnit: override.requestsPerUnit,
    unit: Number(Object.keys(OVERRIDE_UNITS).find((unit) => OVERRIDE_UNITS[Number(unit)] === override.unit)),
  };
  const descriptor: Descriptor = { entries, limit, hitsAddend: 0, isNegativeHits: false };
  const request = { domain: policy.domain, descriptors: [descriptor], hitsAddend: 0 };
  // Rules with `enforce_percent` are shown as enforced.
  const clock = { wallMicros: () => wallMicros };
  const options = { answers, maxLimits, matchWork, clock, random: () => 0 };
  return new RequestContext(options, request, policy, CALLER_WITHOUT_DEADLINE, 0);
}

function metBy(context: RequestContext): MatchingLimits {
  const { match, takes, unlimited } = context.decisions[0] as Decision;
  const descriptor = context.request.descriptors[0] as Descriptor;
  const limits = takes.map((take) => ({
    take,
    bucket: takeWithoutBlock(context, descriptor, match, take),
  }));
  return { match, limits, unlimited };
}

/**
 * Returns the limits of a request with one descriptor, from the same code that decides requests. `override` is a limit
 * in the request. Returns a sentence if weir would not decide such a request.
 */
export function matchingLimits(
  source: PlanSource,
  entries: readonly Entry[],
  override?: OverrideLimit,
): MatchingLimits | string {
  const context = contextOf(source, entries, override);
  const exceeded = matchAndPlan(context);
  if (exceeded === undefined) return metBy(context);
  return `weir does not decide requests with this descriptor (${exceeded}); see docs/reference/bounds.md`;
}

/** Returns the limits of a descriptor with a known `match`. */
export function limitsAt(source: PlanSource, match: Match): MatchingLimits {
  const context = contextOf(source, match.entries);
  const [descriptor] = context.request.descriptors as readonly [Descriptor];
  context.decisions.push(planDescriptor(context, descriptor, match));
  applyReplacesAndQuotas(context);
  return metBy(context);
}
