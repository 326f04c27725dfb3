import type { TopologyName } from '../topology/topology.js';

/** Results of a fault over a whole run. Times are in milliseconds. */
export interface Row {
  readonly fault: string;
  readonly topology: TopologyName;
  /** Name of the events that `effects` counts. */
  readonly effect: string;
  /** Number of times that the fault was caused. */
  runs: number;
  effects: number;
  calls: number;
  /** Answers after the caller's deadline. */
  late: number;
  /** Calls answered by `on_store_failure`. */
  byPolicy: number;
  /** OVER_LIMIT answers without a decision, because weir had no time or capacity. */
  undecidedDenials: number;
  /** Tokens allowed beyond capacity and refills, for any reason. */
  excessTokens: number;
  /** Tokens of buckets that Redis lost, which may have been allowed again. */
  lostTokens: number;
  /** Maximum time until every connection got a decision after Redis became available. */
  recoveryMs: number;
}

/** Returns an empty row for a fault. */
export function emptyRow(topology: TopologyName, fault: string, effect: string): Row {
  return {
    ...{ fault, topology, effect, runs: 0, effects: 0, calls: 0, late: 0, byPolicy: 0 },
    undecidedDenials: 0,
    ...{ excessTokens: 0, lostTokens: 0, recoveryMs: 0 },
  };
}
