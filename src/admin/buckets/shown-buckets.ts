import { StorageError } from '../../limiter/bucket-store.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { describeMicros, describeRate } from '../../policy/describe.js';
import { redactEntries } from '../../policy/redact.js';
import { redisKey, slotOfKey } from '../../storage/redis/redis-key.js';
import { askBuckets, type BucketFound, levelOf } from './bucket-calls.js';
import type { FoundLimit, FoundLimits } from './found-limits.js';
import { shownHolds } from './holds/holds.js';
import type { BucketAnswer, BucketQuestion, ShownBucket } from './messages.js';
import { type QuestionContext, QuestionFailure } from './read-question.js';

/** A validated question with the policy of its domain, and the limits for its entries. */
export interface PolicyQuestion {
  readonly question: BucketQuestion;
  readonly policy: CompiledPolicy;
  readonly found: FoundLimits;
}

/** Runs `show`: returns the limits that apply or could apply to a descriptor, and the levels of their buckets. */
export async function showBuckets(asked: PolicyQuestion, context: QuestionContext): Promise<BucketAnswer> {
  const { limits, more, notes } = asked.found;
  const { keyPrefix } = context;
  const takes = limits.flatMap(({ take }) => take ?? []);
  const answers = await askBuckets(
    takes.map((take) => ({ take, hits: 0 })),
    context,
  );
  const failure = failureOfAll(answers);
  if (failure !== undefined) throw unreadFailure(failure);
  const found = new Map(takes.map((take, i) => [take, answers[i] as BucketFound | StorageError]));
  const held = await shownHolds(limits, context);
  const buckets = limits.map((limit) => {
    const there = limit.take && found.get(limit.take);
    if (there === undefined) return shownLimit(limit, keyPrefix);
    if (there instanceof StorageError) return shownLimit(limit, keyPrefix, { note: notAsked(there) });
    const holds = held.get(limit);
    const note = [limit.note, leaseNote(limit, context)].filter((text) => text !== '').join(' ');
    return shownLimit(limit, keyPrefix, {
      now: levelOf(limit.rate, there.after),
      ...(holds && { holds }),
      ...(note !== '' && { note }),
    });
  });
  return answerTo(asked, context, { buckets, more, notes });
}

/** Returns what may be leased, which the bucket does not contain; '' for a limit that does not lease. */
function leaseNote({ rate: { lease }, take }: FoundLimit, { store, keyPrefix }: QuestionContext): string {
  if (lease === undefined || take === undefined || keyPrefix === undefined) return '';
  const life = describeMicros(lease.forMicros);
  const leased = store.leasedTokens(take.key);
  return (
    `Each process may take up to ${lease.max} in advance, which this number does not contain, and spends them within ` +
    `${life}.${leased === undefined ? '' : ` The process that answered has ${leased} left.`}`
  );
}

export function answerTo(
  { question, policy, found: { meets, entries } }: PolicyQuestion,
  { store }: Pick<QuestionContext, 'store'>,
  said: Pick<BucketAnswer, 'buckets' | 'more' | 'notes'>,
): BucketAnswer {
  return {
    action: question.action,
    dry_run: question.dry_run === true,
    domain: policy.domain,
    entries: redactEntries(entries, policy.secretKeys),
    store: store.name,
    meets,
    ...said,
  };
}

/**
 * Returns a limit for an answer, with the level of its bucket. `keyPrefix` is the prefix of Redis keys, or undefined if
 * buckets are in memory.
 */
export function shownLimit(
  limit: FoundLimit,
  keyPrefix: string | undefined,
  there: Pick<ShownBucket, 'before' | 'now' | 'holds' | 'released' | 'note'> = {},
): ShownBucket {
  const { rulePath, name, rate, planned, enforcement, entries, take, note } = limit;
  const key = take === undefined || keyPrefix === undefined ? null : redisKey(take, keyPrefix);
  return {
    rule: rulePath,
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

/**
 * Returns the reason why none of some buckets could be read; undefined if at least one was read, or without buckets.
 */
export function failureOfAll(answers: readonly (BucketFound | StorageError)[]): StorageError | undefined {
  const failures = answers.filter((answer) => answer instanceof StorageError);
  return failures.length === answers.length ? failures[0] : undefined;
}

function storeUnread({ message }: StorageError): string {
  return `the store could not be read: ${message}`;
}

/** Returns the error of a question about buckets of which none could be read. */
export function unreadFailure(error: StorageError): QuestionFailure {
  return new QuestionFailure(503, storeUnread(error));
}

/** Returns a note with the reason why the level of a bucket is unknown. */
export function notAsked(error: StorageError): string {
  return sentence(storeUnread(error));
}

/** With a capital letter and a full stop. */
export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
