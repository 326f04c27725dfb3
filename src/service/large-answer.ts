import type { RateLimitResponse } from '../codec/messages.js';
import { runToCompletion } from '../runtime/turns.js';
import type { Observation } from './observe.js';
import type { Decision, PlannedTake, RequestContext } from './plan.js';
import { MAX_LOGGED_DESCRIPTORS } from './record/decision-line.js';
import { noteTogetherInSteps } from './shared-bucket.js';
import type { TurnQueue } from './turn-queue.js';

/**
 * Descriptors and limits of a request that is answered in one piece: building the answer and counting it take at most
 * about half a millisecond.
 */
const SMALL_ANSWER = 1000;
/**
 * Descriptors and limits that are counted in one step; a descriptor that may be logged is as much work as
 * {@link LOGGED} of them.
 */
const STEP = 500;
const LOGGED = 8;

/** Whether the answer to so much is told in steps. */
export function isLargeAnswer({ decisions, takes }: RequestContext): boolean {
  return decisions.length + takes.length > SMALL_ANSWER;
}

/** What is left to do once a request is decided. */
export interface LargeAnswer {
  readonly context: RequestContext;
  readonly observation: Observation;
  /** Takes that the store decided, which may share buckets. */
  readonly shared: readonly PlannedTake[];
  /** Builds the answer. */
  build(): RateLimitResponse;
}

function* answerSteps({
  context,
  observation,
  shared,
  build,
}: LargeAnswer): Generator<void, RateLimitResponse> {
  yield* noteTogetherInSteps(shared);
  const response = build();
  yield;
  const { decisions } = context;
  let from = 0;
  let work = 0;
  for (let index = 0; index < decisions.length; index++) {
    work += 1 + (decisions[index] as Decision).takes.length + (index < MAX_LOGGED_DESCRIPTORS ? LOGGED : 0);
    if (work < STEP) continue;
    observation.answered(context, response, from, index + 1);
    from = index + 1;
    work = 0;
    yield;
  }
  observation.answered(context, response, from, decisions.length);
  // Whoever waits for the response encodes it at once.
  yield;
  return response;
}

/**
 * Tells a large answer in turns with all that takes long. What was taken is taken, so it is counted to its end however
 * late it is and whether or not the caller has gone, and where no more may wait it is told at once.
 */
export async function tellInTurns(turns: TurnQueue, answer: LargeAnswer): Promise<RateLimitResponse> {
  const told = await turns.run(answerSteps(answer), {
    connection: answer.context.caller.connection,
    cancelled: () => false,
    giveUpMicros: Number.POSITIVE_INFINITY,
  });
  // Nothing was begun.
  return typeof told === 'string' ? runToCompletion(answerSteps(answer)) : told;
}
