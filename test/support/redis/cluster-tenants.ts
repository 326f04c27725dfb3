import type { Take } from '../../../src/limiter/bucket-store.js';
import type { Rate } from '../../../src/limiter/rate.js';
import { DEFAULT_KEY_PREFIX, RedisKeys } from '../../../src/storage/redis/redis-key.js';
import { type ItemOptions, takeItem } from '../limiter/take-items.js';
import type { RedisCluster } from './cluster.js';
import type { ClusterNode } from './cluster-node.js';
import { servesSlot } from './cluster-view.js';

const keys = new RedisKeys(DEFAULT_KEY_PREFIX);
let tenants = 0;

/** Returns the slot of all buckets of a tenant. */
export function slotOfTenant(tenant: string): number {
  return keys.slotOf({ key: tenant, hashTagLength: tenant.length } as Take);
}

/** Returns an item on a bucket of a tenant. */
export function itemOf(tenant: string, bucket: string, rate: Rate, options?: ItemOptions): Take {
  return { ...takeItem(tenant + bucket, rate, options), hashTagLength: tenant.length };
}

/** Returns a new tenant whose slot the node serves. */
export async function tenantOn(node: ClusterNode): Promise<string> {
  const own = (await node.view()).find(({ isMyself }) => isMyself);
  for (;;) {
    const tenant = `tenant ${++tenants} `;
    if (own !== undefined && servesSlot(own, slotOfTenant(tenant))) return tenant;
  }
}

/** Returns a {@link tenantOn} each master. */
export async function tenantsOnAll(cluster: RedisCluster): Promise<string[]> {
  return Promise.all((await cluster.masters()).map(tenantOn));
}
