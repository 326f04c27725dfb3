import type { AdminCaller } from '../../admin/admin-access.js';
import type { AdminAnswer } from '../../admin/admin-endpoint.js';
import type { TopAsk } from '../../admin/top/top-ask.js';
import type { Refusal } from '../../service/refusal.js';
import type { FamilyHead, Sample } from '../../telemetry/family.js';
import type { FailureCounts } from '../../telemetry/history/failure-counts.js';
import type { RateCounts } from '../../telemetry/history/rate-counts.js';
import type { TopRow, TopSpanAbout } from '../../telemetry/top/top-buckets.js';

/** What the primary process asks a worker, what parts its answer has, and what ends it. */
interface Call<Ask, Part, Answer> {
  readonly ask: Ask;
  readonly part: Part;
  readonly answer: Answer;
}

/** An encoded RateLimitRequest of `/json`. */
export interface DecideAsk {
  readonly message: Uint8Array;
  readonly timeoutMicros: number;
  /** Stands for the connection that it came by; 0 for none in particular. */
  readonly connection: number;
  /** Those of TRACE_HEADERS that it came with, where anybody wants them. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** An encoded RateLimitResponse, or what a Refusal says. */
export type DecidedByWorker =
  | { readonly response: Uint8Array }
  | { readonly refused: Refusal['kind']; readonly message: string };

/** Some samples of a family, or of the statistics for `/stats`; those of a family come one after the other. */
export interface MetricsPart {
  readonly of: 'metrics' | 'stats';
  readonly family: FamilyHead;
  readonly samples: readonly Sample[];
}

/** All calls of the primary process to its workers, by name. */
export interface Calls {
  readonly decide: Call<DecideAsk, never, DecidedByWorker>;
  /** What somebody who administers weir asks of `/buckets`; `question` is not looked at yet. */
  readonly administer: Call<{ readonly question: unknown; readonly caller: AdminCaller }, never, AdminAnswer>;
  /** Which buckets it counts most of. */
  readonly top: Call<TopAsk, readonly TopRow[], TopSpanAbout>;
  /** What it has decided since it was asked last. */
  readonly rates: Call<undefined, readonly RateCounts[], FailureCounts>;
  readonly metrics: Call<undefined, MetricsPart, null>;
}

export type CallName = keyof Calls;

/** What a worker has told: rows, and something about all of them. */
export interface WorkerRows<Name extends 'top' | 'rates'> {
  readonly rows: Calls[Name]['part'];
  readonly about: Calls[Name]['answer'];
}

/** By what the calls of one name are bounded. */
export interface CallBounds {
  /** Most answers that workers owe: each call may wait in the channel of one that hangs. */
  readonly maxPending: number;
  /** A worker leaves alone what it reads later than this after it was sent, milliseconds. */
  readonly maxDelayMs: number;
}

/** The bounds of every call. */
export const CALL_BOUNDS: Readonly<Record<CallName, CallBounds>> = {
  decide: { maxPending: 1000, maxDelayMs: 500 },
  // A worker answers within seconds, however much is asked.
  administer: { maxPending: 64, maxDelayMs: 15_000 },
  top: { maxPending: Infinity, maxDelayMs: Infinity },
  rates: { maxPending: Infinity, maxDelayMs: Infinity },
  metrics: { maxPending: Infinity, maxDelayMs: Infinity },
};

/** What is said of a call that a worker read too late. */
export const READ_LATE = 'the worker process that was asked was silent for too long';

/** A call on its way to a worker. */
export type CallMessage = {
  [Name in CallName]: {
    readonly kind: 'call';
    readonly id: number;
    readonly name: Name;
    readonly ask: Calls[Name]['ask'];
    /** When it was sent, by {@link machineMicros}. */
    readonly sentMicros: number;
  };
}[CallName];

/** What a worker says to a call. */
export type CallAnswer =
  | { readonly kind: 'part'; readonly id: number; readonly part: Calls[CallName]['part'] }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: Calls[CallName]['answer'] | undefined }
  /** It read the call so late that it left it alone. */
  | { readonly kind: 'late'; readonly id: number };
