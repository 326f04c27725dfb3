import type { AdminCaller } from '../../admin/admin-access.js';
import type { AdminAnswer } from '../../admin/admin-endpoint.js';
import type { TopRequest } from '../../admin/top/top-request.js';
import type { RateLimitRequest, RateLimitResponse } from '../../codec/messages.js';
import type { Refusal } from '../../service/refusal.js';
import type { FamilyHead } from '../../telemetry/family.js';
import type { FailureCounts } from '../../telemetry/history/failure-counts.js';
import type { RateCounts } from '../../telemetry/history/rate-counts.js';
import type { TopRow, TopSpanSummary } from '../../telemetry/top/top-buckets.js';

/** Types of a call from the primary process to a worker: request, parts of the answer, and final answer. */
interface Call<Ask, Part, Answer> {
  readonly ask: Ask;
  readonly part: Part;
  readonly answer: Answer;
}

/** A request of `/json`. */
export interface DecideAsk {
  readonly request: RateLimitRequest;
  readonly timeoutMicros: number;
  /** Number of the client's connection; 0 if unknown. */
  readonly connection: number;
  /** The TRACE_HEADERS of the request; undefined if logs and traces do not need them. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** A response, or the fields of a Refusal. */
export type DecidedByWorker =
  | { readonly response: RateLimitResponse }
  | { readonly refused: Refusal['kind']; readonly message: string };

/** A sample of a metric: the name with its labels in text format, and the value. */
export type Sample = readonly [series: string, value: number];

/** Samples of a metric family, or of the statistics of `/stats`. Parts of the same family follow each other. */
export interface MetricsPart {
  readonly of: 'metrics' | 'stats';
  readonly family: FamilyHead;
  readonly samples: readonly Sample[];
}

/** All calls of the primary process to its workers, by name. */
export interface Calls {
  readonly decide: Call<DecideAsk, never, DecidedByWorker>;
  /** Runs a command of `/buckets`. `question` is not validated yet. */
  readonly administer: Call<{ readonly question: unknown; readonly caller: AdminCaller }, never, AdminAnswer>;
  /** Returns the most active buckets. */
  readonly top: Call<TopRequest, readonly TopRow[], TopSpanSummary>;
  /** Returns the decisions since the previous call. */
  readonly rates: Call<undefined, readonly RateCounts[], FailureCounts>;
  readonly metrics: Call<undefined, MetricsPart, null>;
}

export type CallName = keyof Calls;

/** Rows of one worker, with its final answer. */
export interface WorkerRows<Name extends 'top' | 'rates'> {
  readonly rows: Calls[Name]['part'];
  readonly about: Calls[Name]['answer'];
}

/** Bounds of the calls of one name. */
export interface CallBounds {
  /** Maximum number of pending calls, each of which may occupy the channel of a worker that hangs. */
  readonly maxPending: number;
  /** Maximum milliseconds between sending and reading a call. A worker discards calls that it reads later. */
  readonly maxDelayMs: number;
}

/** The bounds of every call. */
export const CALL_BOUNDS: Readonly<Record<CallName, CallBounds>> = {
  decide: { maxPending: 1000, maxDelayMs: 500 },
  // A worker answers any command within seconds.
  administer: { maxPending: 64, maxDelayMs: 15_000 },
  top: { maxPending: Infinity, maxDelayMs: Infinity },
  rates: { maxPending: Infinity, maxDelayMs: Infinity },
  metrics: { maxPending: Infinity, maxDelayMs: Infinity },
};

/** Error of a call that a worker read too late. */
export const READ_LATE = 'the worker process was unresponsive for too long';

/** A call for a worker. */
export type CallMessage = {
  [Name in CallName]: {
    readonly kind: 'call';
    readonly id: number;
    readonly name: Name;
    readonly ask: Calls[Name]['ask'];
    /** Time of sending, by {@link machineMicros}. */
    readonly sentMicros: number;
  };
}[CallName];

/** Message of a worker about a call. */
export type CallAnswer =
  | { readonly kind: 'part'; readonly id: number; readonly part: Calls[CallName]['part'] }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: Calls[CallName]['answer'] | undefined }
  /** The worker discarded the call, because it read it too late. */
  | { readonly kind: 'late'; readonly id: number };
