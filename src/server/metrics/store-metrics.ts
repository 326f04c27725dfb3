import type { StoreNode } from '../../admin/health-detail.js';
import type { LocalChargeStats } from '../../storage/local/local-buckets.js';
import type { GiveBackStats } from '../../storage/sharded/give-backs.js';
import { byName, type FamilyRegistry } from '../../telemetry/family-registry.js';
import { REDIS_ROLE } from '../../telemetry/label-meanings.js';

type ChargeResult = Exclude<keyof LocalChargeStats, 'waiting'>;
const CHARGE_RESULTS: Readonly<Record<ChargeResult, string>> = {
  charged: 'what was admitted was taken from the bucket in Redis, as far as it held so much',
  lapsed: 'the bucket had time enough to refill, or its window ended, before Redis was back',
  forgotten: 'there was no room to remember it, or the process ended before Redis was back',
};
const GIVE_BACK_RESULTS: Readonly<Record<keyof GiveBackStats, string>> = {
  made: 'it is back',
  failed: 'a Redis refused it, or did not answer: it may have it back',
  skipped: 'it was not sent, because the connection on which it was taken was lost',
};

/** What {@link exposeStore} shows of a store. */
export interface ShownStore {
  localChargeStats(): LocalChargeStats;
  giveBackStats(): GiveBackStats;
  /** The servers that buckets lie on. */
  nodes(): readonly StoreNode[];
}

/** Shows how the store stands, and what became of what it took elsewhere. */
export function exposeStore(registry: FamilyRegistry, store: ShownStore): void {
  registry.gauge(
    {
      name: 'weir_local_charges_waiting',
      help: 'Buckets that `on_store_failure: local` took from, and that are to be charged once Redis is back.',
    },
    () => store.localChargeStats().waiting,
  );
  registry.counter(
    {
      name: 'weir_local_charges_total',
      help: 'Buckets that `on_store_failure: local` took from, by what became of their charges.',
      labels: { result: { meaning: 'What became of the charge.', values: CHARGE_RESULTS } },
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
        'Requests to two Redis, or to several slots, of which one denied them, or failed, after another one had let ' +
        'them pass, by what became of what they had taken there.',
      labels: { result: { meaning: 'What became of it.', values: GIVE_BACK_RESULTS } },
    },
    () => byName('result', store.giveBackStats()),
  );
  registry.gauge(
    {
      name: 'weir_redis_node_up',
      help: 'Whether this server decides now, for each Redis, or each master of a Redis Cluster.',
      aggregator: 'min',
      labels: { redis: REDIS_ROLE, node: { meaning: 'Its address.' } },
    },
    () => store.nodes().map(({ redis, name, up }) => [{ redis, node: name }, Number(up)]),
  );
}
