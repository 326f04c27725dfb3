import {
  LARGE_MESSAGE_BYTES,
  type RateLimitRequest,
  type RateLimitResponse,
  type ServiceCodec,
  tooManyDescriptors,
} from '../codec/messages.js';
import type { BucketStore, LocalStore, TakeOutcome, TakeResult } from '../limiter/bucket-store.js';
import { StorageError } from '../limiter/bucket-store.js';
import type { Clock } from '../limiter/clock.js';
import type { DomainPolicy } from '../policy/policy.js';
import type { PolicySet } from '../policy/policy-set.js';
import { phaseAt } from '../policy/rule.js';
import { answer, answerWithoutLimits } from './answer/answer.js';
import type { AnswerOptions } from './answer/answer-options.js';
import { denialOf } from './answer/denial.js';
import { passingAnswer, throttledAnswer } from './answer/throttled-answer.js';
import { askStore } from './ask-store.js';
import { BadRequest, findBadDescriptor } from './bad-descriptor.js';
import {
  ANYBODY,
  bytesOf,
  type Caller,
  hasOverride,
  LargeMessage,
  stepsFor,
  waiterOf,
} from './costly-requests.js';
import type { DecisionObserver } from './decision-observer.js';
import { isLargeAnswer, tellInTurns } from './large-answer.js';
import { Observation } from './observe.js';
import { type Decision, type PlannedTake, RequestContext, takesOf } from './plan.js';
import { type Planned, Planning, plan, stepsTaken, Throttled } from './planning.js';
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
import { StepsAtOnce } from './steps-at-once.js';
import { decideWithoutStore } from './store-failure.js';
import { type NotDone, TurnQueue } from './turn-queue.js';
import { WaitingRequests } from './waiting-requests.js';
import { wayBackMicros } from './way-back.js';

export interface ShouldRateLimitOptions {
  readonly codec: ServiceCodec;
  readonly clock: Clock;
  readonly store: BucketStore;
  /** Synchronous store in memory for `on_store_failure: local`. */
  readonly local: LocalStore;
  /** The snapshot in force; undefined while there is none yet. */
  readonly policies: () => PolicySet | undefined;
  readonly observer: DecisionObserver;
  /** Longest a store may take (REDIS_TIMEOUT), in microseconds. */
  readonly storeTimeoutMicros: number;
  /** More descriptors in one request are refused: one request is one answer. */
  readonly maxDescriptors: number;
  /** Where requests that take long have their turns, one for the whole process; one of its own when absent. */
  readonly turns?: TurnQueue;
  /** Those that wait for the store; of its own when absent. */
  readonly waiting?: WaitingRequests;
  /** More limits that they meet are refused, candidates apart: one request is one atomic step of the store. */
  readonly maxLimits: number;
  /** What holds for every answer. */
  readonly answers: AnswerOptions;
  /** Gives numbers from 0 to just below 1, for `enforce_percent`; Math.random when absent. */
  readonly random?: () => number;
}

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
  /** Whether buckets live in memory: then no deadline is ever near, and no clock is read for it. */
  readonly #answersAtOnce: boolean;
  readonly #waiting: WaitingRequests;

  constructor(options: ShouldRateLimitOptions) {
    this.#options = options;
    this.#answers = options.answers;
    this.#random = options.random ?? Math.random;
    this.#turns = options.turns ?? new TurnQueue(options.clock);
    this.#waiting = options.waiting ?? new WaitingRequests();
    this.#observation = new Observation(options.observer, options.clock);
    this.#answersAtOnce = (options.store as unknown) === options.local;
  }

  /**
   * @param message an encoded RateLimitRequest, which may change once this returns
   * @returns an encoded RateLimitResponse
   */
  handle(
    message: Uint8Array,
    caller: Caller = ANYBODY,
  ): Uint8Array | Refusal | Promise<Uint8Array | Refusal> {
    const { codec } = this.#options;
    if (message.length > LARGE_MESSAGE_BYTES) {
      return this.#handleLarge(message, caller).then((late) => this.#encoded(late));
    }
    const startMicros = this.#startMicros();
    let request: RateLimitRequest;
    try {
      request = codec.decodeRequest(message);
    } catch (error) {
      return refusalOf(error);
    }
    const decided = this.#decide(request, startMicros, caller);
    if (decided instanceof Promise) return decided.then((late) => this.#encoded(late));
    return decided instanceof Refusal ? decided : codec.encodeResponse(decided);
  }

  /** {@link handle} without the codec. `startMicros`, for deadline and log, may be anything where neither counts. */
  decide(
    request: RateLimitRequest,
    startMicros: number,
    deadlineMicros: number,
    caller: Caller = ANYBODY,
  ): Decided | Promise<Decided> {
    const { connection } = caller;
    const cancelled = (): boolean => caller.cancelled();
    return this.#decide(request, startMicros, { deadlineMicros, connection, cancelled });
  }

  #startMicros(): number {
    const { observer, clock } = this.#options;
    return this.#answersAtOnce && !observer.logsDecisions() ? 0 : clock.monotonicMicros();
  }

  #encoded(decided: Decided): Uint8Array | Refusal {
    return decided instanceof Refusal ? decided : this.#options.codec.encodeResponse(decided);
  }

  #decide(request: RateLimitRequest, startMicros: number, caller: Caller): Decided | Promise<Decided> {
    const policy = this.#policyFor(request, startMicros, caller);
    if (!('match' in policy)) return policy;
    const { clock, maxLimits } = this.#options;
    const wallMicros = clock.wallMicros();
    const steps = this.#stepsAtOnce.give();
    const planned = plan(policy, request, wallMicros, this.#answers, this.#random, maxLimits, steps);
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
      this.#observation.unknownDomain(request, policySet, startMicros, caller);
      return answerWithoutLimits(request, policySet, this.#answers);
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
      return this.#notDone(planned, request.domain, () => hasOverride(request), request);
    }
    return this.#takePlanned({ request, policy, planning, planned }, caller, startMicros, patience);
  }

  async #handleLarge(message: Uint8Array, caller: Caller): Promise<Decided> {
    const { clock, codec } = this.#options;
    const startMicros = clock.monotonicMicros();
    // Read here: what is known of the caller may change with the first turn.
    const patience: Patience = { deadlineMicros: caller.deadlineMicros };
    if (!this.#turns.hasRoomFor(message.length, caller.connection)) {
      return this.#notDone('full', codec.domainOf(message), () => codec.mayOverride(message));
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
      return this.#notDone(prepared, large.domain(), () => large.mayOverride(), large.request);
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
    const asked = new RequestContext(policy, request, clock.wallMicros(), this.#answers, this.#random);
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
    const wallMicros = clock.wallMicros();
    if (!(planned instanceof Throttled)) {
      const deadlineMicros = this.#storeDeadline(clock.monotonicMicros(), patience);
      return this.#take(request, policy, planned, caller, startMicros, wallMicros, deadlineMicros);
    }
    const { shadowMode } = this.#answers;
    observer.matchExceeded(policy.domain, planned.key, !shadowMode);
    if (shadowMode) observer.globalShadow();
    const { index } = planned;
    return throttledAnswer(request, policy, index, 'match_budget_exceeded', this.#answers, wallMicros);
  }

  /** The answer to a request that nobody looked at, or not to the end; `request` is there once it is decoded. */
  #notDone(
    why: NotDone,
    domain: string | undefined,
    mayOverride: () => boolean,
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
    return this.#undecided(request, policy, why, this.#mayDeny(policy, mayOverride, clock.wallMicros()));
  }

  /** The answer to a request that nobody decided: denied if something in force might have. */
  #undecided(
    request: RateLimitRequest | undefined,
    policy: DomainPolicy,
    why: 'late' | 'full',
    mayDeny: boolean,
  ): RateLimitResponse {
    const { clock, observer } = this.#options;
    const { shadowMode } = this.#answers;
    observer.givenUp(policy.domain, why, mayDeny && !shadowMode);
    if (!mayDeny) return passingAnswer(request);
    if (shadowMode) observer.globalShadow();
    return throttledAnswer(request, policy, -1, why, this.#answers, clock.wallMicros());
  }

  /** Whether a rule of the domain, or a limit override, may deny the request. */
  #mayDeny({ denial, phase }: DomainPolicy, mayOverride: () => boolean, wallMicros: number): boolean {
    if (denial.mayDeny(wallMicros, () => this.#random() * 100)) return true;
    if (phaseAt(phase, wallMicros) !== 'active' && !denial.overrideMayDeny(wallMicros)) return false;
    return mayOverride();
  }

  #take(
    request: RateLimitRequest,
    policy: DomainPolicy,
    planned: readonly Decision[] | BadRequest,
    caller: Caller,
    startMicros: number,
    wallMicros: number,
    storeDeadlineMicros: number,
  ): Decided | Promise<Decided> {
    const { store, clock } = this.#options;
    if (planned instanceof BadRequest) return this.#refuse(new Refusal('bad_request', planned.message));
    const takes = takesOf(planned);
    let result: TakeResult | Promise<TakeResult> = NO_OUTCOMES;
    if (takes.length > 0) {
      const waiting = this.#answersAtOnce ? undefined : this.#waiting;
      result = askStore(store, takes, storeDeadlineMicros, request, caller.connection, waiting);
    }
    if (result instanceof Promise) {
      return result.then((late) =>
        this.#finish(request, policy, planned, takes, late, caller, startMicros, clock.wallMicros()),
      );
    }
    return this.#finish(request, policy, planned, takes, result, caller, startMicros, wallMicros);
  }

  #refuse(refusal: Refusal): Refusal {
    this.#options.observer.failed('service');
    return refusal;
  }

  /** The caller's patience, less the way back, or the store's timeout if that is sooner; asked at `nowMicros`. */
  #storeDeadline(nowMicros: number, caller: Patience): number {
    if (this.#answersAtOnce) return Number.POSITIVE_INFINITY;
    const own = nowMicros + this.#options.storeTimeoutMicros;
    const { deadlineMicros } = caller;
    if (deadlineMicros === Number.POSITIVE_INFINITY) return own;
    return Math.min(own, deadlineMicros - wayBackMicros(deadlineMicros - nowMicros));
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
        return this.#undecided(request, policy, 'full', mayDeny);
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
      return tellInTurns(this.#turns, { policy, decisions, startMicros, observation, caller, shared, build });
    }
    if (shared.length > 1) noteTogether(shared);
    const response = answer(request, policy, decisions, denial, this.#answers, wallMicros);
    observation.answered(policy, decisions, response, startMicros, caller);
    return response;
  }
}
