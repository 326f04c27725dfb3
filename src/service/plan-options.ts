import type { Clock } from '../limiter/clock.js';
import type { AnswerOptions } from './answer/answer-options.js';

/** Options that apply to all requests of a service. */
export interface PlanOptions {
  readonly clock: Pick<Clock, 'wallMicros' | 'exactWallMicros'>;
  /** Options that apply to every answer. */
  readonly answers: AnswerOptions;
  /** Maximum number of limits in a request: the store decides a request in one atomic step. */
  readonly maxLimits: number;
  /** Returns random numbers from 0 up to, but not including, 1, for `enforce_percent`; Math.random if absent. */
  readonly random?: () => number;
}
