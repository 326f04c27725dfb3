import type { RateLimitRequest, RateLimitResponse } from '../codec/messages.js';
import type { DomainPolicy } from '../policy/policy.js';
import { phaseAt } from '../policy/rule.js';
import type { AnswerOptions } from './answer/answer-options.js';
import { passingAnswer, throttledAnswer } from './answer/throttled-answer.js';
import type { Caller } from './caller.js';
import type { Observation } from './observe.js';
import type { Throttled } from './planning.js';
import type { ShouldRateLimitOptions } from './should-rate-limit-options.js';

/** A request that nobody decided. */
export interface UndecidedRequest {
  /** There once it is decoded. */
  readonly request: RateLimitRequest | undefined;
  readonly policy: DomainPolicy;
  readonly startMicros: number;
  readonly caller: Caller;
}

/** What may deny it: a block lets nothing pass, not even in SHADOW_MODE. */
export type PossiblyDenies = 'nothing' | 'limits' | 'block';

/** Answers requests that nobody decided: they are denied if something in force might have denied them. */
export class Undecided {
  readonly #options: Pick<ShouldRateLimitOptions, 'answers' | 'clock' | 'observer'>;
  readonly #observation: Observation;

  constructor(
    options: Pick<ShouldRateLimitOptions, 'answers' | 'clock' | 'observer'>,
    observation: Observation,
  ) {
    this.#options = options;
    this.#observation = observation;
  }

  /** That nobody looked at, or not to the end. */
  unseen(asked: UndecidedRequest, why: 'late' | 'full', denies: PossiblyDenies): RateLimitResponse {
    const { clock, observer } = this.#options;
    const { request, policy, startMicros, caller } = asked;
    const answers = this.#answersWhere(denies);
    const mayDeny = denies !== 'nothing';
    observer.givenUp(policy.domain, why, mayDeny && !answers.shadowMode);
    if (mayDeny && answers.shadowMode) observer.globalShadow();
    const response = mayDeny
      ? throttledAnswer(request, policy, -1, why, answers, clock.wallMicros())
      : passingAnswer(request);
    this.#observation.undecided(request, policy, response, why, startMicros, caller);
    return response;
  }

  /** That took too much work to match. */
  throttled(asked: UndecidedRequest, { index, key, mayBeBlocked }: Throttled): RateLimitResponse {
    const { clock, observer } = this.#options;
    const { request, policy, startMicros, caller } = asked;
    const answers = this.#answersWhere(mayBeBlocked ? 'block' : 'limits');
    observer.matchExceeded(policy.domain, key, !answers.shadowMode);
    if (answers.shadowMode) observer.globalShadow();
    const why = 'match_budget_exceeded';
    const response = throttledAnswer(request, policy, index, why, answers, clock.wallMicros());
    this.#observation.undecided(request, policy, response, why, startMicros, caller);
    return response;
  }

  #answersWhere(denies: PossiblyDenies): AnswerOptions {
    const { answers } = this.#options;
    return denies === 'block' ? { ...answers, shadowMode: false } : answers;
  }
}

/**
 * Whether a rule of the domain, or a limit override, may deny a request that nobody has looked at. `random` gives
 * numbers from 0 to just below 1.
 */
export function limitsMayDeny(
  { denial, phase }: DomainPolicy,
  mayOverride: () => boolean,
  wallMicros: number,
  random: () => number,
): boolean {
  if (denial.mayDeny(wallMicros, () => random() * 100)) return true;
  if (phaseAt(phase, wallMicros) !== 'active' && !denial.overrideMayDeny(wallMicros)) return false;
  return mayOverride();
}
