import type { LoadingPolicyProvider } from '../../config/policy-provider.js';
import { isPlanAddress } from '../../config/sources/plan-address.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import type { FamilyRegistry } from '../../telemetry/family-registry.js';
import { KNOWN_DOMAIN, PLAN_SOURCE, SOURCE_FAULT } from '../../telemetry/label-meanings.js';

/** Exposes the rows of `plans`, and the age of their sources. */
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
      help: 'Time since rows in Redis were last known to be current, or that weir has been waiting for a valid table.',
      labels: { source: PLAN_SOURCE },
    },
    function* () {
      for (const [source, seconds] of sources?.ages() ?? []) yield [{ source }, seconds];
      for (const { plans } of tables()) {
        const isMissing = plans.file !== '' && plans.rowCount === 0 && !isPlanAddress(plans.file);
        if (isMissing) yield [{ source: plans.file }, (Date.now() - plans.readAtMillis) / 1000];
      }
    },
  );
  registry.counter(
    {
      name: 'weir_plan_source_failures_total',
      help: 'Failed attempts to read rows from Redis.',
      labels: { source: PLAN_SOURCE, reason: SOURCE_FAULT },
    },
    function* () {
      for (const [source, reason, count] of sources?.failures() ?? []) yield [{ source, reason }, count];
    },
  );
}
