import type { Random } from '../../fuzz/random.js';
import type { Topology } from '../topology/topology.js';

/** What a fault can do and see. */
export interface Stage<T extends Topology = Topology> {
  readonly topology: T;
  /** All choices come from it. */
  readonly random: Random;
  /** A length of time between two, in milliseconds; shorter in the short form. */
  lasting(fromMs: number, toMs: number): number;
  sleep(ms: number): Promise<void>;
  /** From now on Redis decides again, or from `atMs` on: recovery counts from here. */
  serves(atMs?: number): void;
  /** Names of all buckets. */
  readonly buckets: readonly string[];
  /** Only these buckets are struck: calls for others must be decided all the time. */
  strikes(names: ReadonlySet<string>): void;
  /** These buckets may be lost from now on. For a fault that does not lose those of all. */
  loseBuckets(names: ReadonlySet<string>): void;
  /**
   * Looks at what Redis has of the buckets: nothing is lost from here on. A fault that may lose some and does not look
   * is looked at when it is over.
   */
  findBuckets(): Promise<void>;
  /**
   * Looks at what a Redis has of the buckets that was promoted just now: no more may be given from here on, unless
   * another one is promoted before the fault is over.
   */
  notePromotion(): Promise<void>;
  /** Resolves when every connection has had a decision since Redis served again: recovery ends here. */
  untilDecided(): Promise<void>;
  /** Calls that weir answered without a decision of Redis since the fault began. */
  answeredByPolicy(): number;
  /** Makes the wall clock of weir's processes step; resolves with how many have done so. */
  stepWeirClock(offsetMs: number): Promise<number>;
}

/** Connections that are made while every packet vanishes are given up after a second. */
export const AFTER_SILENCE_MS = 2000;

/** One way in which things go wrong. */
export interface Fault<T extends Topology = Topology> {
  readonly name: string;
  /** What of it is counted as having bitten. */
  readonly counts: string;
  /** Whether any bucket may be lost by it: how many tokens is found out by {@link Stage.findBuckets}. */
  readonly loses?: boolean;
  /** Longest until decisions are back, in milliseconds, where that is not a second. */
  readonly recoveryMs?: number;
  /** Does it and ends it. Resolves with how often it bit. */
  run(stage: Stage<T>): Promise<number>;
}
