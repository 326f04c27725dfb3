import type { RedisNode } from './redis-node.js';

/** Redis processes, and how weir is told of them. */
export interface Topology {
  readonly name: TopologyName;
  /** Settings of weir. */
  readonly env: NodeJS.ProcessEnv;
  /** Whether buckets are spread over several Redises, so that a request is taken in parts. */
  readonly isSharded: boolean;
  /** The Redis that decides about each of these buckets now; those about which none does are missing. */
  decidersOf(buckets: readonly string[]): Promise<ReadonlyMap<string, RedisNode>>;
  stop(): Promise<void>;
}

/** {@link Topology.decidersOf} where one decides about all. */
export function decidedBy(node: RedisNode, buckets: readonly string[]): ReadonlyMap<string, RedisNode> {
  return new Map(buckets.map((bucket) => [bucket, node]));
}

export const TOPOLOGIES = ['single', 'sentinel', 'cluster', 'stepping-clock'] as const;
export type TopologyName = (typeof TOPOLOGIES)[number];
