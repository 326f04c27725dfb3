import type { BucketStore, StorageError, StorageFailure } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { HoldInspector } from '../../limiter/holds/hold-inspector.js';
import type { MatchWork } from '../../policy/match-work.js';
import type { AnswerOptions } from '../../service/answer/answer-options.js';
import type { HoldCounts } from '../../service/decision-observer.js';

/** Dependencies of the code that answers questions. */
export interface QuestionContext {
  readonly store: {
    readonly name: string;
    readonly buckets: BucketStore;
    readonly holds: HoldInspector;
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
  readonly counts: Pick<HoldCounts, 'released'>;
}

/**
 * Ends a question with an HTTP status. The message is a sentence with the error and its remedy. `mayHaveChanged`: the
 * change may have been made.
 */
export class QuestionFailure extends Error {
  readonly status: number;
  readonly mayHaveChanged: boolean;

  constructor(status: number, message: string, mayHaveChanged = false) {
    super(message);
    this.status = status;
    this.mayHaveChanged = mayHaveChanged;
  }
}

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
