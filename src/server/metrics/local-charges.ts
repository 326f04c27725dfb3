import { Counter, Gauge } from '@prometheus-io/client';
import type { LocalChargeStats } from '../../storage/local/local-buckets.js';
import type { FamilyRegistry } from '../../telemetry/family-registry.js';

const RESULTS: Readonly<Record<Exclude<keyof LocalChargeStats, 'waiting'>, string>> = {
  charged: 'what was admitted was taken from the bucket in Redis, as far as it held so much',
  lapsed: 'the bucket had time enough to refill, or its window ended, before Redis was back',
  forgotten: 'there was no room to remember it, or the process ended before Redis was back',
};

/** Makes metrics of what `stats` says whenever metrics are asked for. */
export function exposeLocalCharges(registry: FamilyRegistry, stats: () => LocalChargeStats): void {
  const registers = [registry.client];
  new Gauge({
    name: 'weir_local_charges_waiting',
    help: 'Buckets that `on_store_failure: local` took from, and that are to be charged once Redis is back.',
    registers,
    collect() {
      this.set(stats().waiting);
    },
  });
  const name = 'weir_local_charges_total';
  new Counter({
    name,
    help: 'Buckets that `on_store_failure: local` took from, by what became of their charges.',
    labelNames: registry.labels(name, { result: { meaning: 'What became of the charge.', values: RESULTS } }),
    registers,
    collect() {
      const { waiting: _, ...counts } = stats();
      this.reset();
      for (const [result, count] of Object.entries(counts)) this.inc({ result }, count);
    },
  });
}
