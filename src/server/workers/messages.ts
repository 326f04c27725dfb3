import type { TlsMaterial, TlsOptions } from '../../grpc/grpc-server.js';
import type { LostControls } from '../../limiter/control.js';
import type { Refusal } from '../../service/refusal.js';
import type { FamilyHead, Sample } from '../../telemetry/family.js';
import type { FailureCounts } from '../../telemetry/history/failure-counts.js';
import type { RateCounts } from '../../telemetry/history/rate-counts.js';
import type { TopRow, TopSpanAbout } from '../../telemetry/top/top-buckets.js';
import type { AdminCaller } from '../http/admin-access.js';
import type { AdminAnswer } from '../http/admin-endpoint.js';
import type { Settings } from '../settings/settings-table.js';
import type { RedisWorkTold, StoreNode } from '../store/store.js';
import type { TopAsk } from '../top/top-ask.js';

/** All policies in force; see {@link policyItems}. */
export interface SlicedPolicies {
  readonly version: string;
  readonly slices: readonly Uint8Array[];
}

/** {@link RedisWorkTold} by the worker with this number. */
export interface OthersRedisWork extends RedisWorkTold {
  readonly from: number;
}

/** From the primary process to a worker. */
export type ToWorker =
  | {
      readonly kind: 'start';
      readonly settings: Settings;
      readonly version: string;
      readonly terminal: boolean;
      readonly policies: SlicedPolicies | undefined;
      readonly tls: TlsOptions | undefined;
    }
  | { readonly kind: 'tls'; readonly material: TlsMaterial }
  /** Other policies are coming, slice by slice; a worker that has not heard this leaves the slices alone. */
  | { readonly kind: 'policies_begin' }
  | { readonly kind: 'policies_slice'; readonly slice: Uint8Array }
  /** All are there: they are in force from now on. */
  | { readonly kind: 'policies_end'; readonly version: string }
  | { readonly kind: 'metrics'; readonly id: number }
  /** Whether it is there; answered by `pong`. */
  | { readonly kind: 'ping' }
  /** An encoded RateLimitRequest of `/json`; answered by {@link DecidedByWorker}. */
  | {
      readonly kind: 'decide';
      readonly id: number;
      readonly message: Uint8Array;
      readonly patienceMicros: number;
      /** When it was sent, by {@link machineMicros}; read long after that it is another's, and nothing is taken. */
      readonly sentMicros: number;
      /** Stands for the connection that it came by; 0 for none in particular. */
      readonly connection: number;
      /** Those of TRACE_HEADERS that it came with, where anybody wants them. */
      readonly headers: Readonly<Record<string, string>> | undefined;
    }
  /** Which buckets it counts most of; answered by `top_part` and `top_end`. */
  | { readonly kind: 'top'; readonly id: number; readonly ask: TopAsk }
  /** What it has decided since it was asked last; answered by `rates_part` and `rates_end`. */
  | { readonly kind: 'rates'; readonly id: number }
  | { readonly kind: 'others_redis_work'; readonly told: readonly OthersRedisWork[] }
  /** What somebody who administers weir asks of `/buckets`; answered by {@link AdministeredByWorker}. */
  | {
      readonly kind: 'administer';
      readonly id: number;
      /** Not looked at yet. */
      readonly question: unknown;
      readonly caller: AdminCaller;
      /** When it was sent, by {@link machineMicros}; read long after that nobody expects it to be done any more. */
      readonly sentMicros: number;
    }
  /** In a drain: no further `decide` comes. */
  | { readonly kind: 'last-decided' }
  | { readonly kind: 'drain'; readonly why: string };

/** An encoded RateLimitResponse, or what a Refusal says. */
export interface DecidedByWorker {
  readonly kind: 'decided';
  readonly id: number;
  readonly result:
    | { readonly response: Uint8Array }
    | { readonly refused: Refusal['kind']; readonly message: string };
}

/** The answer to a question of those who administer weir. */
export interface AdministeredByWorker {
  readonly kind: 'administered';
  readonly id: number;
  readonly answer: AdminAnswer;
}

/** What a worker says of itself. */
export interface WorkerHealth {
  /** Why it should get no requests; undefined when it should. */
  readonly reason: string | undefined;
  readonly store: string;
  readonly storeUp: boolean;
  readonly redis: readonly StoreNode[];
}

/** From a worker to the primary process. */
export type FromWorker =
  /** It can take the `start` message. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'pong' }
  /** It has taken a `policies_slice`. */
  | { readonly kind: 'policies_taken' }
  /** Its gRPC port is open, at this address. */
  | { readonly kind: 'listening'; readonly grpc: string; readonly health: WorkerHealth }
  /** It cannot start; the lines of a StartError. */
  | { readonly kind: 'failed'; readonly lines: readonly string[] }
  /**
   * It never reached Redis in the time it was given; the lines of a StartError. It goes on until it is told to drain.
   */
  | { readonly kind: 'givenUp'; readonly lines: readonly string[] }
  | { readonly kind: 'health'; readonly health: WorkerHealth }
  /** Some samples of a family, or of the statistics for `/stats`; those of a family come one after the other. */
  | {
      readonly kind: 'metrics_part';
      readonly of: 'metrics' | 'stats';
      readonly family: FamilyHead;
      readonly samples: readonly Sample[];
    }
  /** That was all of them: the answer to this question and those before it. */
  | { readonly kind: 'metrics_end'; readonly id: number }
  /** Some buckets of the answer to a `top`. */
  | { readonly kind: 'top_part'; readonly id: number; readonly rows: readonly TopRow[] }
  /** That was all of them. */
  | { readonly kind: 'top_end'; readonly id: number; readonly about: TopSpanAbout }
  /** Some rules of the answer to a `rates`. */
  | { readonly kind: 'rates_part'; readonly id: number; readonly rows: readonly RateCounts[] }
  /** That was all of them. */
  | { readonly kind: 'rates_end'; readonly id: number; readonly failures: FailureCounts }
  | { readonly kind: 'redis_work'; readonly told: readonly RedisWorkTold[] }
  | { readonly kind: 'controls_lost'; readonly lost: LostControls }
  | DecidedByWorker
  | AdministeredByWorker;
