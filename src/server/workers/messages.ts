import type { StoreNode } from '../../admin/health-detail.js';
import type { TlsMaterial, TlsOptions } from '../../grpc/grpc-server.js';
import type { LostControls } from '../../limiter/control.js';
import type { Settings } from '../settings/settings-table.js';
import type { RedisWorkTold } from '../store/store.js';
import type { CallAnswer, CallMessage } from './calls.js';

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
  /** Whether it is there; answered by `pong`. */
  | { readonly kind: 'ping' }
  | CallMessage
  | { readonly kind: 'others_redis_work'; readonly told: readonly OthersRedisWork[] }
  /** In a drain: no further `decide` comes. */
  | { readonly kind: 'last-decided' }
  | { readonly kind: 'drain'; readonly why: string };

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
  | { readonly kind: 'redis_work'; readonly told: readonly RedisWorkTold[] }
  | { readonly kind: 'controls_lost'; readonly lost: LostControls }
  | CallAnswer;
