import type { Descriptor, RateLimitRequest } from '../codec/messages.js';
import type { Enforcement, TakeItem, TakeOutcome } from '../limiter/bucket-store.js';
import type { Clock } from '../limiter/clock.js';
import type { StoreFailurePolicy } from '../limiter/failure-policy.js';
import { MAX_SLOTS_PER_ITEM } from '../limiter/holds/hold.js';
import type { Rate } from '../limiter/rate.js';
import type { MatchWork } from '../policy/match-work.js';
import type { DomainPolicy, Match } from '../policy/policy.js';
import type { Rule } from '../policy/rule.js';
import type { AnswerOptions } from './answer/answer-options.js';
import type { Caller } from './caller.js';
import type { BoundHold } from './holds/hold-ids.js';
import type { Settlements } from './holds/settlements.js';
import type { HoldRecord } from './record/decision-record.js';

/** Options that apply to all requests of a service. */
export interface PlanOptions {
  readonly clock: Pick<Clock, 'wallMicros' | 'exactWallMicros'>;
  /** Options that apply to every answer. */
  readonly answers: AnswerOptions;
  /** Maximum number of limits in a request (MAX_LIMITS): the store decides a request in one atomic step. */
  readonly maxLimits: number;
  /** Bounds the matching of a request; one request is matched at a time. */
  readonly matchWork: MatchWork;
  /** Returns random numbers from 0 up to, but not including, 1, for `enforce_percent`; Math.random if absent. */
  readonly random?: () => number;
}

/** A take that one descriptor requests from one bucket, and its outcome. */
export interface PlannedTake extends TakeItem {
  readonly holds: BoundHold | undefined;
  /** Enforcement in the store: {@link ruleEnforcement}, or `observe` if the take cannot deny the request. */
  enforcement: Enforcement;
  /** Enforcement of the rule in this request: phase, `shadow_mode`, `quota_mode` and `enforce_percent` determine it. */
  ruleEnforcement: Enforcement;
  /** Whether the request is marked if it is over this soft limit (`on_over`). */
  readonly marks: boolean;
  /** For the limit that decides for its chain (`then`): all limits of the chain, in order. Otherwise empty. */
  chain: readonly PlannedTake[];
  /** Absent for a limit override. */
  readonly rule: Rule | undefined;
  /** `Rule.name`; '' for an override, as in the reference. */
  readonly name: string;
  /** The entry of Match.statNames; '' for an override, whose name only statistics need. */
  readonly stat: string;
  /** Label in metrics and logs: `Rule.path`, or `override`. */
  readonly label: string;
  /** Whether `quota_mode` or QUOTA_MODE applies, in every phase. */
  readonly quota: boolean;
  /** `shadow_mode` of the rule. */
  readonly shadow: boolean;
  readonly onStoreFailure: StoreFailurePolicy;
  /** Outcome from the store or the failure policy; absent before, and with the failure policy `allow`. */
  outcome: TakeOutcome | undefined;
}

/** The state of one descriptor from its match to its answer. */
export class Decision {
  readonly match: Match;
  /** Takes that can deny or are observed; none without a rule, or if unlimited or replaced. */
  takes: readonly PlannedTake[];
  readonly unlimited: boolean;
  /** Whether the descriptor has a limit override, which replaces the rules. */
  readonly overridden: boolean;
  /**
   * Results of the hold token, see {@link Settlements}, or of {@link oldestEnds}. Undefined for a descriptor that ends
   * no holds.
   */
  ends: readonly HoldRecord[] | undefined;
  /** Takes that are not takes, but ends of requests (`pair: oldest`). Their hits are the use. */
  oldestEnds: readonly PlannedTake[] = NO_TAKES;

  constructor(
    match: Match,
    takes: readonly PlannedTake[],
    unlimited: boolean,
    overridden = false,
    ends?: readonly HoldRecord[],
  ) {
    this.match = match;
    this.takes = takes;
    this.unlimited = unlimited;
    this.overridden = overridden;
    this.ends = ends;
  }

  /** Whether the descriptor ends holds and meets no limits. */
  get onlyEnds(): boolean {
    return this.ends !== undefined && this.takes.length === 0;
  }
}

/** Label of limit overrides in metrics and logs. Callers choose overrides, so all of them share one series. */
export const OVERRIDE_LABEL = 'override';

/** Returns the hits of a descriptor: its own addend, or the addend of the request, where 0 means 1. */
export function hitsOf(descriptor: Descriptor, request: RateLimitRequest): number {
  return descriptor.hitsAddend ?? (request.hitsAddend === 0 ? 1 : request.hitsAddend);
}

export const NO_TAKES: readonly PlannedTake[] = [];

/**
 * The state of one request from its descriptors to its answer. Created once for each request of a domain that has a
 * policy; each step adds its results.
 */
export class RequestContext {
  readonly options: PlanOptions;
  readonly request: RateLimitRequest;
  /** Settlements of the hold tokens in the request; undefined without tokens. */
  readonly settlements: Settlements | undefined;
  /** The policy snapshot that decides the request. */
  readonly policy: DomainPolicy;
  readonly caller: Caller;
  /** Monotonic time of arrival; 0 if neither a deadline nor a log needs it. */
  readonly startMicros: number;
  /** Wall clock time of planning, and later of the answer. */
  wallMicros: number;
  /** Wall clock time at which the store decided; 0 if no log needs it. */
  decidedMicros = 0;
  /** The decision of each planned descriptor, in order. */
  readonly decisions: Decision[] = [];
  /** The takes that are sent to the store; see {@link takesOf}. */
  takes: readonly PlannedTake[] = NO_TAKES;
  /** Whether an enforced bucket is over its limit. */
  limitDenies = false;
  /** Whether there are enforced quotas and all of them are over their limits. */
  quotasDeny = false;
  /** Value of {@link quotasDeny} if all phases were active. */
  quotasWouldDeny = false;
  /** Whether the answer is OVER_LIMIT. */
  denied = false;
  /** Token of the holds that the request placed; undefined if it placed none. */
  token: string | undefined = undefined;
  private drawn = -1;
  private slots = 0;

  constructor(
    options: PlanOptions,
    request: RateLimitRequest,
    policy: DomainPolicy,
    caller: Caller,
    startMicros: number,
    settlements?: Settlements,
  ) {
    this.options = options;
    this.settlements = settlements;
    this.request = request;
    this.policy = policy;
    this.caller = caller;
    this.startMicros = startMicros;
    this.wallMicros = options.clock.wallMicros();
  }

  /**
   * Returns `hits`, or a number that is always limited if the request would take more slots of concurrency limits than
   * one item may. This bounds the work for one request.
   */
  boundedSlots(rate: Rate | undefined, hits: number): number {
    if (rate?.kind !== 'concurrency') return hits;
    this.slots += hits;
    return this.slots > MAX_SLOTS_PER_ITEM ? Math.max(hits, MAX_SLOTS_PER_ITEM + 1) : hits;
  }

  /**
   * Returns the number from 0 up to, but not including, 100 that is compared with `enforce_percent`. It is drawn once
   * per request, when it is first needed, so that all rules agree.
   */
  percent(): number {
    if (this.drawn < 0) this.drawn = (this.options.random ?? Math.random)() * 100;
    return this.drawn;
  }
}

/** Returns whether the limit is soft (`on_over`): requests over it pass. */
export function isSoft({ rule }: PlannedTake): boolean {
  return rule?.onOver !== undefined;
}

/**
 * Returns the takes in groups: the limits of a chain (`then`) together, and each other limit alone. The last limit of a
 * chain decides for all of them.
 */
export function chainsOf(takes: readonly PlannedTake[]): readonly (readonly PlannedTake[])[] {
  const chains: PlannedTake[][] = [];
  let continues = false;
  for (const take of takes) {
    if (continues) chains.at(-1)?.push(take);
    else chains.push([take]);
    continues = take.enforcement === 'spill';
  }
  return chains;
}

/** Returns the limits before the one that paid for its chain (`then`); none if it is the first one, or did not pay. */
export function passedOver(take: PlannedTake): readonly PlannedTake[] {
  const { chain, outcome } = take;
  return chain.length === 0 || outcome?.limited !== false ? NO_TAKES : chain.slice(0, chain.indexOf(take));
}

/** Returns the takes of a request, in the order of the descriptors. */
export function takesOf(decisions: readonly Decision[]): readonly PlannedTake[] {
  const [only] = decisions;
  // This is by far the most frequent case.
  if (only !== undefined && decisions.length === 1) return only.takes;
  const takes: PlannedTake[] = [];
  for (let i = 0; i < decisions.length; i++) {
    const { takes: own } = decisions[i] as Decision;
    for (let at = 0; at < own.length; at++) takes.push(own[at] as PlannedTake);
  }
  return takes;
}
