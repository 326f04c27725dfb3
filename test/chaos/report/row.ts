import type { TopologyName } from '../topology/topology.js';

/** What became of a fault, all the times it was done in a run. Times in milliseconds. */
export interface Row {
  readonly fault: string;
  readonly topology: TopologyName;
  /** What is counted in `bites`. */
  readonly counts: string;
  times: number;
  bites: number;
  calls: number;
  late: number;
  /** Answered by `on_store_failure`. */
  byPolicy: number;
  /** OVER_LIMIT without a look: there was no time, or no room. */
  unseen: number;
  /** Tokens admitted beyond capacity and filling, for any reason. */
  beyond: number;
  /** Tokens of buckets that Redis had lost: what may have been admitted beyond them. */
  given: number;
  /** The longest from when Redis served again to a decision on every connection. */
  recoveryMs: number;
}

/** A row of a fault that was not done yet. */
export function emptyRow(topology: TopologyName, fault: string, counts: string): Row {
  return {
    ...{ fault, topology, counts, times: 0, bites: 0, calls: 0, late: 0, byPolicy: 0 },
    unseen: 0,
    ...{ beyond: 0, given: 0, recoveryMs: 0 },
  };
}
