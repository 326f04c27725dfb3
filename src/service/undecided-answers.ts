import type { RateLimitResponse } from '../codec/messages.js';
import type { DomainPolicy } from '../policy/policy.js';
import { phaseAt } from '../policy/rule.js';
import { passingAnswer, throttledAnswer } from './answer/throttled-answer.js';
import type { Observation } from './observe.js';
import type { RequestContext } from './plan.js';
import type { GivenUpReason } from './record/decision-record.js';
import type { ShouldRateLimitOptions } from './should-rate-limit-options.js';
import type { Throttled } from './sliced-plan.js';

/** Answers requests without a decision: denies them if an enforced rule or an override might have denied them. */
export class UndecidedAnswers {
  readonly #options: Pick<ShouldRateLimitOptions, 'answers' | 'clock'>;
  readonly #observation: Observation;

  constructor(options: Pick<ShouldRateLimitOptions, 'answers' | 'clock'>, observation: Observation) {
    this.#options = options;
    this.#observation = observation;
  }

  /** Answers a request that was not evaluated, or not completely. */
  unevaluated(context: RequestContext, why: GivenUpReason, mayDeny: boolean): RateLimitResponse {
    const { domain } = context.policy;
    const { answers, clock } = this.#options;
    this.#observation.givenUp(domain, why, mayDeny && !answers.shadowMode);
    if (mayDeny && answers.shadowMode) this.#observation.counts.reference.globalShadow();
    context.wallMicros = clock.wallMicros();
    const response = mayDeny ? throttledAnswer(context, -1, why, answers) : passingAnswer(context.request);
    this.#observation.undecided(context, response, why);
    return response;
  }

  /** Answers a request that exceeded a bound of matching. */
  throttled(context: RequestContext, { index, bound }: Throttled, mayDeny: boolean): RateLimitResponse {
    const { answers, clock } = this.#options;
    this.#observation.matchExceeded(context.policy.domain, bound, mayDeny && !answers.shadowMode);
    if (mayDeny && answers.shadowMode) this.#observation.counts.reference.globalShadow();
    const why = 'match_budget_exceeded';
    context.wallMicros = clock.wallMicros();
    const response = mayDeny ? throttledAnswer(context, index, why, answers) : passingAnswer(context.request);
    this.#observation.undecided(context, response, why);
    return response;
  }
}

/**
 * Returns whether a rule of the domain, or a limit override, may deny a request that was not evaluated. `random`
 * returns numbers from 0 up to, but not including, 1.
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
