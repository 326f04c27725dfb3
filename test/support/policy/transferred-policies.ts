import {
  needsOwnSlice,
  type PolicyItem,
  PolicyReceiver,
} from '../../../src/config/threads/policy-transfer.js';
import { cutSlices, openSlice } from '../../../src/config/threads/slices.js';
import type { PolicySet } from '../../../src/policy/policy-set.js';

/**
 * Returns the policies that another thread or process builds from `items`, which arrive in slices; `inEffect` are the
 * policies that it already has.
 */
export function transferredPolicies(
  items: Iterable<PolicyItem>,
  version = 'v',
  inEffect?: PolicySet,
): PolicySet {
  const receiver = new PolicyReceiver(inEffect);
  for (const slice of cutSlices(items, needsOwnSlice)) {
    for (const item of openSlice<PolicyItem>(slice)) receiver.add(item);
  }
  return receiver.finish(version);
}
