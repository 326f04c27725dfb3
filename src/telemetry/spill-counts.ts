import type { SeriesBudget } from './bounded-counters.js';
import { countedByRule } from './counted-family.js';
import type { FamilyRegistry } from './family-registry.js';

/** Counts descriptors that did not fit into a limit, and for which the limit in `then` paid: `weir_spilled_total`. */
export function spillCounter(
  limit: SeriesBudget,
  registry: FamilyRegistry,
): (domain: string, rule: string) => void {
  const count = countedByRule(registry, limit, 1, {
    name: 'weir_spilled_total',
    help: 'Allowed descriptors that did not fit into a limit with "then", by domain and rule.',
    numbers: (values) => [['', values[0] ?? 0]],
  });
  return (domain, rule) => count(domain, rule, 0);
}
