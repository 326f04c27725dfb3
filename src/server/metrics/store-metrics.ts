import type { StoreNode } from '../../admin/health-detail.js';
import type { LocalChargeStats } from '../../storage/local/local-buckets.js';
import type { GiveBackStats } from '../../storage/sharded/give-backs.js';
import { byName, type FamilyRegistry } from '../../telemetry/family-registry.js';
import { REDIS_ROLE } from '../../telemetry/label-meanings.js';

type ChargeResult = Exclude<keyof LocalChargeStats, 'waiting'>;
const CHARGE_RESULTS: Readonly<Record<ChargeResult, string>> = {
  charged: 'weir took the allowed hits from the bucket in Redis, at most until the bucket was empty',
  lapsed: 'the bucket refilled, or the window ended, before Redis was available',
  forgotten: 'lost, because there was no room or the process ended before Redis was available',
};
const GIVE_BACK_RESULTS: Readonly<Record<keyof GiveBackStats, string>> = {
  made: 'returned',
  failed: 'Redis returned an error or did not answer, so the tokens may have been returned',
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
      help: 'Buckets used by `on_store_failure: local` whose charges wait for Redis.',
    },
    () => store.localChargeStats().waiting,
  );
  registry.counter(
    {
      name: 'weir_local_charges_total',
      help: 'Charges for buckets used by `on_store_failure: local`, by result.',
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
        'Attempts to return tokens to a Redis or slot after another Redis or slot denied the request or ' +
        'failed, by result.',
      labels: { result: { meaning: 'The result.', values: GIVE_BACK_RESULTS } },
    },
    () => byName('result', store.giveBackStats()),
  );
  registry.gauge(
    {
      name: 'weir_redis_node_up',
      help: '1 if this Redis, or this master of a Redis Cluster, can decide requests, otherwise 0.',
      aggregator: 'min',
      labels: { redis: REDIS_ROLE, node: { meaning: 'The address.' } },
    },
    () => store.nodes().map(({ redis, name, up }) => [{ redis, node: name }, Number(up)]),
  );
}
