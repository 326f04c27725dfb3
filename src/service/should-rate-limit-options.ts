import type { ServiceCodec } from '../codec/messages.js';
import type { BucketStore, LocalStore } from '../limiter/bucket-store.js';
import type { Clock } from '../limiter/clock.js';
import type { PolicySet } from '../policy/policy-set.js';
import type { DecisionObserver } from './decision-observer.js';
import type { PlanOptions } from './plan.js';
import type { DecisionLog } from './record/decision-record.js';
import type { TurnQueue } from './turn-queue.js';
import type { WaitingRequests } from './waiting-requests.js';

/** What {@link ShouldRateLimit} builds on. */
export interface ShouldRateLimitOptions extends PlanOptions {
  readonly codec: ServiceCodec;
  readonly clock: Clock;
  readonly store: BucketStore;
  /** Synchronous store in memory for `on_store_failure: local`. */
  readonly local: LocalStore;
  /** The snapshot in force; undefined while there is none yet. */
  readonly policies: () => PolicySet | undefined;
  readonly observer: DecisionObserver;
  /** Is told of samples of decisions; absent: nobody is. */
  readonly decisionLog?: DecisionLog | undefined;
  /** Longest a store may take (REDIS_TIMEOUT), in microseconds. */
  readonly storeTimeoutMicros: number;
  /** More descriptors in one request are refused: one request is one answer. */
  readonly maxDescriptors: number;
  /** Where requests that take long have their turns, one for the whole process; one of its own when absent. */
  readonly turns?: TurnQueue;
  /** Those that wait for the store; of its own when absent. */
  readonly waiting?: WaitingRequests;
}
