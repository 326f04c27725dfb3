import type { RedisNode } from './redis-node.js';

/** Redis processes, and the variables with which weir connects to them. */
export interface Topology {
  readonly name: TopologyName;
  /** Environment variables for weir. */
  readonly env: NodeJS.ProcessEnv;
  /** Whether several nodes serve the buckets, so that weir divides requests into partitions. */
  readonly isSharded: boolean;
  /** Returns the node that serves each of these buckets now, without buckets that no node serves. */
  nodesOf(buckets: readonly string[]): Promise<ReadonlyMap<string, RedisNode>>;
  /** Returns a number that changes with each failover, for servers that may fail over more often than the test asks. */
  failoverEpoch?(): Promise<number>;
  stop(): Promise<void>;
}

/** Returns {@link Topology.nodesOf} if `node` serves all buckets. */
export function allBucketsOn(node: RedisNode, buckets: readonly string[]): ReadonlyMap<string, RedisNode> {
  return new Map(buckets.map((bucket) => [bucket, node]));
}

const TOPOLOGIES = ['single', 'sentinel', 'cluster', 'stepping-clock'] as const;
export type TopologyName = (typeof TOPOLOGIES)[number];
