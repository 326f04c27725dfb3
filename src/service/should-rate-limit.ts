import {
  LARGE_MESSAGE_BYTES,
  type RateLimitRequest,
  type RateLimitResponse,
  tooManyDescriptors,
} from '../codec/messages.js';
import type { TakeOutcome, TakeResult } from '../limiter/bucket-store.js';
import { StorageError } from '../limiter/bucket-store.js';
import type { DomainPolicy } from '../policy/policy.js';
import type { AnswerOptions } from './answer/answer-options.js';
import { answer, answerWithoutLimits } from './answer/answer.js';
import { denialOf } from './answer/denial.js';
import { passingAnswer } from './answer/throttled-answer.js';
import { askStore } from './ask-store.js';
import { BadRequest, findBadDescriptor } from './bad-descriptor.js';
import { CALLER_WITHOUT_DEADLINE, type Caller, replyMarginMicros, stepsFor, waiterOf } from './caller.js';
import { ControlIndex } from './controls/control-index.js';
import { tellBlocked } from './controls/tell-blocked.js';
import { isLargeAnswer, tellInTurns } from './large-answer.js';
import { bytesOf, hasOverride, LargeMessage } from './large-message.js';
import { Observation } from './observe.js';
import { type Decision, type PlannedTake, RequestContext, takesOf } from './plan.js';
import { Blocked, type Planned, Planning, plan, stepsTaken, Throttled } from './planning.js';
import { tellStoreSpan } from './record/request-trace.js';
import {
  CALLER_GONE,
  NO_CONFIGURATION,
  NO_DESCRIPTORS,
  NO_DOMAIN,
  Refusal,
  refusalOf,
  STORE_UNAVAILABLE,
  UNREADABLE,
} from './refusal.js';
import { noteTogether } from './shared-bucket.js';
import type { ShouldRateLimitOptions } from './should-rate-limit-options.js';
import { StepsAtOnce } from './steps-at-once.js';
import { decideWithoutStore } from './store-failure.js';
import { type NotDone, TurnQueue } from './turn-queue.js';
import { limitsMayDeny, Undecided } from './undecided.js';
import { WaitingRequests } from './waiting-requests.js';

const NO_OUTCOMES: readonly TakeOutcome[] = [];

type Decided = RateLimitResponse | Refusal;
type Patience = Pick<Caller, 'deadlineMicros'>;

/** A large message as far as its turns bring it: planned, or answered already. */
type Prepared = Decided | PreparedRequest;

interface PreparedRequest {
  readonly request: RateLimitRequest;
  readonly policy: DomainPolicy;
  readonly planning: Planning;
  readonly planned: Planned;
}

/**
 * Decides RateLimitRequests. Knows neither transport nor store: bytes come in, bytes or a {@link Refusal} go out, at
 * once when the request is a usual one and the store answers at once. What takes longer takes turns with others.
 */
export class ShouldRateLimit {
  readonly #options: ShouldRateLimitOptions;
  readonly #answers: AnswerOptions;
  readonly #random: () => number;
  readonly #turns: TurnQueue;
  readonly #stepsAtOnce = new StepsAtOnce();
  readonly #observation: Observation;
  readonly #undecided: Undecided;
  /** Whether buckets live in memory: then no deadline is ever near, and no clock is read for it. */
  readonly #answersAtOnce: boolean;
  readonly #waiting: WaitingRequests;
  readonly #controls: ControlIndex;
  /** A field, so that no request makes a function of its own for it. */
  readonly #encoded = (decided: Decided): Uint8Array | Refusal =>
    decided instanceof Refusal ? decided : this.#options.codec.encodeResponse(decided);

  constructor(options: ShouldRateLimitOptions) {
    this.#options = options;
    this.#answers = options.answers;
    this.#random = options.random ?? Math.random;
    this.#turns = options.turns ?? new TurnQueue(options.clock);
    this.#waiting = options.waiting ?? new WaitingRequests();
    this.#controls = options.controls ?? new ControlIndex(() => options.clock.monotonicMicros());
    this.#observation = new Observation(options.observer, options.clock, options.decisionLog);
    this.#undecided = new Undecided(options, this.#observation);
    this.#answersAtOnce = (options.store as unknown) === options.local;
  }

  /**
   * @param message an encoded RateLimitRequest, which may change once this returns
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

  /** {@link handle} without the codec. */
  decide(request: RateLimitRequest, caller: Caller = CALLER_WITHOUT_DEADLINE): Decided | Promise<Decided> {
    return this.#decide(request, this.#startMicros(), caller);
  }

  #startMicros(): number {
    return this.#answersAtOnce && !this.#observation.wantsStart() ? 0 : this.#options.clock.monotonicMicros();
  }

  #decide(request: RateLimitRequest, startMicros: number, caller: Caller): Decided | Promise<Decided> {
    const policy = this.#policyFor(request, startMicros, caller);
    if (!('match' in policy)) return policy;
    const { clock, maxLimits } = this.#options;
    const wallMicros = clock.wallMicros();
    const steps = this.#stepsAtOnce.give();
    const controls = this.#controls.of(policy.domain);
    const planned = plan(
      policy,
      request,
      wallMicros,
      this.#answers,
      this.#random,
      maxLimits,
      steps,
      controls,
    );
    this.#stepsAtOnce.took(stepsTaken(steps));
    if (planned instanceof Planning) {
      return this.#planInTurns(planned, request, policy, startMicros, caller);
    }
    const deadlineMicros = this.#storeDeadline(startMicros, caller);
    return this.#take(request, policy, planned, caller, startMicros, wallMicros, deadlineMicros);
  }

  /** The policy that decides a request, or the answer where none does. */
  #policyFor(request: RateLimitRequest, startMicros: number, caller: Caller): DomainPolicy | Decided {
    const { policies, maxDescriptors } = this.#options;
    if (request.domain === '') return this.#refuse(NO_DOMAIN);
    const count = request.descriptors.length;
    if (count === 0) return this.#refuse(NO_DESCRIPTORS);
    // Before the domain, which may be unknown: the answer to it is as long as the request.
    if (count > maxDescriptors) {
      return this.#refuse(new Refusal('bad_request', tooManyDescriptors(count, maxDescriptors)));
    }
    const policySet = policies();
    if (policySet === undefined) return this.#refuse(NO_CONFIGURATION);
    const policy = policySet.domains.get(request.domain);
    if (policy === undefined) {
      const response = answerWithoutLimits(request, policySet, this.#answers);
      this.#observation.unknownDomain(request, policySet, response, startMicros, caller);
      return response;
    }
    const bad = findBadDescriptor(request.descriptors);
    return bad === undefined ? policy : this.#refuse(new Refusal('bad_request', bad.message));
  }

  async #planInTurns(
    planning: Planning,
    request: RateLimitRequest,
    policy: DomainPolicy,
    startMicros: number,
    caller: Caller,
  ): Promise<Decided> {
    const { clock } = this.#options;
    const nowMicros = clock.monotonicMicros();
    const patience: Patience = { deadlineMicros: caller.deadlineMicros };
    const planned = await this.#turns.run(
      planning.steps(stepsFor(patience.deadlineMicros - nowMicros)),
      waiterOf(caller, nowMicros, bytesOf(request)),
    );
    if (typeof planned === 'string') {
      return this.#notDone(planned, request.domain, () => hasOverride(request), startMicros, caller, request);
    }
    return this.#takePlanned({ request, policy, planning, planned }, caller, startMicros, patience);
  }

  async #handleLarge(message: Uint8Array, caller: Caller): Promise<Decided> {
    const { clock, codec } = this.#options;
    const startMicros = clock.monotonicMicros();
    // Read here: what is known of the caller may change with the first turn.
    const patience: Patience = { deadlineMicros: caller.deadlineMicros };
    if (!this.#turns.hasRoomFor(message.length, caller.connection)) {
      const mayOverride = (): boolean => codec.mayOverride(message);
      return this.#notDone('full', codec.domainOf(message), mayOverride, startMicros, caller);
    }
    const large = new LargeMessage(message, codec);
    const steps = this.#prepare(large, startMicros, caller, stepsFor(patience.deadlineMicros - startMicros));
    let prepared: Prepared | NotDone;
    try {
      prepared = await this.#turns.run(steps, waiterOf(caller, startMicros, message.length));
    } catch (error) {
      return refusalOf(error);
    }
    if (typeof prepared === 'string') {
      const mayOverride = (): boolean => large.mayOverride();
      return this.#notDone(prepared, large.domain(), mayOverride, startMicros, caller, large.request);
    }
    if ('planned' in prepared) return this.#takePlanned(prepared, caller, startMicros, patience);
    return prepared;
  }

  *#prepare(large: LargeMessage, atMicros: number, caller: Caller, steps: number): Generator<void, Prepared> {
    const request = yield* large.decode();
    yield;
    const policy = this.#policyFor(request, atMicros, caller);
    if (!('match' in policy)) return policy;
    const { clock, maxLimits } = this.#options;
    const controls = this.#controls.of(policy.domain);
    const asked = new RequestContext(
      policy,
      request,
      clock.wallMicros(),
      this.#answers,
      this.#random,
      controls,
    );
    const planning = new Planning(asked, [], maxLimits);
    const planned = yield* planning.steps(steps);
    return { request, policy, planning, planned };
  }

  #takePlanned(
    { request, policy, planning, planned }: PreparedRequest,
    caller: Caller,
    startMicros: number,
    patience: Patience,
  ): Decided | Promise<Decided> {
    const { observer, clock } = this.#options;
    const { exceededKey } = planning;
    if (exceededKey !== undefined && !(planned instanceof Throttled)) {
      observer.matchExceeded(policy.domain, exceededKey, false);
    }
    if (planned instanceof Throttled) {
      return this.#undecided.throttled({ request, policy, startMicros, caller }, planned);
    }
    const wallMicros = clock.wallMicros();
    const deadlineMicros = this.#storeDeadline(clock.monotonicMicros(), patience);
    return this.#take(request, policy, planned, caller, startMicros, wallMicros, deadlineMicros);
  }

  /** The answer to a request that nobody looked at, or not to the end; `request` is there once it is decoded. */
  #notDone(
    why: NotDone,
    domain: string | undefined,
    mayOverride: () => boolean,
    startMicros: number,
    caller: Caller,
    request?: RateLimitRequest,
  ): Decided {
    if (why === 'cancelled') return CALLER_GONE;
    const { policies, clock, observer } = this.#options;
    if (domain === undefined) return this.#refuse(UNREADABLE);
    if (domain === '') return this.#refuse(NO_DOMAIN);
    const policySet = policies();
    if (policySet === undefined) return this.#refuse(NO_CONFIGURATION);
    const policy = policySet.domains.get(domain);
    if (policy === undefined) {
      observer.unknownDomain(domain, request?.descriptors.length ?? 1);
      return passingAnswer(request);
    }
    const asked = { request, policy, startMicros, caller };
    if (this.#controls.blocks(domain)) return this.#undecided.unseen(asked, why, 'block');
    const mayDeny = limitsMayDeny(policy, mayOverride, clock.wallMicros(), this.#random);
    return this.#undecided.unseen(asked, why, mayDeny ? 'limits' : 'nothing');
  }

  #take(
    request: RateLimitRequest,
    policy: DomainPolicy,
    planned: readonly Decision[] | BadRequest | Blocked,
    caller: Caller,
    startMicros: number,
    wallMicros: number,
    storeDeadlineMicros: number,
  ): Decided | Promise<Decided> {
    const { store, clock } = this.#options;
    if (planned instanceof BadRequest) return this.#refuse(new Refusal('bad_request', planned.message));
    if (planned instanceof Blocked) {
      const { decisions } = planned;
      const nowMicros = clock.monotonicMicros();
      const blocked = { request, policy, decisions, caller, startMicros, nowMicros, wallMicros };
      return tellBlocked(blocked, this.#answers, this.#observation, this.#turns);
    }
    const takes = takesOf(planned);
    if (takes.length === 0) {
      return this.#finish(request, policy, planned, takes, NO_OUTCOMES, caller, startMicros, wallMicros);
    }
    const { connection } = caller;
    const answered = this.#answersAtOnce ? undefined : this.#waiting.begin(bytesOf(request), connection);
    const mayWait = this.#answersAtOnce || answered !== undefined;
    const span = caller.trace?.span?.storeAsked(takes.length);
    let result = askStore(store, takes, storeDeadlineMicros, connection, mayWait, answered);
    if (span !== undefined) result = tellStoreSpan(span, result, !this.#answersAtOnce);
    if (result instanceof Promise) {
      return result.then(
        (late) => {
          answered?.();
          return this.#finish(request, policy, planned, takes, late, caller, startMicros, clock.wallMicros());
        },
        (error: unknown) => {
          answered?.();
          throw error;
        },
      );
    }
    answered?.();
    return this.#finish(request, policy, planned, takes, result, caller, startMicros, wallMicros);
  }

  #refuse(refusal: Refusal): Refusal {
    this.#options.observer.failed('service');
    return refusal;
  }

  /** The caller's deadline less the margin for the reply, or the store's timeout if that is sooner. */
  #storeDeadline(nowMicros: number, caller: Patience): number {
    if (this.#answersAtOnce) return Number.POSITIVE_INFINITY;
    const own = nowMicros + this.#options.storeTimeoutMicros;
    const { deadlineMicros } = caller;
    if (deadlineMicros === Number.POSITIVE_INFINITY) return own;
    return Math.min(own, deadlineMicros - replyMarginMicros(deadlineMicros - nowMicros));
  }

  #finish(
    request: RateLimitRequest,
    policy: DomainPolicy,
    decisions: readonly Decision[],
    takes: readonly PlannedTake[],
    result: TakeResult,
    caller: Caller,
    startMicros: number,
    wallMicros: number,
  ): Decided | Promise<Decided> {
    const { observer, local } = this.#options;
    if (result instanceof StorageError) {
      if (result.reason === 'full') {
        // It is known which rules it met, and whether they may deny.
        const mayDeny = takes.some(({ enforcement }) => enforcement === 'enforce' || enforcement === 'quota');
        const asked = { request, policy, startMicros, caller };
        return this.#undecided.unseen(asked, 'full', mayDeny ? 'limits' : 'nothing');
      }
      observer.storeError(result.reason);
      if (!decideWithoutStore(decisions, local, observer)) {
        observer.failed('redis');
        for (const decision of decisions) this.#observation.counted(policy, decision);
        return STORE_UNAVAILABLE;
      }
    } else {
      for (let i = 0; i < takes.length; i++) (takes[i] as PlannedTake).outcome = result[i];
    }
    const { shadowMode, quotaMode } = this.#answers;
    const denial = denialOf(decisions, quotaMode);
    if (shadowMode && (denial.enforce || denial.quota)) observer.globalShadow();
    const observation = this.#observation;
    const shared = result instanceof StorageError ? [] : takes;
    if (isLargeAnswer(decisions, takes)) {
      const build = () => answer(request, policy, decisions, denial, this.#answers, wallMicros);
      const told = { request, policy, decisions, startMicros, observation, caller, shared, build };
      return tellInTurns(this.#turns, told);
    }
    if (shared.length > 1) noteTogether(shared);
    const response = answer(request, policy, decisions, denial, this.#answers, wallMicros);
    observation.answered(request, policy, decisions, response, startMicros, caller);
    return response;
  }
}
