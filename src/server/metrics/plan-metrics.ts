import type { LoadingPolicyProvider } from '../../config/policy-provider.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import type { FamilyRegistry } from '../../telemetry/family-registry.js';
import { KNOWN_DOMAIN, PLAN_SOURCE, SOURCE_FAULT } from '../../telemetry/label-meanings.js';

/** Exposes the rows of `plans`, and the addresses that they come from. */
export function exposePlans(
  registry: FamilyRegistry,
  policies: Pick<LoadingPolicyProvider, 'current' | 'sources'>,
): void {
  const { sources } = policies;
  function* tables(): Generator<{ readonly domain: string; readonly plans: PlanTable }> {
    for (const [domain, { plans }] of policies.current()?.domains ?? []) {
      if (plans !== undefined) yield { domain, plans };
    }
  }
  registry.gauge(
    {
      name: 'weir_plan_rows',
      help: 'Rows of the table of plans that is in effect.',
      labels: { domain: KNOWN_DOMAIN },
    },
    function* () {
      for (const { domain, plans } of tables()) yield [{ domain }, plans.rowCount];
    },
  );
  registry.gauge(
    {
      name: 'weir_plan_refused_rows',
      help: 'Invalid rows of the table of plans. Their customers keep their previous values.',
      labels: { domain: KNOWN_DOMAIN },
    },
    function* () {
      for (const { domain, plans } of tables()) yield [{ domain }, plans.refused];
    },
  );
  registry.gauge(
    {
      name: 'weir_plan_source_age_seconds',
      help: 'Time since the rows from an address were last known to be current, or since weir began to ask.',
      labels: { source: PLAN_SOURCE },
    },
    function* () {
      for (const [source, seconds] of sources?.ages() ?? []) yield [{ source }, seconds];
    },
  );
  registry.counter(
    {
      name: 'weir_plan_source_failures_total',
      help: 'Failed attempts to read the rows from an address.',
      labels: { source: PLAN_SOURCE, reason: SOURCE_FAULT },
    },
    function* () {
      for (const [source, reason, count] of sources?.failures() ?? []) yield [{ source, reason }, count];
    },
  );
}
