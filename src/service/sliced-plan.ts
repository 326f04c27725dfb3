import { type Descriptor, tooManyLimits } from '../codec/messages.js';
import { MatchWork } from '../policy/match-work.js';
import type { DomainPolicy, Exceeded, Match } from '../policy/policy.js';
import { phaseAt } from '../policy/rule.js';
import { TurnScheduler } from '../runtime/turns.js';
import { BadRequest } from './bad-descriptor.js';
import { applyReplacesAndQuotas } from './enforcement/quotas-and-replaces.js';
import { settlementDecision } from './holds/settlement-decision.js';
import { Decision, NO_TAKES, planDescriptor, type RequestContext } from './plan.js';

/**
 * A request that is denied because matching one of its descriptors exceeds its work budget, so that its rules are
 * unknown.
 */
export class Throttled {
  /** Index of the descriptor. */
  readonly index: number;
  /** Key of the entry whose value exceeds the budget. */
  readonly key: string;

  constructor(index: number, key: string) {
    this.index = index;
    this.key = key;
  }
}

/** The result of planning: the request with a decision for each descriptor, or the reason why it has none. */
export type Planned = RequestContext | BadRequest | Throttled;

/** Number of steps in a slice, about 1 ms. Work that cannot be interrupted takes no longer than that, either. */
export const SLICE_STEPS = 200_000;

/** Maximum number of descriptors of a request that is planned in one turn. */
const MAX_INLINE_DESCRIPTORS = 100;
/** Steps for planning a descriptor in addition to matching, and for each of its entries. */
const DESCRIPTOR_STEPS = 300;
const ENTRY_STEPS = 10;

/** Work budget for plans that are made in one turn; only one such plan runs at a time. */
const INLINE_WORK = new MatchWork(0);

/** The plan of a request that needs more work than fits into one turn. */
export class SlicedPlan {
  readonly context: RequestContext;
  /**
   * Key of an entry whose value exceeded the work budget in a descriptor that is allowed nevertheless, because no
   * enforced rule could have matched.
   */
  exceededKeyOfAllowed: string | undefined;

  constructor(context: RequestContext) {
    this.context = context;
  }

  /** Plans the request with at most `steps` in total, in slices of about {@link SLICE_STEPS}. */
  *steps(steps: number): Generator<void, Planned> {
    const { context } = this;
    const { decisions } = context;
    const { descriptors } = context.request;
    const budget = new SliceBudget(steps);
    while (decisions.length < descriptors.length) {
      const descriptor = descriptors[decisions.length] as Descriptor;
      const settlement = settlementDecision(context, descriptor);
      if (settlement !== undefined) {
        decisions.push(settlement);
        budget.addPlanned(descriptor);
        continue;
      }
      const { isUntouched } = budget;
      const before = budget.progress();
      const match = context.policy.match(descriptor.entries, budget.work);
      let decision = decisionOf(context, descriptor, match, budget.work);
      if (decision === undefined) {
        const hasProgressed = !isUntouched || budget.progress() > before;
        budget.refill();
        if (hasProgressed && budget.granted > 0) {
          yield;
          continue;
        }
        const exceeded = match.exceeded ?? exceededByOverride(context.policy, descriptor);
        if (mayDeny(context, descriptor, match, exceeded)) {
          return new Throttled(decisions.length, exceeded.key);
        }
        this.exceededKeyOfAllowed ??= exceeded.key;
        decision = new Decision(match, NO_TAKES, false);
      }
      budget.work.searches.length = 0;
      if (!addDecision(context, decision)) return tooManyLimitsRefusal(context);
      budget.addPlanned(descriptor);
      if (!budget.isSliceSpent) continue;
      budget.refill();
      yield;
    }
    // The store decides the request, and the answer is built, in one turn each.
    if (descriptors.length > MAX_INLINE_DESCRIPTORS) yield;
    return finishPlan(context);
  }
}

/** The work budget of one request, granted in slices. */
class SliceBudget {
  readonly work = new MatchWork(0);
  /** Steps at the start of this slice. */
  granted = 0;
  private stepsLeft: number;
  /** Steps of this slice that {@link work} does not count. */
  private plannedSteps = 0;

  constructor(steps: number) {
    this.stepsLeft = steps;
    this.refill();
  }

  /** Whether this slice is unused: work that does not fit into it fits into no other slice. */
  get isUntouched(): boolean {
    return this.work.remaining === this.granted;
  }

  /** Adds the steps of planning a descriptor. */
  addPlanned(descriptor: Descriptor): void {
    this.plannedSteps += DESCRIPTOR_STEPS + ENTRY_STEPS * descriptor.entries.length;
  }

  get isSliceSpent(): boolean {
    return this.granted - this.work.remaining + this.plannedSteps >= SLICE_STEPS;
  }

  /** Starts the next slice. */
  refill(): void {
    const { work } = this;
    this.plannedSteps = 0;
    this.stepsLeft -= this.granted - work.remaining - work.exempt;
    this.granted = Math.max(0, Math.min(SLICE_STEPS, this.stepsLeft));
    work.remaining = this.granted;
    work.exempt = 0;
  }

  /**
   * Returns a number that rises while searches advance or create lasting results. Steps invested in a name are lost
   * when the name is built again.
   */
  progress(): number {
    let sum = this.work.oneTime;
    for (const { progress } of this.work.searches) sum += 1 + progress;
    return sum;
  }
}

/** Describes a limit override whose bucket name exceeds the work budget. */
function exceededByOverride(policy: DomainPolicy, descriptor: Descriptor): Exceeded {
  return { key: descriptor.entries[0]?.key ?? '', denial: policy.denial };
}

/**
 * Returns whether an enforced rule, or the limit override, could have matched. The phase of an override is the one of
 * the node where the descriptor ends, or of the domain if there is no such node. While the node is unknown, every
 * possible phase counts.
 */
function mayDeny(
  context: RequestContext,
  descriptor: Descriptor,
  match: Match,
  { denial }: Exceeded,
): boolean {
  const { policy, wallMicros } = context;
  if (descriptor.limit !== undefined) {
    if (phaseAt(match.phase, wallMicros) === 'active') return true;
    if (match.exceeded === undefined) return false;
    return phaseAt(policy.phase, wallMicros) === 'active' || denial.overrideMayDeny(wallMicros);
  }
  return denial.mayDeny(wallMicros, () => context.percent());
}

/** Returns undefined if the work budget is exhausted. */
function decisionOf(
  context: RequestContext,
  descriptor: Descriptor,
  match: Match,
  work: MatchWork,
): Decision | undefined {
  return match.exceeded === undefined ? planDescriptor(context, descriptor, match, work) : undefined;
}

function finishPlan(context: RequestContext): RequestContext {
  applyReplacesAndQuotas(context);
  return context;
}

/** Returns false if the request matches too many limits. */
function addDecision(context: RequestContext, decision: Decision): boolean {
  context.limits += decision.takes.length + decision.oldestEnds.length;
  if (context.limits > context.options.maxLimits) return false;
  context.decisions.push(decision);
  return true;
}

function tooManyLimitsRefusal({ options }: RequestContext): BadRequest {
  return new BadRequest(tooManyLimits(options.maxLimits));
}

/**
 * Matches every descriptor of a validated request with one snapshot of the domain's policy, for at most `steps`
 * (MatchWork). Returns a {@link SlicedPlan} if the request needs more, and a {@link BadRequest} if it matches more than
 * `maxLimits` limits.
 */
export function plan(context: RequestContext, steps: number): RequestContext | BadRequest | SlicedPlan {
  const { policy } = context;
  const { descriptors } = context.request;
  const work = INLINE_WORK;
  work.remaining = steps;
  if (descriptors.length > MAX_INLINE_DESCRIPTORS) return new SlicedPlan(context);
  for (let i = 0; i < descriptors.length; i++) {
    const descriptor = descriptors[i] as Descriptor;
    const settlement = settlementDecision(context, descriptor);
    if (settlement !== undefined) {
      context.decisions.push(settlement);
      continue;
    }
    const match = policy.match(descriptor.entries, work);
    const decision = decisionOf(context, descriptor, match, work);
    if (decision === undefined) {
      work.searches.length = 0;
      return new SlicedPlan(context);
    }
    if (!addDecision(context, decision)) return tooManyLimitsRefusal(context);
  }
  return finishPlan(context);
}

/** Returns the steps that the last call of {@link plan} used. */
export function stepsSpent(given: number): number {
  return given - INLINE_WORK.remaining;
}

/**
 * Maximum and minimum steps (MatchWork) of a request in one turn. Most requests need far fewer than the minimum, which
 * each request gets regardless of the load.
 */
const MAX_INLINE_STEPS = 20_000;
const MIN_INLINE_STEPS = 8000;
/** Maximum steps of all requests in one turn of the event loop. */
const INLINE_STEPS_PER_TURN = 200_000;
/** Requests with at most this many steps are not counted, because they delay no other request. */
const NEGLIGIBLE_STEPS = 2000;

/**
 * Limits the matching that is done at once, before a request has to enter the queue. One read of a socket can contain
 * many requests, and one turn of the event loop serves all connections.
 */
export class InlineStepBudget {
  readonly #turns = new TurnScheduler<never>({ budget: INLINE_STEPS_PER_TURN });

  /** Returns the maximum steps of the next request. */
  grant(): number {
    return Math.max(MIN_INLINE_STEPS, Math.min(MAX_INLINE_STEPS, this.#turns.remaining));
  }

  /** Records the steps that it used. */
  spend(steps: number): void {
    if (steps > NEGLIGIBLE_STEPS) this.#turns.spend(steps);
  }
}
