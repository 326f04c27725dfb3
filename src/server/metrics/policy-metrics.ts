import type { LoadingPolicyProvider } from '../../config/policy-provider.js';
import type { Metrics } from '../../telemetry/metrics.js';

/** Shows in `metrics` how loading policies goes, the load at start included: for the process that reads them. */
export function measurePolicies(metrics: Metrics, policies: LoadingPolicyProvider): void {
  metrics.domainStates(() => policies.domains());
  const failed = policies.errors().length > 0;
  // Without a policy and without an error there is nothing yet: the management server has not said anything.
  if (failed || policies.current() !== undefined) metrics.loaded(!failed);
  policies.onReload((success) => metrics.reloaded(success));
}
