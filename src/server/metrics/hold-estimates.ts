import type { RuleEstimate } from '../../service/holds/learned-estimates.js';
import type { FamilyRegistry } from '../../telemetry/family-registry.js';
import { KNOWN_DOMAIN } from '../../telemetry/label-meanings.js';

const RULE = { meaning: "The rule's path, as `weir explain` shows it." };

/** Exposes the estimates that rules have learned, for at most `maxSeries` rules. */
export function exposeEstimates(
  registry: FamilyRegistry,
  estimates: { readonly current: () => Iterable<RuleEstimate> },
  maxSeries: number,
): void {
  registry.gauge(
    {
      name: 'weir_hold_estimate_hits',
      help:
        'Current estimate of a rule with `learned`, in hits, over all buckets that this process knows, by domain ' +
        'and rule.',
      aggregator: 'max',
      labels: { domain: KNOWN_DOMAIN, rule: RULE },
    },
    function* () {
      let series = 0;
      for (const { domain, rule, hits } of estimates.current()) {
        if (series++ === maxSeries) return;
        yield [{ domain, rule }, hits];
      }
    },
  );
}
