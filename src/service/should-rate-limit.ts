import type { RequestDecoder } from '../codec/decode-request.js';
import type { RateLimitRequest, RateLimitResponse } from '../codec/messages.js';
import {
  type BucketStore,
  type LocalStore,
  StorageError,
  type TakeOutcome,
  type TakeResult,
} from '../limiter/bucket-store.js';
import type { Clock } from '../limiter/clock.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import { answer, answerWithoutLimits, givenUpAnswer } from './answer/answer.js';
import { noteDenial } from './answer/denial.js';
import { CALLER_WITHOUT_DEADLINE, type Caller, replyMarginMicros } from './caller.js';
import type { DecisionObserver } from './decision-observer.js';
import { Holds } from './holds/holds.js';
import { TokenMac } from './holds/token-mac.js';
import { LARGE_DESCRIPTORS, LARGE_MESSAGE_BYTES, LargeRequests } from './large-requests.js';
import { findBadDescriptor, matchAndPlan } from './match.js';
import { Observation } from './observe.js';
import type { DecisionLog, GivenUpReason } from './record/decision-record.js';
import { recordStoreSpan } from './record/request-trace.js';
import {
  CALLER_CANCELLED,
  NO_CONFIGURATION,
  NO_DESCRIPTORS,
  NO_DOMAIN,
  Refusal,
  refusalOf,
  STORE_UNAVAILABLE,
} from './refusal.js';
import {
  type MatchedTake,
  NO_TAKES,
  RequestContext,
  type RequestOptions,
  takesOf,
  WallReading,
} from './request-context.js';
import { markNeverPassing } from './shared-bucket.js';
import { askStore, decideWithoutStore } from './store-failure.js';
import { bytesOf, WaitingRequests } from './waiting-requests.js';

/** Dependencies and options of {@link ShouldRateLimit}. */
export interface ShouldRateLimitOptions extends RequestOptions {
  readonly decoder: Pick<RequestDecoder, 'decode'>;
  readonly clock: Clock;
  readonly store: BucketStore;
  /** Synchronous store in memory for `on_store_failure: local`. */
  readonly local: LocalStore;
  readonly policies: {
    /** Undefined until the first load. */
    current(): PolicySet | undefined;
  };
  readonly observer: DecisionObserver;
  /** Receives samples of decisions; undefined if there is no decision log. */
  readonly decisionLog?: DecisionLog | undefined;
  /** Maximum time for a store call (REDIS_TIMEOUT), in microseconds. */
  readonly storeTimeoutMicros: number;
  /** Marks hold tokens. If absent, tokens are marked with a new key. */
  readonly holdMarks?: TokenMac;
  /** Counts requests that wait for the store. If absent, a new object is created. */
  readonly waiting?: WaitingRequests;
}

const NO_OUTCOMES: readonly TakeOutcome[] = [];

type Reply = RateLimitResponse | Refusal;

/**
 * Decides RateLimitRequests, independently of transport and store. Returns an answer, or a {@link Refusal}. Answers
 * synchronously if the request is small and the store answers synchronously. Large requests wait for their turn.
 * Requests above a bound are answered without a decision.
 */
export class ShouldRateLimit {
  readonly #options: ShouldRateLimitOptions;
  readonly #large: LargeRequests;
  readonly #observation: Observation;
  /**
   * Whether buckets are in memory. If they are, calls cannot miss a deadline, so there is no need to read the clock.
   */
  readonly #isSynchronous: boolean;
  readonly #waiting: WaitingRequests;
  readonly #holds: Holds;
  readonly #wallReading: WallReading;

  constructor(options: ShouldRateLimitOptions) {
    this.#options = options;
    this.#wallReading = new WallReading(options.clock);
    this.#large = new LargeRequests(options.clock);
    this.#waiting = options.waiting ?? new WaitingRequests();
    this.#observation = new Observation(options.observer, options.clock, options.decisionLog);
    const { holds: counts } = options.observer.counts;
    const { holdMarks: marks = new TokenMac(options.clock) } = options;
    this.#holds = new Holds({ ...options, counts, tokenMac: marks });
    this.#isSynchronous = (options.store as unknown) === options.local;
  }

  /** Number of large requests that wait for their turn, and their memory in bytes. */
  get largeRequests(): { readonly size: number; readonly bytes: number } {
    return this.#large;
  }

  /**
   * Decides the encoded request in `bytes[start, end)`, see {@link RequestDecoder.decode}. The caller may reuse the
   * buffer after this method returns.
   */
  handle(
    bytes: Uint8Array,
    caller: Caller = CALLER_WITHOUT_DEADLINE,
    start = 0,
    end = bytes.length,
  ): Reply | Promise<Reply> {
    const startMicros = this.#startMicros();
    let request: RateLimitRequest;
    try {
      request = this.#options.decoder.decode(bytes, start, end);
    } catch (error) {
      return refusalOf(error);
    }
    return this.#decide(request, end - start, startMicros, caller);
  }

  /** Decides a decoded request, like {@link handle}. */
  decide(request: RateLimitRequest, caller: Caller = CALLER_WITHOUT_DEADLINE): Reply | Promise<Reply> {
    return this.#decide(request, bytesOf(request), this.#startMicros(), caller);
  }

  /** Waits for settlements of holds that no request waits for; see {@link SettlementQueue.drain}. */
  drainHolds(graceMs: number): Promise<number> {
    return this.#holds.drain(graceMs);
  }

  #startMicros(): number {
    return this.#isSynchronous && !this.#observation.wantsStart ? 0 : this.#options.clock.monotonicMicros();
  }

  #decide(
    request: RateLimitRequest,
    messageBytes: number,
    startMicros: number,
    caller: Caller,
  ): Reply | Promise<Reply> {
    const policySet = this.#options.policies.current();
    const isEmpty = request.descriptors.length === 0 && request.exceeded === undefined;
    const policy = isEmpty ? undefined : policySet?.domains.get(request.domain);
    if (policy === undefined) return this.#decideWithoutPolicy(request, policySet, startMicros, caller);
    // Settle the holds before any step that may end without a decision, because Envoy sends each token only once.
    const settlements = policy.hasHolds ? this.#holds.settle(request, policy, caller.connection) : undefined;
    const context = new RequestContext(
      this.#options,
      request,
      policy,
      caller,
      startMicros,
      settlements,
      this.#wallReading,
    );
    if (request.exceeded !== undefined) return this.#giveUp(context, request.exceeded);
    const bad = findBadDescriptor(request.descriptors);
    if (bad !== undefined) return this.#refuse(new Refusal('bad_request', bad));
    if (request.descriptors.length <= LARGE_DESCRIPTORS && messageBytes <= LARGE_MESSAGE_BYTES) {
      return this.#planAndTake(context, startMicros);
    }
    return this.#large.run<Reply>(caller, bytesOf(request), (noTurn) => {
      if (noTurn === 'cancelled') return CALLER_CANCELLED;
      if (noTurn !== undefined) return this.#giveUp(context, noTurn);
      const { clock } = this.#options;
      context.hasWaited();
      return this.#planAndTake(context, this.#isSynchronous ? 0 : clock.monotonicMicros());
    });
  }

  /** Answers a request that no policy decides. */
  #decideWithoutPolicy(
    request: RateLimitRequest,
    policySet: PolicySet | undefined,
    startMicros: number,
    caller: Caller,
  ): Reply {
    if (request.domain === '') return this.#refuse(NO_DOMAIN);
    if (request.descriptors.length === 0 && request.exceeded === undefined)
      return this.#refuse(NO_DESCRIPTORS);
    if (policySet === undefined) return this.#refuse(NO_CONFIGURATION);
    const response = answerWithoutLimits(request, policySet, this.#options.answers);
    this.#observation.unknownDomain(request, policySet, response, startMicros, caller);
    return response;
  }

  #planAndTake(context: RequestContext, nowMicros: number): Reply | Promise<Reply> {
    const exceeded = matchAndPlan(context);
    if (exceeded === undefined) return this.#take(context, this.#storeDeadline(nowMicros, context.caller));
    this.#holds.settlePlanned(context);
    return this.#giveUp(context, exceeded);
  }

  /**
   * Answers a request without a decision. Denies the request if a rule may deny it. `mayDeny` is undefined if the rules
   * are unknown. In this case, every rule of the domain counts, and every override that may not have been read.
   */
  #giveUp(
    context: RequestContext,
    why: GivenUpReason,
    mayDeny = this.#anyMayDeny(context),
  ): RateLimitResponse {
    const { policy } = context;
    const { answers, clock } = this.#options;
    const { shadowMode } = answers;
    // No store has read the clock for this request, and the metadata of the answer contains its latest reading.
    clock.monotonicMicros();
    const denies = mayDeny && !shadowMode;
    this.#observation.givenUp(policy.domain, why, denies);
    if (mayDeny && shadowMode) this.#observation.counts.reference.globalShadow();
    const response = givenUpAnswer(context, why, denies);
    this.#observation.undecided(context, response, why);
    return response;
  }

  #anyMayDeny(context: RequestContext): boolean {
    const { possibleDenial } = context.policy;
    const { wallMicros } = context;
    return (
      possibleDenial.overrideMayDeny(wallMicros) ||
      possibleDenial.mayDeny(wallMicros, () => context.percent())
    );
  }

  #take(context: RequestContext, storeDeadlineMicros: number): Reply | Promise<Reply> {
    // Settle the holds first, so that the limits of the same request can use the hits that are given back.
    const done = context.settlements?.done;
    const oldest = context.policy.hasHolds ? this.#holds.settleOldest(context) : undefined;
    const settled = oldest === undefined ? done : Promise.all([done, oldest]);
    if (settled === undefined) return this.#takeLimits(context, storeDeadlineMicros);
    const { request, caller } = context;
    const answered = this.#waiting.begin(bytesOf(request), caller.connection);
    // If there is no memory for another waiting request, decide the limits immediately.
    if (answered === undefined) return this.#takeLimits(context, storeDeadlineMicros);
    return settled.then(() => {
      answered();
      return this.#takeLimits(context, storeDeadlineMicros);
    });
  }

  #takeLimits(context: RequestContext, storeDeadlineMicros: number): Reply | Promise<Reply> {
    const takes = takesOf(context.states);
    context.takes = takes;
    if (takes.length === 0) return this.#finish(context, NO_OUTCOMES);
    if (context.policy.hasHolds && !this.#holds.fitIntoToken(takes)) {
      return this.#giveUp(context, 'hold_token', mayDeny(takes));
    }
    const { request, caller } = context;
    const { connection } = caller;
    const answered = this.#isSynchronous ? undefined : this.#waiting.begin(bytesOf(request), connection);
    const mayWait = this.#isSynchronous || answered !== undefined;
    const span = caller.trace?.span?.storeCalled(takes.length);
    let result = askStore(this.#options.store, takes, storeDeadlineMicros, mayWait, answered);
    if (span !== undefined) result = recordStoreSpan(span, result, !this.#isSynchronous);
    if (result instanceof Promise) return this.#finishAsync(context, result, answered);
    answered?.();
    return this.#finish(context, result);
  }

  /** Calls {@link #finish} after the store has answered; `answered` releases the memory of the waiting request. */
  #finishAsync(
    context: RequestContext,
    result: Promise<TakeResult>,
    answered: (() => void) | undefined,
  ): Promise<Reply> {
    return result.then(
      (late) => {
        answered?.();
        context.hasWaited();
        return this.#finish(context, late);
      },
      (error: unknown) => {
        answered?.();
        throw error;
      },
    );
  }

  #refuse(refusal: Refusal): Refusal {
    this.#observation.counts.reference.failed('service');
    return refusal;
  }

  /**
   * Returns the deadline for the store: the caller's deadline minus the margin for the reply, or the time at which the
   * store's timeout ends, whichever is earlier.
   */
  #storeDeadline(nowMicros: number, { deadlineMicros }: Caller): number {
    if (this.#isSynchronous) return Number.POSITIVE_INFINITY;
    const own = nowMicros + this.#options.storeTimeoutMicros;
    if (deadlineMicros === Number.POSITIVE_INFINITY) return own;
    return Math.min(own, deadlineMicros - replyMarginMicros(deadlineMicros - nowMicros));
  }

  #finish(context: RequestContext, result: TakeResult): Reply {
    const { takes } = context;
    const isFailed = result instanceof StorageError;
    if (isFailed) {
      const undecided = this.#decideWithoutStore(context, result);
      if (undecided !== undefined) return undecided;
    } else {
      for (let i = 0; i < takes.length; i++) (takes[i] as MatchedTake).outcome = result[i];
    }
    if (this.#observation.wantsDecisionTime) context.decidedMicros = this.#decidedMicros(result);
    if (context.policy.hasHolds) this.#holds.notePlaced(context, isFailed);
    noteDenial(context);
    const { counts } = this.#observation;
    if (this.#options.answers.shadowMode && (context.limitDenies || context.quotasDeny)) {
      counts.reference.globalShadow();
    }
    const shared = isFailed ? NO_TAKES : context.takes;
    if (shared.length > 1) markNeverPassing(shared);
    const response = answer(context);
    this.#observation.answered(context, response);
    return response;
  }

  /** Returns the time at which the store decided. If the store reported no time, returns the time of this process. */
  #decidedMicros(result: TakeResult): number {
    const { clock } = this.#options;
    const ofRedis = result instanceof StorageError ? undefined : result.find(isTimed)?.decidedMicros;
    return ofRedis ?? clock.exactWallMicros?.() ?? clock.wallMicros();
  }

  /** Applies the failure policies. Returns an answer if they do not decide the request. */
  #decideWithoutStore(context: RequestContext, error: StorageError): Reply | undefined {
    const { counts } = this.#observation;
    const { takes, policy, states } = context;
    if (policy.hasHolds) this.#holds.abandon(context, error);
    if (error.reason === 'full') {
      return this.#giveUp(context, 'full', mayDeny(takes));
    }
    counts.storeError(error.reason);
    if (decideWithoutStore(states, this.#options.local, counts)) return undefined;
    counts.reference.failed('redis');
    for (const state of states) this.#observation.counted(policy, state);
    return STORE_UNAVAILABLE;
  }
}

function isTimed({ decidedMicros }: TakeOutcome): boolean {
  return decidedMicros !== undefined;
}

function mayDeny(takes: readonly MatchedTake[]): boolean {
  return takes.some(({ enforcement }) => enforcement === 'enforce' || enforcement === 'quota');
}
