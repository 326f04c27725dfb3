import type { ViewSlices } from '../../http/views/view-slices.js';
import type { BucketStore, StorageError, StorageFailure } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { ControlBook } from '../../limiter/control.js';
import type { Entry } from '../../limiter/entry.js';
import type { HoldBook } from '../../limiter/holds/hold-book.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { redactEntries } from '../../policy/redact.js';
import type { AnswerOptions } from '../../service/answer/answer-options.js';
import type { ControlIndex } from '../../service/controls/control-index.js';
import type { HoldCounts } from '../../service/decision-observer.js';
import type { AdminCaller } from '../admin-access.js';
import type { BucketCalls } from './bucket-calls.js';
import type { KnownControls } from './known-controls.js';
import type { PlanSource } from './matching-limits.js';
import type { BucketAnswer, BucketQuestion } from './messages.js';

/** Dependencies of the code that answers questions. */
export interface QuestionContext {
  readonly store: {
    readonly name: string;
    readonly buckets: BucketStore;
    readonly holds: HoldBook;
    readonly controls: ControlBook;
    readonly timeoutMicros: number;
  };
  readonly clock: Clock;
  /** Runs long work in slices. */
  readonly slices: ViewSlices;
  readonly answers: AnswerOptions;
  readonly maxLimits: number;
  /** Prefix of Redis keys; undefined if buckets are in memory. */
  readonly keyPrefix: string | undefined;
  readonly calls: BucketCalls;
  readonly controls: KnownControls;
  /** Counts holds that an operator releases. */
  readonly counts: Pick<HoldCounts, 'released'>;
  /** Index in which decisions look up controls. */
  readonly index: Pick<ControlIndex, 'hasRoomFor'>;
}

/** A validated question with its caller. */
export interface CallerQuestion<Policy = CompiledPolicy> {
  readonly question: BucketQuestion;
  readonly caller: AdminCaller;
  readonly policy: Policy;
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

export const LOOK_BUCKETS = 'so the result is unknown; check the bucket with weir bucket show';
export const LOOK_CONTROLS = 'so the result is unknown; check the list with weir bucket blocks';
const NOT_DONE = 'so nothing was changed; try again';
/** Failures after which the store may have executed a call that was sent. */
const MAYBE_DONE: ReadonlySet<StorageFailure> = new Set(['timeout', 'disconnected']);

/** Returns whether a failed call may have changed the store. */
export function mayHaveChanged({ reason, unsent }: StorageError): boolean {
  return !unsent && MAYBE_DONE.has(reason);
}

/** Returns a message about a failed change. If the change may have been made, `look` names the command to check it. */
export function changeFailed(error: StorageError, look: string): string {
  return `the store failed (${error.message}), ${mayHaveChanged(error) ? look : NOT_DONE}`;
}

/** Returns the error of a change that the store did not make, or may have made. */
export function failedChange(error: StorageError, look: string): QuestionFailure {
  return new QuestionFailure(503, changeFailed(error, look), mayHaveChanged(error));
}

/** Returns the current context for planning descriptors. */
export function planSource(
  { clock, answers, maxLimits }: QuestionContext,
  policy: CompiledPolicy,
): PlanSource {
  return { policy, wallMicros: clock.wallMicros(), answers, maxLimits };
}

/** Returns an answer with the given fields. `entries` are redacted here. */
export function answerTo(
  { question }: Pick<CallerQuestion, 'question'>,
  policy: CompiledPolicy | undefined,
  store: string,
  entries: readonly Entry[],
  said: Partial<BucketAnswer>,
): BucketAnswer {
  return {
    action: question.action,
    dry_run: question.dry_run === true,
    domain: policy?.domain ?? question.domain ?? null,
    entries: policy === undefined ? [] : redactEntries(entries, policy.secretKeys),
    meets: 'none',
    store,
    buckets: [],
    more: 0,
    controls: [],
    more_controls: 0,
    notes: [],
    ...said,
  };
}
