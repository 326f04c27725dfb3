import type { TopologyName } from '../topology/topology.js';

/** Results of a fault over a whole run. Times are in milliseconds. */
export interface Row {
  readonly fault: string;
  readonly topology: TopologyName;
  /** Name of the events counted in `bites`. */
  readonly counts: string;
  times: number;
  bites: number;
  calls: number;
  late: number;
  /** Answered by `on_store_failure`. */
  byPolicy: number;
  /** OVER_LIMIT without a decision, because there was no time or capacity. */
  unseen: number;
  /** Tokens allowed beyond capacity and refills, for any reason. */
  beyond: number;
  /** Tokens of buckets that Redis lost, which may have been allowed again. */
  given: number;
  /** Longest time from the return of Redis to a decision on every connection. */
  recoveryMs: number;
}

/** Returns an empty row for a fault. */
export function emptyRow(topology: TopologyName, fault: string, counts: string): Row {
  return {
    ...{ fault, topology, counts, times: 0, bites: 0, calls: 0, late: 0, byPolicy: 0 },
    unseen: 0,
    ...{ beyond: 0, given: 0, recoveryMs: 0 },
  };
}
