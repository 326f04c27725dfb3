import type { ViewSlices } from '../../http/views/view-slices.js';
import type { BucketStore, StorageError, StorageFailure } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { ControlBook } from '../../limiter/control.js';
import type { Entry } from '../../limiter/entry.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { redactEntries } from '../../policy/redact.js';
import type { AnswerOptions } from '../../service/answer/answer-options.js';
import type { ControlIndex } from '../../service/controls/control-index.js';
import type { AdminCaller } from '../admin-access.js';
import type { BucketCalls } from './bucket-calls.js';
import type { KnownControls } from './known-controls.js';
import type { PlanSource } from './matching-limits.js';
import type { BucketAnswer, BucketQuestion } from './messages.js';

/** By what questions are answered. */
export interface QuestionContext {
  readonly store: {
    readonly name: string;
    readonly buckets: BucketStore;
    readonly controls: ControlBook;
    readonly timeoutMicros: number;
  };
  readonly clock: Clock;
  /** Where what takes long is done. */
  readonly slices: ViewSlices;
  readonly answers: AnswerOptions;
  readonly maxLimits: number;
  /** What Redis keys begin with; undefined: buckets are in memory. */
  readonly keyPrefix: string | undefined;
  readonly calls: BucketCalls;
  readonly controls: KnownControls;
  /** Where decisions look for controls. */
  readonly index: Pick<ControlIndex, 'hasRoomFor'>;
}

/** A question that was read, with who asks it. */
export interface CallerQuestion<Policy = CompiledPolicy> {
  readonly question: BucketQuestion;
  readonly caller: AdminCaller;
  readonly policy: Policy;
}

/** A question that is not answered, and the HTTP status that says so. */
export class QuestionFailure {
  readonly status: number;
  /** A sentence: what is wrong, and what to do. */
  readonly error: string;
  readonly mayHaveChanged: boolean;

  constructor(status: number, error: string, mayHaveChanged = false) {
    this.status = status;
    this.error = error;
    this.mayHaveChanged = mayHaveChanged;
  }
}

/** What a question comes to. */
export type QuestionResult = BucketAnswer | QuestionFailure;

export const LOOK_BUCKETS = 'so it is not known whether it was done: look with weir bucket show';
export const LOOK_CONTROLS = 'so it is not known whether it was done: look with weir bucket blocks';
const NOT_DONE = 'so nothing was done: try again';
/** What was sent by then may have been done. */
const MAYBE_DONE: ReadonlySet<StorageFailure> = new Set(['timeout', 'disconnected']);

/** Whether what the store was asked for may have been done, though it failed. */
export function mayHaveChanged({ reason, unsent }: StorageError): boolean {
  return !unsent && MAYBE_DONE.has(reason);
}

/** Why a change was not made, or may have been; `look` says where to look then. */
export function changeFailed(error: StorageError, look: string): string {
  return `the store failed (${error.message}), ${mayHaveChanged(error) ? look : NOT_DONE}`;
}

/** A change that the store did not make, or may have made. */
export function failedChange(error: StorageError, look: string): QuestionFailure {
  return new QuestionFailure(503, changeFailed(error, look), mayHaveChanged(error));
}

/** By what descriptors are planned now. */
export function planSource(
  { clock, answers, maxLimits }: QuestionContext,
  policy: CompiledPolicy,
): PlanSource {
  return { policy, wallMicros: clock.wallMicros(), answers, maxLimits };
}

/** An answer with what is said; `entries` are redacted here. */
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
