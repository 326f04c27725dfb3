import type { RateLimitResponse } from '../codec/messages.js';
import { runToCompletion } from '../runtime/turns.js';
import type { Observation } from './observe.js';
import type { Decision, PlannedTake, RequestContext } from './plan.js';
import { MAX_LOGGED_DESCRIPTORS } from './record/decision-line.js';
import { markNeverPassingInSlices } from './shared-bucket.js';
import type { TurnQueue } from './turn-queue.js';

/**
 * Descriptors and limits of a request that is answered in one piece: building the answer and counting it take at most
 * about half a millisecond.
 */
const MAX_INLINE_ITEMS = 1000;
/**
 * Descriptors and limits that are counted in one step; a descriptor that may be logged is as much work as
 * {@link LOGGED_DESCRIPTOR_ITEMS} of them.
 */
const ITEMS_PER_SLICE = 500;
const LOGGED_DESCRIPTOR_ITEMS = 8;

/** Whether the answer to so much is told in steps. */
export function isLargeAnswer({ decisions, takes }: RequestContext): boolean {
  return decisions.length + takes.length > MAX_INLINE_ITEMS;
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

function* answerSlices({
  context,
  observation,
  shared,
  build,
}: LargeAnswer): Generator<void, RateLimitResponse> {
  yield* markNeverPassingInSlices(shared);
  const response = build();
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
  // Whoever waits for the response encodes it at once.
  yield;
  return response;
}

/**
 * Tells a large answer in turns with all that takes long. What was taken is taken, so it is counted to its end however
 * late it is and whether or not the caller has gone, and where no more may wait it is told at once.
 */
export async function answerInSlices(turns: TurnQueue, answer: LargeAnswer): Promise<RateLimitResponse> {
  const answered = await turns.run(answerSlices(answer), {
    connection: answer.context.caller.connection,
    cancelled: () => false,
    deadlineMicros: Number.POSITIVE_INFINITY,
  });
  // Nothing was begun.
  return typeof answered === 'string' ? runToCompletion(answerSlices(answer)) : answered;
}
