import { BoundedCounters, type SeriesBudget } from './bounded-counters.js';
import { countedFamily } from './counted-family.js';
import type { FamilyRegistry } from './family-registry.js';
import { DOMAIN, RULE } from './label-meanings.js';

/** Counts `weir_spilled_total`: descriptors that did not fit into a limit, and for which the limit in `then` paid. */
export class SpillCounts {
  readonly #counts: BoundedCounters;

  /** @param limit number of series by rule */
  constructor(limit: SeriesBudget, registry: FamilyRegistry) {
    const counts = new BoundedCounters(limit, 1);
    this.#counts = counts;
    registry.addFamily(
      countedFamily({
        name: 'weir_spilled_total',
        help: 'Allowed descriptors that did not fit into a limit with "then", by domain and rule.',
        labels: ['domain', 'rule'],
        meanings: { domain: DOMAIN, rule: RULE },
        counts,
        numbers: (values) => [['', values[0] ?? 0]],
      }),
    );
  }

  /** Counts a descriptor. */
  readonly spilled = (domain: string, rule: string): void => {
    this.#counts.increment(domain, rule, 0);
  };
}
