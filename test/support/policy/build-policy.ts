import { buildBatches, inBatches, specItems } from '../../../src/config/threads/policy-transfer.js';
import type { CompiledPolicy } from '../../../src/policy/compiled-policy.js';
import { type DomainSpec, secretSources } from '../../../src/policy/spec.js';
import { runToCompletion } from '../../../src/runtime/turns.js';

/** Builds the policy of a domain as a load does. By default, `secretKeys` are those of the domain alone. */
export function buildPolicy(
  spec: DomainSpec,
  secretKeys: ReadonlySet<string> = secretSources(spec.steps),
): CompiledPolicy {
  const items = specItems(new Map([[spec.domain, spec]]), secretKeys);
  return runToCompletion(buildBatches(inBatches(items))).get(spec.domain) as CompiledPolicy;
}
