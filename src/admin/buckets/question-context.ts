import type { BucketStore, StorageError, StorageFailure } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { Entry } from '../../limiter/entry.js';
import type { HoldBook } from '../../limiter/holds/hold-book.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import type { MatchWork } from '../../policy/match-work.js';
import { redactEntries } from '../../policy/redact.js';
import type { AnswerOptions } from '../../service/answer/answer-options.js';
import type { HoldCounts } from '../../service/decision-observer.js';
import type { BucketCalls } from './bucket-calls.js';
import type { PlanSource } from './matching-limits.js';
import type { BucketAnswer, BucketQuestion } from './messages.js';

/** Dependencies of the code that answers questions. */
export interface QuestionContext {
  readonly store: {
    readonly name: string;
    readonly buckets: BucketStore;
    readonly holds: HoldBook;
    readonly timeoutMicros: number;
    /** Tells other processes about filled buckets, see {@link Store.announceFilled}. */
    announceFilled(): Promise<StorageError | undefined>;
  };
  readonly clock: Clock;
  readonly answers: AnswerOptions;
  readonly maxLimits: number;
  readonly matchWork: MatchWork;
  /** Prefix of Redis keys; undefined if buckets are in memory. */
  readonly keyPrefix: string | undefined;
  readonly calls: BucketCalls;
  /** Counts holds that an operator releases. */
  readonly counts: Pick<HoldCounts, 'released'>;
}

/** A validated question with the policy of its domain. */
export interface PolicyQuestion {
  readonly question: BucketQuestion;
  readonly policy: CompiledPolicy;
}

/** An error as the answer to a question, with its HTTP status. */
export class QuestionFailure {
  readonly status: number;
  /** Sentence with the error and its remedy. */
  readonly error: string;
  readonly mayHaveChanged: boolean;

  constructor(status: number, error: string, mayHaveChanged = false) {
    this.status = status;
    this.error = error;
    this.mayHaveChanged = mayHaveChanged;
  }
}

/** Result of a question. */
export type QuestionResult = BucketAnswer | QuestionFailure;

const RESULT_UNKNOWN = 'so the result is unknown; check the bucket with weir bucket show';
const NOT_DONE = 'so nothing was changed; try again';
/** Failures after which the store may have executed a call that was sent. */
const MAYBE_DONE: ReadonlySet<StorageFailure> = new Set(['timeout', 'disconnected']);

/** Returns whether a failed call may have changed the store. */
export function mayHaveChanged({ reason, unsent }: StorageError): boolean {
  return !unsent && MAYBE_DONE.has(reason);
}

/** Returns a message about a failed change. If the change may have been made, it names the command to check it. */
export function changeFailed(error: StorageError): string {
  return `the store failed (${error.message}), ${mayHaveChanged(error) ? RESULT_UNKNOWN : NOT_DONE}`;
}

/** Returns the error of a change that the store did not make, or may have made. */
export function failedChange(error: StorageError): QuestionFailure {
  return new QuestionFailure(503, changeFailed(error), mayHaveChanged(error));
}

/** Returns the current context for planning descriptors. */
export function planSource(
  { clock, answers, maxLimits, matchWork }: QuestionContext,
  policy: CompiledPolicy,
): PlanSource {
  return { policy, wallMicros: clock.wallMicros(), answers, maxLimits, matchWork };
}

/** Returns an answer with the given fields. `entries` are redacted here. */
export function answerTo(
  { question, policy }: PolicyQuestion,
  store: string,
  entries: readonly Entry[],
  said: Pick<BucketAnswer, 'meets' | 'buckets' | 'more' | 'notes'>,
): BucketAnswer {
  return {
    action: question.action,
    dry_run: question.dry_run === true,
    domain: policy.domain,
    entries: redactEntries(entries, policy.secretKeys),
    store,
    ...said,
  };
}
