import type { Random } from '../../fuzz/random.js';
import type { Topology } from '../topology/topology.js';

/** Actions and observations of a fault. */
export interface Stage<T extends Topology = Topology> {
  readonly topology: T;
  /** Source of all random choices. */
  readonly random: Random;
  /** Returns a duration between two bounds, in milliseconds; shorter in the short form. */
  lasting(fromMs: number, toMs: number): number;
  sleep(ms: number): Promise<void>;
  /** Redis decides again from now on, or from `atMs` on. Recovery is measured from here. */
  serves(atMs?: number): void;
  /** Names of all buckets. */
  readonly buckets: readonly string[];
  /** Limits the fault to these buckets. Calls for others must be decided all the time. */
  strikes(names: ReadonlySet<string>): void;
  /** Marks these buckets as possibly lost. For a fault that does not lose all buckets. */
  loseBuckets(names: ReadonlySet<string>): void;
  /**
   * Checks the buckets in Redis; nothing may be lost from here on. A fault that may lose buckets and does not call this
   * is checked at its end.
   */
  findBuckets(): Promise<void>;
  /**
   * Checks the buckets of a Redis that was just promoted. It may not allow more from here on, unless another Redis is
   * promoted before the fault ends.
   */
  notePromotion(): Promise<void>;
  /** Resolves when every connection has had a decision since Redis served again. Recovery ends here. */
  untilDecided(): Promise<void>;
  /** Number of calls that weir answered without a decision of Redis since the fault began. */
  answeredByPolicy(): number;
  /** Steps the wall clock of weir's processes; resolves with the number of processes that did. */
  stepWeirClock(offsetMs: number): Promise<number>;
}

/** Connection attempts without any answer time out after a second. */
export const AFTER_SILENCE_MS = 2000;

/** A kind of fault. */
export interface Fault<T extends Topology = Topology> {
  readonly name: string;
  /** Name of the events that count as effects of the fault. */
  readonly counts: string;
  /** Whether the fault may lose buckets. {@link Stage.findBuckets} finds out how many tokens. */
  readonly loses?: boolean;
  /** Maximum recovery time in milliseconds, if it is not a second. */
  readonly recoveryMs?: number;
  /** Causes and ends the fault. Resolves with the number of its effects. */
  run(stage: Stage<T>): Promise<number>;
}
