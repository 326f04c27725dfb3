import {
  CODE,
  DecodeError,
  type RateLimitRequest,
  type RateLimitResponse,
  type ServiceCodec,
  tooManyDescriptors,
} from '../codec/messages.js';
import type { DomainPolicy, PolicySet } from '../config/policy.js';
import { redactEntries } from '../config/redact.js';
import type { BucketStore, TakeOutcome, TakeResult } from '../limiter/bucket-store.js';
import { StorageError } from '../limiter/bucket-store.js';
import type { Clock } from '../limiter/clock.js';
import { answer, answerWithoutLimits, secretKeysOf } from './answer.js';
import { type AnswerOptions, PLAIN_ANSWERS } from './answer-options.js';
import type { DecisionObserver } from './decision-observer.js';
import { denialOf, tightestOf } from './denial.js';
import { overrideStat } from './override-stat.js';
import { BadRequest, type Decision, findBadDescriptor, type PlannedTake, plan, takesOf } from './plan.js';
import { decideWithoutStore } from './store-failure.js';

/** Why a request got no decision. Texts are safe for the caller; where the reference has one, it is that one. */
export class Refusal {
  readonly kind: 'bad_request' | 'unavailable';
  readonly message: string;

  constructor(kind: Refusal['kind'], message: string) {
    this.kind = kind;
    this.message = message;
  }
}

/** The reference's texts: people search their logs for them. */
const NO_DOMAIN = new Refusal('bad_request', 'rate limit domain must not be empty');
const NO_DESCRIPTORS = new Refusal('bad_request', 'rate limit descriptor list must not be empty');
const NO_CONFIGURATION = new Refusal('unavailable', 'no rate limit configuration loaded');
const STORE_UNAVAILABLE = new Refusal('unavailable', 'rate limit store unavailable');

export interface ShouldRateLimitOptions {
  readonly codec: ServiceCodec;
  readonly clock: Clock;
  readonly store: BucketStore;
  /** Synchronous store in memory for `on_store_failure: local`. */
  readonly local: BucketStore;
  /** The snapshot in force; undefined while there is none yet. */
  readonly policies: () => PolicySet | undefined;
  readonly observer: DecisionObserver;
  /** Longest a store may take (REDIS_TIMEOUT), in microseconds. */
  readonly storeTimeoutMicros: number;
  /** More descriptors, or limits that they meet, in one request are refused: one request is one atomic step of the store, and one answer. */
  readonly maxDescriptors: number;
  /** What holds for every answer; {@link PLAIN_ANSWERS} when absent. */
  readonly answers?: AnswerOptions;
  /** Gives numbers from 0 to just below 1, for `enforce_percent`; Math.random when absent. */
  readonly random?: () => number;
}

const NO_OUTCOMES: readonly TakeOutcome[] = [];

/** The share of a caller's patience that is left for the way back: an answer at the deadline itself comes too late. */
const WAY_BACK_SHARE = 0.1;
const WAY_BACK_MAX_MICROS = 50_000;
/** Timers fire a millisecond or two late, and Envoy's default patience is only 20 ms. */
const WAY_BACK_LEAST_MICROS = 5000;
const WAY_BACK_LEAST_SHARE = 0.4;

function codeName(overLimit: boolean): 'OK' | 'OVER_LIMIT' {
  return overLimit ? 'OVER_LIMIT' : 'OK';
}

function wayBackMicros(patienceMicros: number): number {
  const least = Math.min(WAY_BACK_LEAST_MICROS, patienceMicros * WAY_BACK_LEAST_SHARE);
  return Math.min(Math.max(patienceMicros * WAY_BACK_SHARE, least), WAY_BACK_MAX_MICROS);
}

/**
 * Decides RateLimitRequests. Knows neither transport nor store: bytes come in, bytes or a {@link Refusal} go out, at once when the
 * store answers at once.
 */
export class ShouldRateLimit {
  readonly #options: ShouldRateLimitOptions;
  readonly #answers: AnswerOptions;
  readonly #random: () => number;
  /** Whether buckets live in memory: then no deadline is ever near, and no clock is read for it. */
  readonly #answersAtOnce: boolean;

  constructor(options: ShouldRateLimitOptions) {
    this.#options = options;
    this.#answers = options.answers ?? PLAIN_ANSWERS;
    this.#random = options.random ?? Math.random;
    this.#answersAtOnce = options.store === options.local;
  }

  /**
   * @param message an encoded RateLimitRequest
   * @param deadlineMicros when the caller stops waiting, monotonic clock; Infinity if it never does
   * @returns an encoded RateLimitResponse
   */
  handle(message: Uint8Array, deadlineMicros: number): Uint8Array | Refusal | Promise<Uint8Array | Refusal> {
    const { codec, clock, observer } = this.#options;
    const startMicros = this.#answersAtOnce && !observer.logsDecisions() ? 0 : clock.monotonicMicros();
    let request: RateLimitRequest;
    try {
      request = codec.decodeRequest(message);
    } catch (error) {
      if (error instanceof DecodeError) return new Refusal('bad_request', error.message);
      throw error;
    }
    const decided = this.decide(request, startMicros, deadlineMicros);
    if (decided instanceof Promise) {
      return decided.then((late) => (late instanceof Refusal ? late : codec.encodeResponse(late)));
    }
    return decided instanceof Refusal ? decided : codec.encodeResponse(decided);
  }

  /** {@link handle} without the codec. `startMicros`, for deadline and log, may be anything where neither counts. */
  decide(
    request: RateLimitRequest,
    startMicros: number,
    deadlineMicros: number,
  ): RateLimitResponse | Refusal | Promise<RateLimitResponse | Refusal> {
    const { policies, observer, maxDescriptors, clock } = this.#options;
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
      observer.unknownDomain(request.domain, count);
      if (observer.logsDecisions()) this.#logUnknownDomain(request, policySet, startMicros);
      return answerWithoutLimits(request, policySet, this.#answers);
    }
    const bad = findBadDescriptor(request.descriptors);
    if (bad !== undefined) return this.#refuse(new Refusal('bad_request', bad.message));

    const wallMicros = clock.wallMicros();
    const planned = plan(policy, request, wallMicros, this.#answers, this.#random, maxDescriptors);
    if (planned instanceof Promise) {
      return planned.then((late) =>
        this.#take(request, policy, late, startMicros, wallMicros, deadlineMicros),
      );
    }
    return this.#take(request, policy, planned, startMicros, wallMicros, deadlineMicros);
  }

  #take(
    request: RateLimitRequest,
    policy: DomainPolicy,
    planned: readonly Decision[] | BadRequest,
    startMicros: number,
    wallMicros: number,
    deadlineMicros: number,
  ): RateLimitResponse | Refusal | Promise<RateLimitResponse | Refusal> {
    const { store, clock } = this.#options;
    if (planned instanceof BadRequest) return this.#refuse(new Refusal('bad_request', planned.message));
    const takes = takesOf(planned);
    if (takes.length === 0)
      return this.#finish(request, policy, planned, takes, NO_OUTCOMES, startMicros, wallMicros);
    const result = store.take(takes, this.#storeDeadline(startMicros, deadlineMicros));
    if (result instanceof Promise) {
      return result.then((late) =>
        this.#finish(request, policy, planned, takes, late, startMicros, clock.wallMicros()),
      );
    }
    return this.#finish(request, policy, planned, takes, result, startMicros, wallMicros);
  }

  #refuse(refusal: Refusal): Refusal {
    this.#options.observer.failed('service');
    return refusal;
  }

  /** The smaller of the caller's patience, less the way back, and the store's timeout. */
  #storeDeadline(startMicros: number, deadlineMicros: number): number {
    if (this.#answersAtOnce) return Number.POSITIVE_INFINITY;
    const own = startMicros + this.#options.storeTimeoutMicros;
    if (deadlineMicros === Number.POSITIVE_INFINITY) return own;
    return Math.min(own, deadlineMicros - wayBackMicros(deadlineMicros - startMicros));
  }

  #finish(
    request: RateLimitRequest,
    policy: DomainPolicy,
    decisions: readonly Decision[],
    takes: readonly PlannedTake[],
    result: TakeResult,
    startMicros: number,
    wallMicros: number,
  ): RateLimitResponse | Refusal {
    const { observer, local } = this.#options;
    if (result instanceof StorageError) {
      observer.storeError(result.reason);
      if (!decideWithoutStore(decisions, local, observer)) {
        observer.failed('redis');
        for (const decision of decisions) this.#count(policy, decision);
        return STORE_UNAVAILABLE;
      }
    } else {
      for (let i = 0; i < takes.length; i++) (takes[i] as PlannedTake).outcome = result[i];
    }
    const { shadowMode, quotaMode } = this.#answers;
    const denial = denialOf(decisions, quotaMode);
    if (shadowMode && (denial.enforce || denial.quota)) observer.globalShadow();
    const response = answer(request, policy, decisions, denial, this.#answers, wallMicros);
    this.#observe(policy, decisions, response, startMicros);
    return response;
  }

  #observe(
    policy: DomainPolicy,
    decisions: readonly Decision[],
    response: RateLimitResponse,
    startMicros: number,
  ): void {
    const { observer, clock } = this.#options;
    const logs = observer.logsDecisions();
    for (let index = 0; index < decisions.length; index++) {
      const decision = decisions[index] as Decision;
      const { match, takes, candidate } = decision;
      this.#count(policy, decision);
      // A quota that is over beside one that is not says OVER_LIMIT of itself, but lets the request pass.
      const overLimit =
        response.overallCode === CODE.OVER_LIMIT && response.statuses[index]?.code === CODE.OVER_LIMIT;
      for (let at = 0; at < takes.length; at++) {
        const { label, weight, outcome } = takes[at] as PlannedTake;
        const limited = outcome?.limited === true;
        const denied = overLimit && limited && weight !== 'observe';
        observer.decided(policy.domain, label, denied, limited && !denied);
        if (outcome !== undefined && outcome.forgiven > 0) {
          observer.forgiven(policy.domain, label, outcome.forgiven);
        }
      }
      const candidateOver = candidate?.outcome?.limited;
      if (candidateOver !== undefined) {
        observer.candidate(policy.domain, (candidate as PlannedTake).label, overLimit, candidateOver);
      }
      const first = takes.length === 0 ? match.rules[0] : undefined;
      const unlimited = first === undefined || first.candidate ? '' : first.path;
      if (unlimited !== '') observer.decided(policy.domain, unlimited, false, false);
      else if (takes.length === 0) observer.unmatched(policy.domain, match.entries);
      if (logs) {
        const shown = tightestOf(takes, undefined);
        observer.logDecision({
          domain: policy.domain,
          entries: redactEntries(match.entries, policy.secretKeys),
          rule: shown?.label ?? takes[0]?.label ?? unlimited,
          code: codeName(overLimit),
          remaining: shown?.outcome.remaining,
          candidate: candidateOver === undefined ? undefined : codeName(candidateOver),
          micros: clock.monotonicMicros() - startMicros,
        });
      }
    }
  }

  /** For the reference's counters. */
  #count(policy: DomainPolicy, { match, takes }: Decision): void {
    for (let at = 0; at < takes.length; at++) {
      const take = takes[at] as PlannedTake;
      const { rule, outcome } = take;
      const stat = rule === undefined ? overrideStat(policy, match.entries) : take.stat;
      const shadowed = outcome?.limited === true && take.weight === 'observe';
      this.#options.observer.counted(stat, rule === undefined, take, outcome, shadowed);
    }
  }

  #logUnknownDomain(request: RateLimitRequest, policies: PolicySet, startMicros: number): void {
    const { observer, clock } = this.#options;
    const secretKeys = secretKeysOf(policies);
    for (const { entries } of request.descriptors) {
      observer.logDecision({
        domain: request.domain,
        entries: redactEntries(entries, secretKeys),
        rule: '',
        code: 'OK',
        remaining: undefined,
        candidate: undefined,
        micros: clock.monotonicMicros() - startMicros,
      });
    }
  }
}
