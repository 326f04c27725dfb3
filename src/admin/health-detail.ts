import type { RedisRole } from '../limiter/store-fault.js';
import type { RedisNodeState } from '../storage/redis/redis-buckets.js';

/** A server that buckets lie on. */
export interface StoreNode extends RedisNodeState {
  readonly redis: RedisRole;
}

/** Whether this server should get requests. */
export interface HealthVerdict {
  readonly status: 'SERVING' | 'NOT_SERVING';
  /** Why not; absent when SERVING. */
  readonly reason?: string;
}

/**
 * What `/healthcheck?detail` shows beside the policy. Rules are not in it: PORT may be open to more people than the
 * policy is.
 */
export interface HealthDetail extends HealthVerdict {
  readonly version: string;
  readonly uptimeSeconds: number;
  readonly store: string;
  readonly storeUp: boolean;
  /** Each server that buckets lie on; absent in memory. */
  readonly redis?: readonly Pick<StoreNode, 'redis' | 'name' | 'up'>[];
  /** With WORKERS above 1, one each. */
  readonly workers?: readonly {
    readonly id: number;
    readonly pid: number;
    readonly status: 'SERVING' | 'NOT_SERVING';
    readonly storeUp: boolean;
    readonly redis?: readonly Pick<StoreNode, 'redis' | 'name' | 'up'>[];
    /** How long it has not answered; absent while it does. */
    readonly silentSeconds?: number;
  }[];
}

/** What a process that decides says of itself for {@link HealthDetail}. */
export type CoreHealthDetail = Pick<HealthDetail, 'store' | 'storeUp' | 'redis' | 'workers'>;

/** The part of {@link HealthDetail} about servers; nothing in memory. */
export function redisDetail(nodes: readonly StoreNode[]): Pick<HealthDetail, 'redis'> {
  return nodes.length === 0 ? {} : { redis: nodes.map(({ redis, name, up }) => ({ redis, name, up })) };
}
