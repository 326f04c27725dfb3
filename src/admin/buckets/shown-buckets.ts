import { StorageError } from '../../limiter/bucket-store.js';
import { describeRate } from '../../policy/describe.js';
import { redisKey, slotOfKey } from '../../storage/redis/redis-key.js';
import type { BucketFound } from './bucket-calls.js';
import { levelOf } from './bucket-level.js';
import { type FoundLimit, findLimits } from './found-limits.js';
import { shownHolds } from './holds/shown-holds.js';
import type { ShownBucket } from './messages.js';
import {
  answerTo,
  type PolicyQuestion,
  planSource,
  type QuestionContext,
  QuestionFailure,
  type QuestionResult,
} from './question-context.js';

/**
 * Returns a limit for an answer, with the level of its bucket. `keyPrefix` is the prefix of Redis keys, or undefined if
 * buckets are in memory.
 */
export function shownLimit(
  limit: FoundLimit,
  keyPrefix: string | undefined,
  there: Pick<ShownBucket, 'before' | 'now' | 'holds' | 'released' | 'note'> = {},
): ShownBucket {
  const { label, name, rate, planned, enforcement, entries, take, note } = limit;
  const key = take === undefined || keyPrefix === undefined ? null : redisKey(take, keyPrefix);
  return {
    rule: label,
    name,
    algorithm: rate.kind === 'window' ? 'fixed_window' : rate.kind,
    limit: rate.reportedLimit,
    about: planned === '' ? describeRate(rate) : `${describeRate(rate)}; ${planned}`,
    enforcement,
    entries,
    redis_key: key,
    redis_slot: key === null ? null : slotOfKey(key),
    ...(note !== '' && { note }),
    ...there,
  };
}

/** Limits with the levels of their buckets. */
export interface ShownBuckets {
  readonly buckets: readonly ShownBucket[];
  /** Reason why no bucket could be read; undefined if at least one was read, or without buckets. */
  readonly failure: StorageError | undefined;
}

/** Returns limits with the levels of the known buckets. */
async function showBuckets(
  limits: readonly FoundLimit[],
  context: Pick<QuestionContext, 'calls' | 'keyPrefix' | 'store'>,
): Promise<ShownBuckets> {
  const { calls, keyPrefix } = context;
  const takes = limits.flatMap(({ take }) => take ?? []);
  const answers = await calls.ask(takes.map((take) => ({ take, hits: 0 })));
  const found = new Map(takes.map((take, i) => [take, answers[i] as BucketFound | StorageError]));
  const failure = failureOfAll(answers);
  const held = failure === undefined ? await shownHolds(limits, context) : undefined;
  const buckets = limits.map((limit) => {
    const there = limit.take && found.get(limit.take);
    if (there === undefined) return shownLimit(limit, keyPrefix);
    if (there instanceof StorageError) return shownLimit(limit, keyPrefix, { note: notAsked(there) });
    const holds = held?.get(limit);
    return shownLimit(limit, keyPrefix, { now: levelOf(limit.rate, there.after), ...(holds && { holds }) });
  });
  return { buckets, failure };
}

/**
 * Returns the reason why none of some buckets could be read; undefined if at least one was read, or without buckets.
 */
export function failureOfAll(answers: readonly (BucketFound | StorageError)[]): StorageError | undefined {
  const failures = answers.filter((answer) => answer instanceof StorageError);
  return failures.length === answers.length ? failures[0] : undefined;
}

/** Returns the reason why the levels of all buckets are unknown, without a full stop. */
export function storeUnread({ message }: StorageError): string {
  return `the store could not be read: ${message}`;
}

/** Returns a note with the reason why the level of a bucket is unknown. */
export function notAsked(error: StorageError): string {
  return sentence(storeUnread(error));
}

/** Returns a message as a sentence: with a capital letter and a full stop. */
export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

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
