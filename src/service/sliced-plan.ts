import { type Descriptor, tooManyLimits } from '../codec/messages.js';
import {
  DEFAULT_MAX_MATCH_WORK,
  DEFAULT_MAX_REGEX_VALUE_BYTES,
  type MatchBound,
  MatchWork,
} from '../policy/match-work.js';
import { BadRequest } from './bad-descriptor.js';
import { applyReplacesAndQuotas } from './enforcement/quotas-and-replaces.js';
import { settlementDecision } from './holds/settlement-decision.js';
import { type Decision, planDescriptor, type RequestContext } from './plan.js';

/** A request that is given up because matching one of its descriptors exceeds a bound, so that its rules are unknown. */
export class Throttled {
  /** Index of the descriptor. */
  readonly index: number;
  readonly bound: MatchBound;

  constructor(index: number, bound: MatchBound) {
    this.index = index;
    this.bound = bound;
  }
}

/** The result of planning: the request with a decision for each descriptor, or the reason why it has none. */
export type Planned = RequestContext | BadRequest | Throttled;

/** Maximum number of descriptors of a request that is planned in one turn, and in each slice of others. */
const MAX_INLINE_DESCRIPTORS = 100;

/** The work of plans that are made in one turn; only one such plan runs at a time. */
const INLINE_WORK = newWork();

function newWork(): MatchWork {
  return new MatchWork(DEFAULT_MAX_MATCH_WORK, DEFAULT_MAX_REGEX_VALUE_BYTES);
}

/** The plan of a request that needs more work than fits into one turn. */
export class SlicedPlan {
  readonly context: RequestContext;

  constructor(context: RequestContext) {
    this.context = context;
  }

  /** Plans the request in slices. */
  *steps(): Generator<void, Planned> {
    const { context } = this;
    const work = newWork();
    for (let i = 0; i < context.request.descriptors.length; i++) {
      const failed = addDecision(context, work);
      if (failed !== undefined) return failed;
      if (i % MAX_INLINE_DESCRIPTORS === MAX_INLINE_DESCRIPTORS - 1) yield;
    }
    // The store decides the request, and the answer is built, in one turn each.
    yield;
    return finishPlan(context);
  }
}

function finishPlan(context: RequestContext): RequestContext {
  applyReplacesAndQuotas(context);
  return context;
}

/** Adds the decision of the next descriptor. Returns the reason if the request has no plan. */
function addDecision(context: RequestContext, work: MatchWork): BadRequest | Throttled | undefined {
  const { decisions } = context;
  const descriptor = context.request.descriptors[decisions.length] as Descriptor;
  const settlement = settlementDecision(context, descriptor);
  if (settlement !== undefined) {
    decisions.push(settlement);
    return undefined;
  }
  const match = context.policy.match(descriptor.entries, work);
  if (work.exceeded !== undefined) return new Throttled(decisions.length, work.exceeded);
  const decision: Decision = planDescriptor(context, descriptor, match);
  context.limits += decision.takes.length + decision.oldestEnds.length;
  const { maxLimits } = context.options;
  if (context.limits > maxLimits) return new BadRequest(tooManyLimits(maxLimits));
  decisions.push(decision);
  return undefined;
}

/**
 * Matches every descriptor of a validated request with one snapshot of the domain's policy. Returns a
 * {@link SlicedPlan} if the request has many descriptors, a {@link BadRequest} if it matches more than `maxLimits`
 * limits, and {@link Throttled} if it exceeds a bound of matching.
 */
export function plan(context: RequestContext): Planned | SlicedPlan {
  const { length } = context.request.descriptors;
  if (length > MAX_INLINE_DESCRIPTORS) return new SlicedPlan(context);
  INLINE_WORK.reset();
  for (let i = 0; i < length; i++) {
    const failed = addDecision(context, INLINE_WORK);
    if (failed !== undefined) return failed;
  }
  return finishPlan(context);
}
