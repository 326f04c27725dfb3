import type { ServiceCodec } from '../codec/messages.js';
import type { BucketStore, LocalStore } from '../limiter/bucket-store.js';
import type { Clock } from '../limiter/clock.js';
import type { PolicySet } from '../policy/policy-set.js';
import type { DecisionObserver } from './decision-observer.js';
import type { HoldMarks } from './holds/hold-marks.js';
import type { PlanOptions } from './plan-options.js';
import type { DecisionLog } from './record/decision-record.js';
import type { WaitingRequests } from './waiting-requests.js';

/** Dependencies and options of {@link ShouldRateLimit}. */
export interface ShouldRateLimitOptions extends PlanOptions {
  readonly codec: ServiceCodec;
  readonly clock: Clock;
  readonly store: BucketStore;
  /** Synchronous store in memory for `on_store_failure: local`. */
  readonly local: LocalStore;
  /** Returns the policies in effect; undefined until the first load. */
  readonly policies: () => PolicySet | undefined;
  readonly observer: DecisionObserver;
  /** Receives samples of decisions; absent if there is no decision log. */
  readonly decisionLog?: DecisionLog | undefined;
  /** Maximum time for a store call (REDIS_TIMEOUT), in microseconds. */
  readonly storeTimeoutMicros: number;
  /** Marks hold tokens; a new key if absent. */
  readonly holdMarks?: HoldMarks;
  /** Requests that wait for the store; a new object if absent. */
  readonly waiting?: WaitingRequests;
}
