import type { StoreNode } from '../../admin/health-detail.js';
import type { PolicyItem } from '../../config/threads/policy-transfer.js';
import type { TlsMaterial, TlsOptions } from '../../grpc/grpc-server.js';
import type { PlanHead, PlanParts } from '../../policy/plans/plan-table.js';
import type { Settings } from '../settings/settings-table.js';
import type { CallAnswer, CallMessage } from './calls.js';

/** A part of the policies, which is sent as bytes. */
export type PolicySlice =
  /** A batch of policies without their tables of plans, which are sent before. */
  | { readonly kind: 'items'; readonly items: readonly PolicyItem[] }
  /** A table of plans: its head, and the number of elements of each part. */
  | {
      readonly kind: 'plans';
      readonly domain: string;
      readonly head: PlanHead;
      readonly lengths: Readonly<Record<keyof PlanParts, number>>;
      /** Whether `keys` has single bytes. */
      readonly isByte: boolean;
    }
  | {
      readonly kind: 'plan_bytes';
      readonly domain: string;
      readonly part: keyof PlanParts;
      readonly at: number;
      readonly bytes: Uint8Array;
    };

/** All policies in effect, as serialized {@link PolicySlice}s. */
export interface SlicedPolicies {
  readonly version: string;
  readonly slices: readonly Uint8Array[];
}

/** Messages from the primary process to a worker. */
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
  /** Start of a transfer of policies. A worker that started during a transfer ignores its slices. */
  | { readonly kind: 'policies_begin' }
  | { readonly kind: 'policies_slice'; readonly slice: Uint8Array }
  /** End of the transfer. The policies are in effect from now on. */
  | { readonly kind: 'policies_end'; readonly version: string }
  /** Checks whether the worker answers, with `pong`. */
  | { readonly kind: 'ping' }
  | CallMessage
  /** Sent during a drain: no further `decide` follows. */
  | { readonly kind: 'last-decided' }
  | { readonly kind: 'drain'; readonly why: string };

/** State of a worker. */
export interface WorkerHealth {
  /** Reason why the worker should get no requests; undefined if it should. */
  readonly reason: string | undefined;
  readonly store: string;
  readonly storeUp: boolean;
  readonly redis: readonly StoreNode[];
}

/** Messages from a worker to the primary process. */
export type FromWorker =
  /** The worker is ready for the `start` message. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'pong' }
  /** The worker has received a `policies_slice`. */
  | { readonly kind: 'policies_taken' }
  /** The gRPC port is open at this address. */
  | { readonly kind: 'listening'; readonly grpc: string; readonly health: WorkerHealth }
  /** The worker cannot start. The lines are those of a StartError. */
  | { readonly kind: 'failed'; readonly lines: readonly string[] }
  /**
   * The worker could not reach Redis in time. The lines are those of a StartError. The worker runs until it receives
   * `drain`.
   */
  | { readonly kind: 'givenUp'; readonly lines: readonly string[] }
  | { readonly kind: 'health'; readonly health: WorkerHealth }
  | CallAnswer;
