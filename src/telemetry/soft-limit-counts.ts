import { BoundedCounters, type SeriesBudget } from './bounded-counters.js';
import { countedFamily } from './counted-family.js';
import type { FamilyRegistry } from './family-registry.js';
import { DOMAIN, type LabelMeaning, RULE } from './label-meanings.js';

const MARKED: LabelMeaning = {
  meaning: 'Whether the request got the headers and the metadata of `on_over`.',
  values: {
    false: 'the request was not marked: monitoring, a grace period, shadow mode or enforce_percent',
    true: 'the request was marked',
  },
};

/** Counts `weir_soft_limit_exceeded_total`: descriptors over a soft limit whose request passed. */
export class SoftLimitCounts {
  readonly #counts: BoundedCounters;

  /** @param limit number of series by rule */
  constructor(limit: SeriesBudget, registry: FamilyRegistry) {
    const counts = new BoundedCounters(limit, 2);
    this.#counts = counts;
    registry.addFamily(
      countedFamily({
        name: 'weir_soft_limit_exceeded_total',
        help:
          'Descriptors over a soft limit whose request passed, by domain, rule and whether the request was ' +
          'marked.',
        labels: ['domain', 'rule'],
        meanings: { domain: DOMAIN, rule: RULE, marked: MARKED },
        counts,
        numbers: (values) => [
          ['marked="false"', values[0] ?? 0],
          ['marked="true"', values[1] ?? 0],
        ],
      }),
    );
  }

  /** Counts a descriptor. */
  readonly passed = (domain: string, rule: string, marked: boolean): void => {
    this.#counts.increment(domain, rule, marked ? 1 : 0);
  };
}
