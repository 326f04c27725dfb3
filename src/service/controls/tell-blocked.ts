import type { RateLimitRequest, RateLimitResponse } from '../../codec/messages.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { AnswerOptions } from '../answer/answer-options.js';
import type { Caller } from '../caller.js';
import { isLargeAnswer, tellInTurns } from '../large-answer.js';
import type { Observation } from '../observe.js';
import type { Decision } from '../plan.js';
import type { TurnQueue } from '../turn-queue.js';
import { blockedAnswer } from './blocked-answer.js';

/** A request that a block denies, and when. */
export interface BlockedRequest {
  readonly request: RateLimitRequest;
  readonly policy: DomainPolicy;
  readonly decisions: readonly Decision[];
  readonly caller: Caller;
  readonly startMicros: number;
  /** Monotonic. */
  readonly nowMicros: number;
  readonly wallMicros: number;
}

/** Answers a request that a block denies, and tells of it: at once, or in turns where it is a large one. */
export function tellBlocked(
  blocked: BlockedRequest,
  answers: AnswerOptions,
  observation: Observation,
  turns: TurnQueue,
): RateLimitResponse | Promise<RateLimitResponse> {
  const { request, policy, decisions, caller, startMicros, nowMicros, wallMicros } = blocked;
  const build = () => blockedAnswer(request, policy, decisions, answers, nowMicros, wallMicros);
  if (isLargeAnswer(decisions, [])) {
    const told = { request, policy, decisions, startMicros, observation, caller, build };
    return tellInTurns(turns, { shared: [], blocked: true, ...told });
  }
  const response = build();
  observation.blocked(request, policy, decisions, response, startMicros, caller);
  return response;
}
