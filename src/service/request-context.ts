import type { Descriptor, RateLimitRequest } from '../codec/messages.js';
import type { Enforcement, Take, TakeOutcome } from '../limiter/bucket-store.js';
import type { Clock } from '../limiter/clock.js';
import type { StoreFailurePolicy } from '../limiter/failure-policy.js';
import { MAX_SLOTS_PER_ITEM } from '../limiter/holds/hold.js';
import type { Rate } from '../limiter/rate.js';
import type { CompiledPolicy } from '../policy/compiled-policy.js';
import type { MatchWork } from '../policy/match-work.js';
import type { Match } from '../policy/policy.js';
import type { Rule } from '../policy/rule.js';
import type { AnswerOptions } from './answer/answer-options.js';
import type { Caller } from './caller.js';
import type { BoundHold } from './holds/hold-ids.js';
import type { HoldRecord } from './record/decision-record.js';

/** Options that apply to all requests of a service. */
export interface RequestOptions {
  readonly clock: Pick<Clock, 'wallMicros' | 'exactWallMicros'>;
  /** Options that apply to every answer. */
  readonly answers: AnswerOptions;
  /** Maximum number of limits in a request (MAX_LIMITS): the store decides a request in one atomic step. */
  readonly maxLimits: number;
  /** Bounds the matching work of a request. Only one request is matched at a time. */
  readonly matchWork: MatchWork;
  /** A number from 0 to below 1, for `enforce_percent`. Default: Math.random. */
  readonly random?: () => number;
}

/** The deduction that one descriptor requests from one bucket, and its outcome. */
export interface MatchedTake extends Take {
  readonly holds: BoundHold | undefined;
  /** Enforcement in the store: {@link ruleEnforcement}, or `observe` if the take cannot deny the request. */
  enforcement: Enforcement;
  /**
   * Enforcement of the rule in this request, which depends on the phase, `shadow_mode`, `quota_mode` and
   * `enforce_percent`.
   */
  ruleEnforcement: Enforcement;
  /** Whether the request is marked if it exceeds this soft limit (`on_over`). */
  readonly appliesOnOver: boolean;
  /** If this limit decides for its chain (`then`), all limits of the chain, in order. Otherwise empty. */
  chain: readonly MatchedTake[];
  /** Absent for a limit override. */
  readonly rule: Rule | undefined;
  /** `Rule.name`; '' for an override, as in the reference. */
  readonly name: string;
  /** The entry of Match.statNames; '' for an override, because only statistics need its name. */
  readonly statName: string;
  /** Label in metrics and logs: `Rule.path`, or `override`. */
  readonly rulePath: string;
  /** Whether `quota_mode` or QUOTA_MODE applies, in every phase. */
  readonly quota: boolean;
  /** `shadow_mode` of the rule. */
  readonly shadow: boolean;
  readonly onStoreFailure: StoreFailurePolicy;
  /**
   * Outcome from the store or the failure policy. Undefined before the store has decided, and with the failure policy
   * `allow`.
   */
  outcome: TakeOutcome | undefined;
}

/** The state of one descriptor from its match to its answer. */
export class DescriptorState {
  readonly match: Match;
  /** The takes of the descriptor. Empty if no rule matches, or if the rules are unlimited or replaced. */
  takes: readonly MatchedTake[];
  readonly unlimited: boolean;
  /** Whether the descriptor has a limit override, which replaces the rules. */
  readonly overridden: boolean;
  /**
   * Results of settling the hold token (see {@link TokenResults}) or {@link oldestSettlements}. Undefined if the
   * descriptor settles no holds.
   */
  settlementRecords: readonly HoldRecord[] | undefined;
  /** Items that settle the oldest hold of a bucket, because a request ends (`pair: oldest`). Their hits are the use. */
  oldestSettlements: readonly MatchedTake[] = NO_TAKES;

  constructor(
    match: Match,
    takes: readonly MatchedTake[],
    unlimited: boolean,
    overridden = false,
    ends?: readonly HoldRecord[],
  ) {
    this.match = match;
    this.takes = takes;
    this.unlimited = unlimited;
    this.overridden = overridden;
    this.settlementRecords = ends;
  }

  /** Whether the descriptor only settles holds, so that no limits apply to it. */
  get onlySettles(): boolean {
    return this.settlementRecords !== undefined && this.takes.length === 0;
  }
}

/** Label of limit overrides in metrics and logs. All overrides share one series, because callers choose them. */
export const OVERRIDE_LABEL = 'override';

/** Returns the hits of a descriptor: its own addend, or else the addend of the request, in which 0 means 1. */
export function hitsOf(descriptor: Descriptor, request: RateLimitRequest): number {
  return descriptor.hitsAddend ?? (request.hitsAddend === 0 ? 1 : request.hitsAddend);
}

export const NO_TAKES: readonly MatchedTake[] = [];
const NO_STATES: readonly DescriptorState[] = [];

/**
 * Reads the wall clock once for all requests that arrived together, and once for all whose replies from the store
 * arrived together: a reading takes longer than most steps of a decision, and such requests are decided within a
 * millisecond.
 */
export class WallReading {
  private receivedMicros = -1;
  private micros = 0;
  private lateMicros = -1;
  private readonly clock: Pick<Clock, 'wallMicros'>;
  private readonly forgetLate = (): void => {
    this.lateMicros = -1;
  };

  constructor(clock: Pick<Clock, 'wallMicros'>) {
    this.clock = clock;
  }

  /** Returns the wall clock for a request with this {@link Caller.receivedMicros}. */
  of(receivedMicros: number | undefined): number {
    if (receivedMicros === undefined) return this.clock.wallMicros();
    if (receivedMicros !== this.receivedMicros) {
      this.receivedMicros = receivedMicros;
      this.micros = this.clock.wallMicros();
    }
    return this.micros;
  }

  /**
   * Returns the wall clock for a request that has waited. The reading is forgotten after the other requests whose
   * replies arrived with this one have continued.
   */
  late(): number {
    if (this.lateMicros < 0) {
      this.lateMicros = this.clock.wallMicros();
      queueMicrotask(this.forgetLate);
    }
    return this.lateMicros;
  }
}

/**
 * The state of one request from its descriptors to its answer. It is created once for each request to a domain with a
 * policy, and each step adds its results.
 */
export class RequestContext {
  readonly options: RequestOptions;
  readonly request: RateLimitRequest;
  /** Settlements of the hold tokens in the request; undefined if the request has no tokens. */
  readonly settlements: TokenResults | undefined;
  /** The policy snapshot that decides the request. */
  readonly policy: CompiledPolicy;
  readonly caller: Caller;
  /** Monotonic time of arrival; 0 if neither a deadline nor a log needs it. */
  readonly startMicros: number;
  private readonly reading: WallReading | undefined;
  private waited = false;
  /** The wall clock, when it was needed first; -1 before. */
  private wall = -1;
  /** Wall clock time at which the store decided; 0 if no log needs it. */
  decidedMicros = 0;
  /** The decision of each planned descriptor, in order. */
  states: readonly DescriptorState[] = NO_STATES;
  /** The takes that are sent to the store; see {@link takesOf}. */
  takes: readonly MatchedTake[] = NO_TAKES;
  /** Whether the request exceeds an enforced limit. */
  limitDenies = false;
  /** Whether there are enforced quotas, and the request exceeds all of them. */
  quotasDeny = false;
  /** Value that {@link quotasDeny} would have if all phases were active. */
  quotasWouldDeny = false;
  /** Whether the answer is OVER_LIMIT. */
  denied = false;
  /** Hold token for the holds that the request has placed; undefined if it has placed none. */
  token: string | undefined = undefined;
  private drawn = -1;
  private slots = 0;

  constructor(
    options: RequestOptions,
    request: RateLimitRequest,
    policy: CompiledPolicy,
    caller: Caller,
    startMicros: number,
    settlements?: TokenResults,
    reading?: WallReading,
  ) {
    this.reading = reading;
    this.options = options;
    this.settlements = settlements;
    this.request = request;
    this.policy = policy;
    this.caller = caller;
    this.startMicros = startMicros;
  }

  /** The wall clock, in microseconds. It is read when it is needed first: most requests do not depend on it. */
  get wallMicros(): number {
    if (this.wall >= 0) return this.wall;
    const { reading } = this;
    if (reading === undefined) this.wall = this.options.clock.wallMicros();
    else this.wall = this.waited ? reading.late() : reading.of(this.caller.receivedMicros);
    return this.wall;
  }

  /** Reads the wall clock again when it is needed next, because the request has waited. */
  hasWaited(): void {
    this.wall = -1;
    this.waited = true;
  }

  /**
   * Returns `hits`. If the request would occupy more slots of concurrency limits than one item may, returns a number
   * that exceeds every limit instead. This bounds the work for one request.
   */
  boundedSlots(rate: Rate | undefined, hits: number): number {
    if (rate?.kind !== 'concurrency') return hits;
    this.slots += hits;
    return this.slots > MAX_SLOTS_PER_ITEM ? Math.max(hits, MAX_SLOTS_PER_ITEM + 1) : hits;
  }

  /**
   * Returns a random number from 0 up to, but not including, 100, which is compared with `enforce_percent`. It is drawn
   * once per request, when it is first needed, so that all rules make the same choice.
   */
  percent(): number {
    if (this.drawn < 0) this.drawn = (this.options.random ?? Math.random)() * 100;
    return this.drawn;
  }
}

/** Returns whether the limit is soft (`on_over`), so that requests over the limit are allowed. */
export function isSoft({ rule }: MatchedTake): boolean {
  return rule?.onOver !== undefined;
}

/**
 * Returns the takes in groups. The limits of a chain (`then`) form one group, and each other limit forms its own group.
 * The last limit of a chain decides for the whole chain.
 */
export function chainsOf(takes: readonly MatchedTake[]): readonly (readonly MatchedTake[])[] {
  const chains: MatchedTake[][] = [];
  let continues = false;
  for (const take of takes) {
    if (continues) chains.at(-1)?.push(take);
    else chains.push([take]);
    continues = take.enforcement === 'spill';
  }
  return chains;
}

/**
 * Returns the limits in a chain (`then`) before `take`, if `take` has paid for the request. Returns none if `take` is
 * the first limit, or has not paid.
 */
export function skippedLimits(take: MatchedTake): readonly MatchedTake[] {
  const { chain, outcome } = take;
  return chain.length === 0 || outcome?.overLimit !== false ? NO_TAKES : chain.slice(0, chain.indexOf(take));
}

/** In the order of the descriptors. */
export function takesOf(states: readonly DescriptorState[]): readonly MatchedTake[] {
  const only = states[0];
  // This is by far the most frequent case.
  if (only !== undefined && states.length === 1) return only.takes;
  const takes: MatchedTake[] = [];
  for (let i = 0; i < states.length; i++) {
    const { takes: own } = states[i] as DescriptorState;
    for (let at = 0; at < own.length; at++) takes.push(own[at] as MatchedTake);
  }
  return takes;
}

/** The settlements for the tokens in one request. */
export interface TokenResults {
  /**
   * The results of settling each token, for logs and traces, by the index of the descriptor. If several descriptors
   * have the same token, only the first one has the results. Undefined for descriptors without a token.
   */
  readonly ends: readonly (readonly HoldRecord[] | undefined)[];
  /** Resolves when all stores have answered or failed. Undefined if there is nothing to wait for. */
  readonly done: Promise<unknown> | undefined;
}
