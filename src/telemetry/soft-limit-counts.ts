import type { SeriesBudget } from './bounded-counters.js';
import { countedByRule } from './counted-family.js';
import type { FamilyRegistry } from './family-registry.js';
import type { LabelMeaning } from './label-meanings.js';

const MARKED: LabelMeaning = {
  meaning: 'Whether the request got the headers and the metadata of `on_over`.',
  values: {
    false: 'the request was not marked: monitoring, a grace period, shadow mode or enforce_percent',
    true: 'the request was marked',
  },
};

/** Counts descriptors over a soft limit whose request passed: `weir_soft_limit_exceeded_total`. */
export function softLimitCounter(
  limit: SeriesBudget,
  registry: FamilyRegistry,
): (domain: string, rule: string, marked: boolean) => void {
  const count = countedByRule(registry, limit, 2, {
    name: 'weir_soft_limit_exceeded_total',
    help:
      'Descriptors over a soft limit whose request passed, by domain, rule and whether the request was ' +
      'marked.',
    meanings: { marked: MARKED },
    numbers: (values) => [
      ['marked="false"', values[0] ?? 0],
      ['marked="true"', values[1] ?? 0],
    ],
  });
  return (domain, rule, marked) => count(domain, rule, marked ? 1 : 0);
}
