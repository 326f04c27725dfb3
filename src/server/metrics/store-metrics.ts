import type { StoreNode } from '../../admin/health-detail.js';
import type { LocalChargeStats } from '../../storage/local/local-buckets.js';
import type { GiveBackStats } from '../../storage/sharded/give-backs.js';
import { byName, type FamilyRegistry } from '../../telemetry/family-registry.js';
import { REDIS_ROLE } from '../../telemetry/label-meanings.js';

type ChargeResult = Exclude<keyof LocalChargeStats, 'waiting'>;
const CHARGE_RESULTS: Readonly<Record<ChargeResult, string>> = {
  charged:
    'weir took the locally allowed hits from the bucket in Redis, but no more than the bucket had remaining',
  lapsed: 'the bucket refilled, or the window ended, before Redis was available again',
  forgotten:
    'lost, because too many charges were waiting or the process exited before Redis was available again',
};
const GIVE_BACK_RESULTS: Readonly<Record<keyof GiveBackStats, string>> = {
  made: 'returned',
  failed: 'Redis returned an error or did not answer, so the tokens may or may not have been returned',
  skipped: 'not sent, because the connection was lost',
};

/** The state of a store that {@link exposeStore} shows. */
export interface ShownStore {
  localChargeStats(): LocalChargeStats;
  giveBackStats(): GiveBackStats;
  /** Servers that store buckets. */
  nodes(): readonly StoreNode[];
}

/** Exposes the state of the store, and the results of local charges and of tokens given back. */
export function exposeStore(registry: FamilyRegistry, store: ShownStore): void {
  registry.gauge(
    {
      name: 'weir_local_charges_waiting',
      help: 'Buckets with charges from `on_store_failure: local` that wait for Redis.',
    },
    () => store.localChargeStats().waiting,
  );
  registry.counter(
    {
      name: 'weir_local_charges_total',
      help: 'Charges from `on_store_failure: local`, by result.',
      labels: { result: { meaning: 'The result of the charge.', values: CHARGE_RESULTS } },
    },
    () => {
      const { waiting: _, ...counts } = store.localChargeStats();
      return byName('result', counts);
    },
  );
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
