import {
  LARGE_MESSAGE_BYTES,
  type RateLimitRequest,
  type RateLimitResponse,
  tooManyDescriptors,
} from '../codec/messages.js';
import { StorageError, type TakeOutcome, type TakeResult } from '../limiter/bucket-store.js';
import type { DomainPolicy } from '../policy/policy.js';
import { answer, answerWithoutLimits } from './answer/answer.js';
import { noteDenial } from './answer/denial.js';
import { passingAnswer } from './answer/throttled-answer.js';
import { askStore } from './ask-store.js';
import { BadRequest, findBadDescriptor } from './bad-descriptor.js';
import { CALLER_WITHOUT_DEADLINE, type Caller, replyMarginMicros, waiterOf } from './caller.js';
import { HoldMarks } from './holds/hold-marks.js';
import { Holds } from './holds/holds.js';
import type { Settlements } from './holds/settlements.js';
import { answerInSlices, isLargeAnswer } from './large-answer.js';
import { bytesOf, hasOverride, LargeMessage } from './large-message.js';
import { Observation } from './observe.js';
import { NO_TAKES, type PlannedTake, RequestContext, takesOf, UNDECODED_REQUEST } from './plan.js';
import { recordStoreSpan } from './record/request-trace.js';
import {
  CALLER_CANCELLED,
  NO_CONFIGURATION,
  NO_DESCRIPTORS,
  NO_DOMAIN,
  Refusal,
  refusalOf,
  STORE_UNAVAILABLE,
  UNDECODABLE,
} from './refusal.js';
import { markNeverPassing } from './shared-bucket.js';
import type { ShouldRateLimitOptions } from './should-rate-limit-options.js';
import { type Planned, plan, SlicedPlan, Throttled } from './sliced-plan.js';
import { decideWithoutStore } from './store-failure.js';
import { type AbandonReason, TurnQueue } from './turn-queue.js';
import { limitsMayDeny, UndecidedAnswers } from './undecided-answers.js';
import { WaitingRequests } from './waiting-requests.js';

const NO_OUTCOMES: readonly TakeOutcome[] = [];

type Reply = RateLimitResponse | Refusal;
type CallerDeadline = Pick<Caller, 'deadlineMicros'>;
type Arrival = Pick<RequestContext, 'caller' | 'startMicros'>;

/** A request after its last slice: planned, or the reason why it has no plan. */
interface Prepared {
  readonly slicedPlan: SlicedPlan;
  readonly planned: Planned;
}

/**
 * Decides RateLimitRequests, independent of transport and store. Accepts encoded messages, and returns encoded answers
 * or a {@link Refusal}. It answers synchronously if the request is small and the store answers at once, otherwise in
 * turns with other long requests.
 */
export class ShouldRateLimit {
  readonly #options: ShouldRateLimitOptions;
  readonly #turns: TurnQueue;
  readonly #observation: Observation;
  readonly #undecided: UndecidedAnswers;
  /** Whether buckets are in memory. Then calls cannot miss a deadline, so the clock is not read for it. */
  readonly #isSynchronous: boolean;
  readonly #waiting: WaitingRequests;
  readonly #holds: Holds;
  /** A field, so that requests share one function object. */
  readonly #encoded = (decided: Reply): Uint8Array | Refusal =>
    decided instanceof Refusal ? decided : this.#options.codec.encodeResponse(decided);

  constructor(options: ShouldRateLimitOptions) {
    this.#options = options;
    this.#turns = options.turns ?? new TurnQueue(options.clock);
    this.#waiting = options.waiting ?? new WaitingRequests();
    this.#observation = new Observation(options.observer, options.clock, options.decisionLog);
    this.#undecided = new UndecidedAnswers(options, this.#observation);
    const { holds: counts } = options.observer.counts;
    const { holdMarks: marks = new HoldMarks() } = options;
    this.#holds = new Holds({ ...options, counts, marks });
    this.#isSynchronous = (options.store as unknown) === options.local;
  }

  /**
   * Decides an encoded request.
   *
   * @param message an encoded RateLimitRequest; the caller may reuse its buffer after this method returns
   * @returns an encoded RateLimitResponse
   */
  handle(
    message: Uint8Array,
    caller: Caller = CALLER_WITHOUT_DEADLINE,
  ): Uint8Array | Refusal | Promise<Uint8Array | Refusal> {
    const { codec } = this.#options;
    if (message.length > LARGE_MESSAGE_BYTES) {
      return this.#handleLarge(message, caller).then(this.#encoded);
    }
    const startMicros = this.#startMicros();
    let request: RateLimitRequest;
    try {
      request = codec.decodeRequest(message);
    } catch (error) {
      return refusalOf(error);
    }
    const decided = this.#decide(request, startMicros, caller);
    return decided instanceof Promise ? decided.then(this.#encoded) : this.#encoded(decided);
  }

  /** Decides a decoded request, like {@link handle}. */
  decide(request: RateLimitRequest, caller: Caller = CALLER_WITHOUT_DEADLINE): Reply | Promise<Reply> {
    return this.#decide(request, this.#startMicros(), caller);
  }

  /** Waits for ends of holds that no request waits for, see {@link LateEnds.drain}. */
  drainHolds(graceMs: number): Promise<number> {
    return this.#holds.drain(graceMs);
  }

  #startMicros(): number {
    return this.#isSynchronous && !this.#observation.wantsStart() ? 0 : this.#options.clock.monotonicMicros();
  }

  #decide(request: RateLimitRequest, startMicros: number, caller: Caller): Reply | Promise<Reply> {
    const policy = this.#policyFor(request, startMicros, caller);
    if (!('match' in policy)) return policy;
    const context = this.#contextOf(request, policy, { caller, startMicros });
    const planned = plan(context);
    if (planned instanceof SlicedPlan) return this.#planInSlices(planned);
    if (planned instanceof BadRequest) return this.#refusePlanned(context, planned);
    if (planned instanceof Throttled) return this.#throttle(context, planned);
    return this.#take(context, this.#storeDeadline(startMicros, caller));
  }

  /** Returns the policy that decides a request, or the answer if the request is invalid or no policy has its domain. */
  #policyFor(request: RateLimitRequest, startMicros: number, caller: Caller): DomainPolicy | Reply {
    const { policies, maxDescriptors, answers } = this.#options;
    if (request.domain === '') return this.#refuse(NO_DOMAIN);
    const count = request.descriptors.length;
    if (count === 0) return this.#refuse(NO_DESCRIPTORS);
    // Checked before the domain: the answer for an unknown domain is as long as the request.
    if (count > maxDescriptors) {
      return this.#refuse(new Refusal('bad_request', tooManyDescriptors(count, maxDescriptors)));
    }
    if (request.exceeded !== undefined) {
      return this.#refuse(new Refusal('bad_request', `the request has too many ${request.exceeded}`));
    }
    const policySet = policies();
    if (policySet === undefined) return this.#refuse(NO_CONFIGURATION);
    const policy = policySet.domains.get(request.domain);
    if (policy === undefined) {
      const response = answerWithoutLimits(request, policySet, answers);
      this.#observation.unknownDomain(request, policySet, response, startMicros, caller);
      return response;
    }
    const bad = findBadDescriptor(request.descriptors);
    if (bad === undefined) return policy;
    this.#settle(request, policy, caller);
    return this.#refuse(new Refusal('bad_request', bad.message));
  }

  /**
   * Starts to settle the holds of the tokens in a request. This comes before all work that may end without a decision,
   * because Envoy sends a token only once.
   */
  #settle(request: RateLimitRequest, policy: DomainPolicy, { connection }: Caller): Settlements | undefined {
    return policy.hasHolds ? this.#holds.settle(request, policy, connection) : undefined;
  }

  #refusePlanned(context: RequestContext, { message }: BadRequest): Refusal {
    this.#holds.settlePlanned(context);
    return this.#refuse(new Refusal('bad_request', message));
  }

  #contextOf(
    request: RateLimitRequest,
    policy: DomainPolicy,
    { caller, startMicros }: Arrival,
  ): RequestContext {
    const settlements = this.#settle(request, policy, caller);
    return new RequestContext(this.#options, request, policy, caller, startMicros, settlements);
  }

  async #planInSlices(slicedPlan: SlicedPlan): Promise<Reply> {
    const { context } = slicedPlan;
    const { request, caller } = context;
    const nowMicros = this.#options.clock.monotonicMicros();
    const deadline: CallerDeadline = { deadlineMicros: caller.deadlineMicros };
    const planned = await this.#turns.run(slicedPlan.steps(), waiterOf(caller, nowMicros, bytesOf(request)));
    if (typeof planned === 'string') {
      this.#holds.settlePlanned(context);
      return this.#answerAbandoned(planned, request.domain, () => hasOverride(request), context, request);
    }
    return this.#takePlanned({ slicedPlan, planned }, deadline);
  }

  async #handleLarge(message: Uint8Array, caller: Caller): Promise<Reply> {
    const { clock, codec } = this.#options;
    const startMicros = clock.monotonicMicros();
    // Copied now, because the caller's fields may change in the next turn.
    const deadline: CallerDeadline = { deadlineMicros: caller.deadlineMicros };
    const arrival = { caller, startMicros };
    if (!this.#turns.hasRoomFor(message.length, caller.connection)) {
      const mayOverride = (): boolean => codec.mayOverride(message);
      return this.#answerAbandoned('full', codec.domainOf(message), mayOverride, arrival);
    }
    const large = new LargeMessage(message, codec);
    const steps = this.#prepare(large, arrival);
    let prepared: Prepared | Reply | AbandonReason;
    try {
      prepared = await this.#turns.run(steps, waiterOf(caller, startMicros, message.length));
    } catch (error) {
      return refusalOf(error);
    }
    if (typeof prepared === 'string') {
      const mayOverride = (): boolean => large.mayOverride();
      const answer = this.#answerAbandoned(prepared, large.domain(), mayOverride, arrival, large.request);
      large.drop();
      return answer;
    }
    return 'planned' in prepared ? this.#takePlanned(prepared, deadline) : prepared;
  }

  *#prepare(large: LargeMessage, arrival: Arrival): Generator<void, Prepared | Reply> {
    const request = yield* large.decode();
    yield;
    const policy = this.#policyFor(request, arrival.startMicros, arrival.caller);
    if (!('match' in policy)) return policy;
    const slicedPlan = new SlicedPlan(this.#contextOf(request, policy, arrival));
    return { slicedPlan, planned: yield* slicedPlan.steps() };
  }

  #takePlanned({ slicedPlan, planned }: Prepared, deadline: CallerDeadline): Reply | Promise<Reply> {
    const { clock } = this.#options;
    const { context } = slicedPlan;
    if (planned instanceof Throttled) return this.#throttle(context, planned);
    if (planned instanceof BadRequest) return this.#refusePlanned(context, planned);
    context.wallMicros = clock.wallMicros();
    return this.#take(context, this.#storeDeadline(clock.monotonicMicros(), deadline));
  }

  #throttle(context: RequestContext, throttled: Throttled): RateLimitResponse {
    const { clock, random = Math.random } = this.#options;
    const { policy, request } = context;
    this.#holds.settlePlanned(context);
    const mayDeny = limitsMayDeny(policy, () => hasOverride(request), clock.wallMicros(), random);
    return this.#undecided.throttled(context, throttled, mayDeny);
  }

  /** Answers a request that was not evaluated, or not completely. `request` is set once it is decoded. */
  #answerAbandoned(
    why: AbandonReason,
    domain: string | undefined,
    mayOverride: () => boolean,
    { caller, startMicros }: Arrival,
    request = UNDECODED_REQUEST,
  ): Reply {
    if (why === 'cancelled') return CALLER_CANCELLED;
    const { policies, clock, random = Math.random } = this.#options;
    if (domain === undefined) return this.#refuse(UNDECODABLE);
    if (domain === '') return this.#refuse(NO_DOMAIN);
    const policySet = policies();
    if (policySet === undefined) return this.#refuse(NO_CONFIGURATION);
    const policy = policySet.domains.get(domain);
    if (policy === undefined) {
      const descriptors = request === UNDECODED_REQUEST ? 1 : request.descriptors.length;
      this.#observation.countUnknownDomain(domain, descriptors);
      return passingAnswer(request);
    }
    const context = new RequestContext(this.#options, request, policy, caller, startMicros);
    const mayDeny = limitsMayDeny(policy, mayOverride, clock.wallMicros(), random);
    return this.#undecided.unevaluated(context, why, mayDeny);
  }

  #take(context: RequestContext, storeDeadlineMicros: number): Reply | Promise<Reply> {
    // Settlements come first, so that the limits of the same request find what they give back.
    const done = context.settlements?.done;
    const oldest = context.policy.hasHolds ? this.#holds.settleOldest(context) : undefined;
    const settled = oldest === undefined ? done : Promise.all([done, oldest]);
    if (settled === undefined) return this.#takeLimits(context, storeDeadlineMicros);
    const { request, caller } = context;
    const answered = this.#waiting.begin(bytesOf(request), caller.connection);
    // Without memory for another request that waits, the limits are decided at once.
    if (answered === undefined) return this.#takeLimits(context, storeDeadlineMicros);
    return settled.then(() => {
      answered();
      return this.#takeLimits(context, storeDeadlineMicros);
    });
  }

  #takeLimits(context: RequestContext, storeDeadlineMicros: number): Reply | Promise<Reply> {
    const takes = takesOf(context.decisions);
    context.takes = takes;
    if (takes.length === 0) return this.#finish(context, NO_OUTCOMES);
    if (context.policy.hasHolds && !this.#holds.fitIntoToken(takes)) {
      return this.#undecided.unevaluated(context, 'hold_token', mayDeny(takes));
    }
    const { request, caller } = context;
    const { connection } = caller;
    const answered = this.#isSynchronous ? undefined : this.#waiting.begin(bytesOf(request), connection);
    const mayWait = this.#isSynchronous || answered !== undefined;
    const span = caller.trace?.span?.storeCalled(takes.length);
    let result = askStore(this.#options.store, takes, storeDeadlineMicros, connection, mayWait, answered);
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
        context.wallMicros = this.#options.clock.wallMicros();
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
   * Returns the store's deadline: the caller's deadline minus the margin for the reply, or the end of the store's
   * timeout, whichever is earlier.
   */
  #storeDeadline(nowMicros: number, caller: CallerDeadline): number {
    if (this.#isSynchronous) return Number.POSITIVE_INFINITY;
    const own = nowMicros + this.#options.storeTimeoutMicros;
    const { deadlineMicros } = caller;
    if (deadlineMicros === Number.POSITIVE_INFINITY) return own;
    return Math.min(own, deadlineMicros - replyMarginMicros(deadlineMicros - nowMicros));
  }

  #finish(context: RequestContext, result: TakeResult): Reply | Promise<Reply> {
    const { takes } = context;
    const isFailed = result instanceof StorageError;
    if (isFailed) {
      const undecided = this.#decideWithoutStore(context, result);
      if (undecided !== undefined) return undecided;
    } else {
      for (let i = 0; i < takes.length; i++) (takes[i] as PlannedTake).outcome = result[i];
    }
    if (context.policy.hasHolds) this.#holds.notePlaced(context, isFailed);
    noteDenial(context);
    const { counts } = this.#observation;
    if (this.#options.answers.shadowMode && (context.limitDenies || context.quotasDeny)) {
      counts.reference.globalShadow();
    }
    const shared = isFailed ? NO_TAKES : context.takes;
    if (isLargeAnswer(context)) {
      return answerInSlices(this.#turns, { context, observation: this.#observation, shared });
    }
    if (shared.length > 1) markNeverPassing(shared);
    const response = answer(context);
    this.#observation.answered(context, response);
    return response;
  }

  /** Applies the failure policies; returns an answer if they leave the request undecided. */
  #decideWithoutStore(context: RequestContext, error: StorageError): Reply | undefined {
    const { counts } = this.#observation;
    const { takes, policy, decisions } = context;
    if (policy.hasHolds) this.#holds.abandon(context, error);
    if (error.reason === 'full') {
      return this.#undecided.unevaluated(context, 'full', mayDeny(takes));
    }
    counts.storeError(error.reason);
    if (decideWithoutStore(decisions, this.#options.local, counts)) return undefined;
    counts.reference.failed('redis');
    for (const decision of decisions) this.#observation.counted(policy, decision);
    return STORE_UNAVAILABLE;
  }
}

/** Returns whether a request with these takes may be denied. */
function mayDeny(takes: readonly PlannedTake[]): boolean {
  return takes.some(({ enforcement }) => enforcement === 'enforce' || enforcement === 'quota');
}
