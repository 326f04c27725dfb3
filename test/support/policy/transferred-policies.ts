import { buildBatches, inBatches, type PolicyItem } from '../../../src/config/threads/policy-transfer.js';
import type { PolicySet } from '../../../src/policy/compiled-policy.js';
import { runToCompletion } from '../../../src/runtime/turns.js';

/**
 * Returns the policies that another thread or process builds from `items`, which arrive in batches; `inEffect` are the
 * policies that it already has.
 */
export function transferredPolicies(
  items: Iterable<PolicyItem>,
  version = 'v',
  inEffect?: PolicySet,
): PolicySet {
  const batches = Array.from(inBatches(items), (batch) => structuredClone(batch));
  return { domains: runToCompletion(buildBatches(batches, { inEffect, compiles: true })), version };
}
