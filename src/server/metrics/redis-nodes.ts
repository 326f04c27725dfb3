import { Gauge } from '@prometheus-io/client';
import type { StoreNode } from '../../admin/health-detail.js';
import type { FamilyRegistry } from '../../telemetry/family-registry.js';
import { REDIS_ROLE } from '../../telemetry/label-meanings.js';

/** Makes a metric of the servers that buckets lie on whenever metrics are asked for. */
export function exposeRedisNodes(registry: FamilyRegistry, nodes: () => readonly StoreNode[]): void {
  const name = 'weir_redis_node_up';
  new Gauge({
    name,
    help: 'Whether this server decides now, for each Redis, or each master of a Redis Cluster.',
    labelNames: registry.labels(name, {
      redis: REDIS_ROLE,
      node: { meaning: 'Its address.' },
    }),
    registers: [registry.client],
    aggregator: 'min',
    collect() {
      this.reset();
      for (const { redis, name: node, up } of nodes()) this.set({ redis, node }, up ? 1 : 0);
    },
  });
}
