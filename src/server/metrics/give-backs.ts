import { Counter } from '@prometheus-io/client';
import type { GiveBackStats } from '../../storage/sharded/give-backs.js';
import type { FamilyRegistry } from '../../telemetry/family-registry.js';

const RESULTS: Readonly<Record<keyof GiveBackStats, string>> = {
  made: 'it is back',
  failed: 'a Redis refused it, or did not answer: it may have it back',
  skipped: 'it was not sent, because the connection on which it was taken was lost',
};

/** Makes a metric of what `stats` says whenever metrics are asked for. */
export function exposeGiveBacks(registry: FamilyRegistry, stats: () => GiveBackStats): void {
  const name = 'weir_redis_give_backs_total';
  new Counter({
    name,
    help:
      'Requests to two Redis, or to several slots, of which one denied them, or failed, after another one had let ' +
      'them pass, by what became of what they had taken there.',
    labelNames: registry.labels(name, { result: { meaning: 'What became of it.', values: RESULTS } }),
    registers: [registry.client],
    collect() {
      this.reset();
      for (const [result, count] of Object.entries(stats())) this.inc({ result }, count);
    },
  });
}
