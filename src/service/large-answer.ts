import type { RateLimitResponse } from '../codec/messages.js';
import { runToCompletion } from '../runtime/turns.js';
import { answer } from './answer/answer.js';
import type { Observation } from './observe.js';
import type { Decision, PlannedTake, RequestContext } from './plan.js';
import { MAX_LOGGED_DESCRIPTORS } from './record/decision-line.js';
import { markNeverPassingInSlices } from './shared-bucket.js';
import type { TurnQueue } from './turn-queue.js';

/**
 * Maximum number of descriptors plus limits of a request whose answer is built in one turn. Building and counting such
 * an answer takes at most about 0.5 ms.
 */
const MAX_INLINE_ITEMS = 1000;
/**
 * Number of descriptors plus limits that are counted in one slice. A descriptor that may be logged counts as
 * {@link LOGGED_DESCRIPTOR_ITEMS} more.
 */
const ITEMS_PER_SLICE = 500;
const LOGGED_DESCRIPTOR_ITEMS = 8;

/** Returns whether the answer is so large that it must be built in slices. */
export function isLargeAnswer({ decisions, takes }: RequestContext): boolean {
  return decisions.length + takes.length > MAX_INLINE_ITEMS;
}

/** A decided request whose answer still has to be built and counted. */
export interface LargeAnswer {
  readonly context: RequestContext;
  readonly observation: Observation;
  /** Takes that the store decided; several of them may use the same bucket. */
  readonly shared: readonly PlannedTake[];
}

function* answerSlices({ context, observation, shared }: LargeAnswer): Generator<void, RateLimitResponse> {
  yield* markNeverPassingInSlices(shared);
  const response = answer(context);
  yield;
  const { decisions } = context;
  let from = 0;
  let work = 0;
  for (let index = 0; index < decisions.length; index++) {
    work +=
      1 +
      (decisions[index] as Decision).takes.length +
      (index < MAX_LOGGED_DESCRIPTORS ? LOGGED_DESCRIPTOR_ITEMS : 0);
    if (work < ITEMS_PER_SLICE) continue;
    observation.answered(context, response, from, index + 1);
    from = index + 1;
    work = 0;
    yield;
  }
  observation.answered(context, response, from, decisions.length);
  // The caller encodes the response in one turn, so the encoding gets a separate turn.
  yield;
  return response;
}

/**
 * Builds and counts a large answer in slices, in turns with other long work. Its hits are already taken, so the answer
 * is counted completely even if it is late or the caller has gone. If the queue is full, the answer is built at once.
 */
export async function answerInSlices(turns: TurnQueue, large: LargeAnswer): Promise<RateLimitResponse> {
  const answered = await turns.run(answerSlices(large), {
    connection: large.context.caller.connection,
    cancelled: () => false,
    deadlineMicros: Number.POSITIVE_INFINITY,
  });
  // The queue rejected the work before it started.
  return typeof answered === 'string' ? runToCompletion(answerSlices(large)) : answered;
}
