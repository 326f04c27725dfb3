import type { Random } from '../../fuzz/random.js';
import type { Topology } from '../topology/topology.js';

/** Functions and data for faults. */
export interface FaultContext<T extends Topology = Topology> {
  readonly topology: T;
  /** Source of all random choices. */
  readonly random: Random;
  /** Returns a random duration between two bounds, in milliseconds, times {@link RunOptions.scale}. */
  duration(fromMs: number, toMs: number): number;
  sleep(ms: number): Promise<void>;
  /** Declares that Redis is available again since now, or since `atMs`. The recovery time starts here. */
  markAvailable(atMs?: number): void;
  /** Names of all buckets. */
  readonly buckets: readonly string[];
  /** Declares that the fault affects only these buckets. Calls for other buckets must always get decisions. */
  limitTo(names: ReadonlySet<string>): void;
  /** Declares that Redis may lose these buckets, for a fault that does not affect all buckets. */
  markPossiblyLost(names: ReadonlySet<string>): void;
  /**
   * Measures how many tokens Redis lost. From now on, Redis must not lose more. If a fault does not call this function,
   * the loss is measured at the end of the fault.
   */
  measureLoss(): Promise<void>;
  /**
   * Records the buckets of a Redis node that was just promoted. The node must not allow more than these tokens, unless
   * another node is promoted before the fault ends.
   */
  recordPromotion(): Promise<void>;
  /** Waits until every connection got a decision after Redis became available. The recovery time ends here. */
  waitForDecisions(): Promise<void>;
  /** Returns the number of calls without a decision from Redis since the start of the fault. */
  undecidedCalls(): number;
  /** Steps the wall clock of weir's processes. Resolves with the number of processes. */
  stepWeirClock(offsetMs: number): Promise<number>;
}

/** Maximum recovery time after a fault that drops all packets, because connection attempts time out after a second. */
export const RECOVERY_AFTER_DROPS_MS = 2000;

/** A kind of fault. */
export interface Fault<T extends Topology = Topology> {
  readonly name: string;
  /** Name of the events that count as effects of the fault. */
  readonly effect: string;
  /** Whether Redis may lose all buckets. */
  readonly losesBuckets?: boolean;
  /** Whether the clock of Redis is set, so that holds expire at another time. */
  readonly stepsClock?: boolean;
  /** Maximum recovery time in milliseconds, if it is not a second. */
  readonly maxRecoveryMs?: number;
  /** Causes and ends the fault. Resolves with the number of effects. */
  run(context: FaultContext<T>): Promise<number>;
}
