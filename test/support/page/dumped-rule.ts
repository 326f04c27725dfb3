import type { DumpedPolicyRule } from '../../../src/page/text/dumped-policy.js';

/** Returns a rule in effect, in the form of `/rlconfig?format=json`. */
export function dumpedRule(path: string, more: Partial<DumpedPolicyRule> = {}): DumpedPolicyRule {
  return {
    path,
    name: '',
    keys: [],
    levels: [],
    limit_about: 'window: 1 per hour',
    options_about: ['on store failure error'],
    plan_values: null,
    phase: { now: 'active' },
    // biome-ignore lint/suspicious/noThenProperty: the name of the key in policies
    then: null,
    ...more,
  };
}
