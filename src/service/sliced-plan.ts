import { type Descriptor, tooManyLimits } from '../codec/messages.js';
import type { LiveControl } from '../limiter/control.js';
import { EXCEEDED, MatchWork } from '../policy/match-work.js';
import type { DomainPolicy, Exceeded, Match } from '../policy/policy.js';
import { phaseAt } from '../policy/rule.js';
import { TurnScheduler } from '../runtime/turns.js';
import { BadRequest } from './bad-descriptor.js';
import { applyReplacesAndQuotas, Decision, NO_TAKES, planDescriptor, type RequestContext } from './plan.js';

/**
 * A request that is denied because nobody knows what one of its descriptors matches: to find out takes more work than
 * it may cause.
 */
export class Throttled {
  /** The place of the descriptor. */
  readonly index: number;
  /** Of the entry whose value takes too much. */
  readonly key: string;
  /** Whether it may be one that is blocked, so that no shadow mode lets it pass. */
  readonly mayBeBlocked: boolean;

  constructor(index: number, key: string, mayBeBlocked: boolean) {
    this.index = index;
    this.key = key;
    this.mayBeBlocked = mayBeBlocked;
  }
}

/** What became of a request: itself, with a decision for each descriptor, or why it has none. */
export type Planned = RequestContext | BadRequest | Throttled;

/** Steps of a stretch: about a millisecond. What cannot be interrupted takes no more than that, either. */
export const SLICE_STEPS = 200_000;

/** Requests of more descriptors are not planned at once. */
const MAX_INLINE_DESCRIPTORS = 100;
/** Steps that planning a descriptor takes beside matching it, and for each of its entries. */
const DESCRIPTOR_STEPS = 300;
const ENTRY_STEPS = 10;

/** For what is planned at once: nobody else uses it meanwhile. */
const INLINE_WORK = new MatchWork(0);

/** A request that takes too long to be planned at once: the rest of it. */
export class SlicedPlan {
  readonly context: RequestContext;
  /**
   * Of an entry whose value took more work than there was, in a descriptor that is not denied for it: no rule in force
   * could have matched.
   */
  exceededKeyOfAllowed: string | undefined;

  constructor(context: RequestContext) {
    this.context = context;
  }

  /** Plans with `steps` in all, in stretches of at most {@link SLICE_STEPS} or so. */
  *steps(steps: number): Generator<void, Planned> {
    const { context } = this;
    const { decisions } = context;
    const { descriptors } = context.request;
    const budget = new SliceBudget(steps);
    while (decisions.length < descriptors.length) {
      const descriptor = descriptors[decisions.length] as Descriptor;
      const { isUntouched } = budget;
      const before = budget.progress();
      const match = context.policy.match(descriptor.entries, budget.work);
      const control = controlOf(context, match, budget.work);
      let decision = decisionOf(context, descriptor, match, control, budget.work);
      if (decision === undefined) {
        const hasProgressed = !isUntouched || budget.progress() > before;
        budget.refill();
        if (hasProgressed && budget.granted > 0) {
          yield;
          continue;
        }
        const exceeded = match.exceeded ?? exceededByOverride(context.policy, descriptor);
        const mayBeBlocked = control === EXCEEDED && (context.controls?.blocks ?? 0) > 0;
        if (!context.blocked && (mayBeBlocked || mayDeny(context, descriptor, match, exceeded))) {
          return new Throttled(decisions.length, exceeded.key, mayBeBlocked);
        }
        this.exceededKeyOfAllowed ??= exceeded.key;
        decision = new Decision(match, NO_TAKES, undefined, false);
      }
      budget.work.searches.length = 0;
      if (!addDecision(context, decision)) return tooManyLimitsRefusal(context);
      budget.addPlanned(descriptor);
      if (!budget.isSliceSpent) continue;
      budget.refill();
      yield;
    }
    // The store decides all of it at once, and its answer is put together at once.
    if (descriptors.length > MAX_INLINE_DESCRIPTORS) yield;
    return finishPlan(context);
  }
}

/** The steps of one request, given out stretch by stretch. */
class SliceBudget {
  readonly work = new MatchWork(0);
  /** What this stretch began with. */
  granted = 0;
  private stepsLeft: number;
  /** Steps of this stretch that {@link work} knows nothing of. */
  private plannedSteps = 0;

  constructor(steps: number) {
    this.stepsLeft = steps;
    this.refill();
  }

  /** Whether nothing was taken yet in this stretch: what does not fit into it fits into none. */
  get isUntouched(): boolean {
    return this.work.left === this.granted;
  }

  /** A descriptor is planned. */
  addPlanned(descriptor: Descriptor): void {
    this.plannedSteps += DESCRIPTOR_STEPS + ENTRY_STEPS * descriptor.entries.length;
  }

  get isSliceSpent(): boolean {
    return this.granted - this.work.left + this.plannedSteps >= SLICE_STEPS;
  }

  /** Begins the next stretch. */
  refill(): void {
    const { work } = this;
    this.plannedSteps = 0;
    this.stepsLeft -= this.granted - work.left - work.invested;
    this.granted = Math.max(0, Math.min(SLICE_STEPS, this.stepsLeft));
    work.left = this.granted;
    work.invested = 0;
  }

  /**
   * Rises as searches go on, and with what is made that stays. What is invested in a name is gone when the same is
   * tried anew.
   */
  progress(): number {
    let sum = this.work.lasting;
    for (const { progress } of this.work.searches) sum += 1 + progress;
    return sum;
  }
}

/** A limit override whose bucket takes too long to name. */
function exceededByOverride(policy: DomainPolicy, descriptor: Descriptor): Exceeded {
  return { key: descriptor.entries[0]?.key ?? '', denial: policy.denial, isDerived: true };
}

/**
 * Whether a rule in force could have matched; a limit override is one. Its phase is that of the node where the
 * descriptor ends, or of the domain if that is none: as long as nobody knows which, each counts that it could be.
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

/** What is in force for a descriptor in the place of its limits; EXCEEDED where `work` does not last to know. */
function controlOf(
  { controls }: RequestContext,
  { exceeded, entries }: Match,
  work: MatchWork,
): LiveControl | undefined | typeof EXCEEDED {
  if (controls === undefined) return undefined;
  return exceeded?.isDerived === false ? EXCEEDED : controls.find(entries, work);
}

/** Undefined where the work did not last. */
function decisionOf(
  context: RequestContext,
  descriptor: Descriptor,
  match: Match,
  control: LiveControl | undefined | typeof EXCEEDED,
  work: MatchWork,
): Decision | undefined {
  if (control === EXCEEDED) return undefined;
  if (control !== undefined) {
    context.blocked ||= control.kind === 'block';
    const overridden = descriptor.limit !== undefined && match.entries.length > 0;
    return new Decision(match, NO_TAKES, undefined, false, control, overridden);
  }
  if (context.blocked) return new Decision(match, NO_TAKES, undefined, false);
  return match.exceeded === undefined ? planDescriptor(context, descriptor, match, work) : undefined;
}

function finishPlan(context: RequestContext): RequestContext {
  if (context.blocked) dropTakes(context.decisions);
  else applyReplacesAndQuotas(context);
  return context;
}

/** A request that a block denies does not ask the store, and takes nothing. */
function dropTakes(decisions: readonly Decision[]): void {
  for (const decision of decisions) {
    decision.takes = NO_TAKES;
    decision.candidate = undefined;
  }
}

/** False when the request meets too many limits. */
function addDecision(context: RequestContext, decision: Decision): boolean {
  context.limits += decision.takes.length;
  if (context.limits > context.options.maxLimits && !context.blocked) return false;
  context.decisions.push(decision);
  return true;
}

function tooManyLimitsRefusal({ options }: RequestContext): BadRequest {
  return new BadRequest(tooManyLimits(options.maxLimits));
}

/**
 * Matches every descriptor of a checked request against its snapshot of the domain's policy, as far as `steps`
 * (MatchWork) go; a request that takes more is left as {@link SlicedPlan}. A request that meets more than `maxLimits`
 * limits is refused: so many the store decides in one step. A candidate never changes an answer, so it does not count;
 * there is one for a descriptor at most.
 */
export function plan(context: RequestContext, steps: number): RequestContext | BadRequest | SlicedPlan {
  const { policy } = context;
  const { descriptors } = context.request;
  const work = INLINE_WORK;
  work.left = steps;
  if (descriptors.length > MAX_INLINE_DESCRIPTORS) return new SlicedPlan(context);
  for (let i = 0; i < descriptors.length; i++) {
    const descriptor = descriptors[i] as Descriptor;
    const match = policy.match(descriptor.entries, work);
    const decision = decisionOf(context, descriptor, match, controlOf(context, match, work), work);
    if (decision === undefined) {
      work.searches.length = 0;
      return new SlicedPlan(context);
    }
    if (!addDecision(context, decision)) return tooManyLimitsRefusal(context);
  }
  return finishPlan(context);
}

/** Steps that {@link plan} took, the last time it was called. */
export function stepsSpent(given: number): number {
  return given - INLINE_WORK.left;
}

/**
 * Steps (MatchWork) that a request may take at once, and those that each may take however many there are: usual ones
 * take far fewer.
 */
const MAX_INLINE_STEPS = 20_000;
const MIN_INLINE_STEPS = 8000;
/** All requests together, in one turn of the event loop. */
const INLINE_STEPS_PER_TURN = 200_000;
/** Nobody waits longer for so few. */
const NEGLIGIBLE_STEPS = 2000;

/**
 * How much matching may be done at once, before a request has to take its turns: many requests come by one read of a
 * socket, and those of all connections in one turn of the event loop.
 */
export class InlineStepBudget {
  readonly #turns = new TurnScheduler<never>({ budget: INLINE_STEPS_PER_TURN });

  /** What the next request may take. */
  grant(): number {
    return Math.max(MIN_INLINE_STEPS, Math.min(MAX_INLINE_STEPS, this.#turns.remaining));
  }

  /** What it took. */
  spend(steps: number): void {
    if (steps > NEGLIGIBLE_STEPS) this.#turns.spend(steps);
  }
}
