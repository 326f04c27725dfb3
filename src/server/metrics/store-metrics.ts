import type { StoreNode } from '../../admin/health-detail.js';
import type { GiveBackStats } from '../../storage/sharded/give-backs.js';
import { byName, type FamilyRegistry } from '../../telemetry/family-registry.js';
import { REDIS_ROLE } from '../../telemetry/label-meanings.js';

const GIVE_BACK_RESULTS: Readonly<Record<keyof GiveBackStats, string>> = {
  made: 'returned',
  failed: 'Redis returned an error or did not answer, so the tokens may or may not have been returned',
  skipped: 'not sent, because the connection was lost',
};

/** The state of a store that {@link exposeStore} shows. */
export interface ShownStore {
  giveBackStats(): GiveBackStats;
  /** Servers that store buckets. */
  nodes(): readonly StoreNode[];
}

/** Exposes the state of the store, and the results of tokens given back. */
export function exposeStore(registry: FamilyRegistry, store: ShownStore): void {
  registry.counter(
    {
      name: 'weir_redis_give_backs_total',
      help:
        'Attempts to return tokens to a Redis server or slot after another Redis server or slot denied ' +
        'the request or failed, by result.',
      labels: { result: { meaning: 'The result.', values: GIVE_BACK_RESULTS } },
    },
    () => byName('result', store.giveBackStats()),
  );
  registry.gauge(
    {
      name: 'weir_redis_node_up',
      help: '1 if this Redis server or Redis Cluster master can decide requests, otherwise 0.',
      aggregator: 'min',
      labels: { redis: REDIS_ROLE, node: { meaning: "The server's address." } },
    },
    () => store.nodes().map(({ redis, name, up }) => [{ redis, node: name }, Number(up)]),
  );
}
