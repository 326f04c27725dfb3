import type { RedisRole } from '../limiter/failure-policy.js';
import type { RedisNodeState } from '../storage/redis/redis-backend.js';

/** A server that stores buckets. */
export interface StoreNode extends RedisNodeState {
  readonly redis: RedisRole;
}

/** Whether this server should get requests. */
export interface HealthVerdict {
  readonly status: 'SERVING' | 'NOT_SERVING';
  /** Reason; undefined if the status is SERVING. */
  readonly reason?: string;
}

/**
 * Data of `/healthcheck?detail` except policies. It contains no rules, because PORT may be open to more people than the
 * policies.
 */
export interface HealthDetail extends HealthVerdict {
  readonly version: string;
  readonly uptimeSeconds: number;
  readonly store: string;
  readonly storeUp: boolean;
  /** Servers that store buckets; absent in memory. */
  readonly redis?: readonly Pick<StoreNode, 'redis' | 'name' | 'up'>[];
  /** With WORKERS above 1, one element per worker. */
  readonly workers?: readonly {
    readonly id: number;
    readonly pid: number;
    readonly status: 'SERVING' | 'NOT_SERVING';
    readonly storeUp: boolean;
    /** Version of the policies in effect, or `none`; absent until the worker's ports are open. */
    readonly policy?: string;
    readonly redis?: readonly Pick<StoreNode, 'redis' | 'name' | 'up'>[];
    /** Seconds since the worker stopped answering; absent while it answers. */
    readonly silentSeconds?: number;
  }[];
}

/** Fields of {@link HealthDetail} from the part of weir that decides. */
export type CoreHealthDetail = Pick<HealthDetail, 'store' | 'storeUp' | 'redis' | 'workers'>;

/** A worker whose policies differ from those that the debug port shows, and their version. */
export interface DifferingWorker {
  readonly id: number;
  readonly policy: string;
}

/** Returns the workers that have other policies than `version`. They load the policies again within seconds. */
export function differingWorkers(
  { workers = [] }: Pick<HealthDetail, 'workers'>,
  version: string,
): readonly DifferingWorker[] {
  return workers.flatMap(({ id, policy = version }) => (policy === version ? [] : { id, policy }));
}

/** Empty with buckets in memory. */
export function redisDetail(nodes: readonly StoreNode[]): Pick<HealthDetail, 'redis'> {
  return nodes.length === 0 ? {} : { redis: nodes.map(({ redis, name, up }) => ({ redis, name, up })) };
}
