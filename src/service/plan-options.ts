import type { Clock } from '../limiter/clock.js';
import type { MatchWork } from '../policy/match-work.js';
import type { AnswerOptions } from './answer/answer-options.js';

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
