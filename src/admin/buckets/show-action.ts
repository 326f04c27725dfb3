import { findLimits } from './found-limits.js';
import {
  answerTo,
  type PolicyQuestion,
  planSource,
  type QuestionContext,
  QuestionFailure,
  type QuestionResult,
} from './question-context.js';
import { showBuckets, storeUnread } from './shown-buckets.js';

/** Runs `show`: returns the limits that apply or could apply to a descriptor, and the levels of their buckets. */
export async function answerShow(asked: PolicyQuestion, context: QuestionContext): Promise<QuestionResult> {
  const { question, policy } = asked;
  const found = findLimits(planSource(context, policy), question);
  if (typeof found === 'string') return new QuestionFailure(400, found);
  const { meets, entries, limits, more, notes } = found;
  const { buckets, failure } = await showBuckets(limits, context);
  if (failure !== undefined) return new QuestionFailure(503, storeUnread(failure));
  return answerTo(asked, context.store.name, entries, { meets, buckets, more, notes });
}
