import type { HealthVerdict, StoreNode } from '../../admin/health-detail.js';
import type { PolicyHandover, XdsUpdate } from '../../config/policy-provider.js';
import type { TlsMaterial } from '../../h2/tls-material.js';
import type { ServingAddresses } from '../server-core.js';
import type { Settings } from '../settings/settings-table.js';
import type { CallMessage } from './calls.js';

/** Messages from the primary process to a worker. */
export type ToWorker =
  | {
      readonly kind: 'start';
      readonly settings: Settings;
      readonly version: string;
      readonly terminal: boolean;
      readonly policies: PolicyHandover;
      /** Certificates in effect, which the worker uses while their files are invalid. Undefined for plain text. */
      readonly tls: TlsMaterial | undefined;
      readonly health: HealthVerdict;
    }
  /** A block of the rows at an address of a table in Redis. `at` counts the blocks. The next `load` uses the rows. */
  | { readonly kind: 'rows'; readonly address: string; readonly at: number; readonly bytes: Uint8Array }
  /** The worker loads the policies, and answers with `loaded`. `updates`: those of management servers. */
  | { readonly kind: 'load'; readonly round: number; readonly updates: readonly XdsUpdate[] }
  /** The policies of this round take effect. */
  | { readonly kind: 'switch'; readonly round: number }
  /** Whether the server as a whole should get requests. */
  | { readonly kind: 'health'; readonly verdict: HealthVerdict }
  /** Checks whether the worker answers, with `pong`. */
  | { readonly kind: 'ping' }
  /** The worker finishes its calls, answers with `drained`, and refuses further calls. */
  | { readonly kind: 'drain'; readonly why: string }
  /** All workers have drained. */
  | { readonly kind: 'end' }
  | CallMessage;

export interface WorkerHealth {
  /** Reason why the worker should get no requests; undefined if it should. */
  readonly reason: string | undefined;
  readonly store: string;
  readonly storeUp: boolean;
  readonly redis: readonly StoreNode[];
  /** Version of the policies in effect, or `none`. */
  readonly policy: string;
}

/** Messages from a worker to the primary process. */
export type FromWorker =
  /** The worker is ready for the `start` message. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'pong' }
  /** The ports are open at these addresses. */
  | { readonly kind: 'listening'; readonly addresses: ServingAddresses; readonly health: WorkerHealth }
  /** The worker cannot start. The lines are those of a StartError. */
  | { readonly kind: 'failed'; readonly lines: readonly string[] }
  /**
   * The worker could not reach Redis in time. The lines are those of a StartError. The worker runs until it receives
   * `drain`.
   */
  | { readonly kind: 'givenUp'; readonly lines: readonly string[] }
  /** The policies of this round are loaded. They take effect with `switch`. */
  | { readonly kind: 'loaded'; readonly round: number }
  | { readonly kind: 'health'; readonly health: WorkerHealth }
  | { readonly kind: 'drained' }
  | CallMessage;
