import type { DumpedPolicyRule } from '../../../src/page/text/dumped-policy.js';

/** Returns a rule in effect, in the form of `/rlconfig?format=json`. */
export function dumpedRule(
  path: string,
  keys: readonly string[],
  more: Partial<DumpedPolicyRule> = {},
): DumpedPolicyRule {
  return {
    path,
    name: '',
    keys,
    limit: { unit: 'hour', requests_per_unit: 1 },
    plan_values: null,
    without_row: null,
    phase: { now: 'active' },
    shadow_mode: false,
    quota_mode: false,
    enforce_percent: 100,
    replaces: [],
    on_store_failure: 'error',
    on_over: null,
    // biome-ignore lint/suspicious/noThenProperty: the name of the key in policies
    then: null,
    ...more,
  };
}
