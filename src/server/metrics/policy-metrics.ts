import type { LoadingPolicyProvider } from '../../config/policy-provider.js';
import type { Metrics } from '../../telemetry/metrics.js';
import { exposePlans } from './plan-metrics.js';

/** Counts policy loads, including the first one, in the metrics of the process that loads them. */
export function measurePolicies(metrics: Metrics, policies: LoadingPolicyProvider): void {
  metrics.exposeDomainStates(() => policies.domains());
  exposePlans(metrics.registry, policies);
  const failed = policies.errors().length > 0;
  // Without a policy and an error, the management server has not sent a configuration yet.
  if (failed || policies.current() !== undefined) metrics.loaded(!failed);
  policies.onReload((success) => metrics.reloaded(success));
}
