import type { RedisNode } from './redis-node.js';

/** Redis processes, and how weir is told of them. */
export interface Topology {
  readonly name: TopologyName;
  /** Settings of weir. */
  readonly env: NodeJS.ProcessEnv;
  /** The Redis that decides now. */
  readonly master: RedisNode;
  stop(): Promise<void>;
}

export const TOPOLOGIES = ['single', 'sentinel', 'stepping-clock'] as const;
export type TopologyName = (typeof TOPOLOGIES)[number];
