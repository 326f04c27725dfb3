import { deserialize, serialize } from 'node:v8';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { openFile } from '../../src/config/read/policy-source.js';
import { readDomain } from '../../src/config/read/read-domain.js';
import { dump, dumpJson } from '../../src/config/show/dump.js';
import { dumpTree } from '../../src/config/show/dump-tree.js';
import { explain } from '../../src/config/show/explain.js';
import { renderExplanation } from '../../src/config/show/explain-text.js';
import {
  type PolicyItem,
  policyItems,
  specItems,
  withSecretKeys,
} from '../../src/config/threads/policy-transfer.js';
import { formatProblem } from '../../src/config/yaml/config-problem.js';
import type { Entry } from '../../src/limiter/entry.js';
import type { CompiledPolicy } from '../../src/policy/compiled-policy.js';
import type { DomainSpec } from '../../src/policy/spec.js';
import { runToCompletion } from '../../src/runtime/turns.js';
import { expectEqual } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { arbitraryEntries, arbitraryPolicy } from '../support/policy/arbitrary-policies.js';
import { buildPolicy } from '../support/policy/build-policy.js';
import { setOf } from '../support/policy/policies.js';
import { transferredPolicies } from '../support/policy/transferred-policies.js';

const NOW = Date.UTC(2026, 5, 1) * 1000;
/** Secret keys of the domain itself, if it has a table, and of another domain. */
const SECRETS: ReadonlySet<string> = new Set(['token', 'b']);

function specOf(policy: unknown): DomainSpec {
  const { source, problems } = openFile('policy.yaml', Buffer.from(JSON.stringify(policy)));
  const files = { read: () => Buffer.from(''), digestOf: () => '' };
  const spec = source && readDomain([source], files).spec;
  if (spec === undefined) throw new Error(problems.errors.map(formatProblem).join('\n'));
  return spec;
}

/** Returns the policy that another thread or process builds from the specification. */
function across(items: Iterable<PolicyItem>): CompiledPolicy {
  return transferredPolicies(items).domains.get('d') as CompiledPolicy;
}

/** Returns all observable properties of a policy. */
function shown(policy: CompiledPolicy, descriptors: readonly (readonly Entry[])[]): unknown {
  const set = setOf(policy);
  const status = { domain: 'd', files: ['policy.yaml'], state: 'ok' } as const;
  return {
    reference: dump(set),
    tree: dumpTree(set, NOW),
    json: JSON.stringify(dumpJson(set, [status], [], NOW)),
    secretKeys: policy.secretKeys,
    keys: policy.keys,
    explained: descriptors.map((entries) => renderExplanation(explain(set, 'd', entries), NOW)),
    matches: descriptors.map((entries) => policy.match(entries)),
    mayDeny: policy.possibleDenial.mayDeny(NOW, () => 50),
    rules: policy.rules,
  };
}

test('a specification is plain data that can be serialised', () => {
  fc.assert(
    fc.property(arbitraryPolicy, (policy) => {
      const spec = specOf(policy);
      expect(deserialize(serialize(spec))).toStrictEqual(spec);
      expect(structuredClone(spec)).toStrictEqual(spec);
    }),
    runs(100),
  );
});

test(
  'a policy that came in batches, of a specification or of a policy in force, is the one that is built at ' +
    'once',
  () => {
    fc.assert(
      fc.property(arbitraryPolicy, fc.array(arbitraryEntries, { maxLength: 10 }), (policy, descriptors) => {
        const spec = specOf(policy);
        const here = buildPolicy(spec, SECRETS);
        const expected = shown(here, descriptors);
        expectEqual(shown(across(specItems(new Map([['d', spec]]), SECRETS)), descriptors), expected);
        const inEffect = buildPolicy(spec, SECRETS);
        expectEqual(shown(across(policyItems(setOf(inEffect))), descriptors), expected);
      }),
      runs(100),
    );
  },
);

test('a policy that gets secrets later has the same names as a policy that was built with them', () => {
  fc.assert(
    fc.property(arbitraryPolicy, fc.array(arbitraryEntries, { maxLength: 10 }), (policy, descriptors) => {
      const spec = specOf(policy);
      const before = buildPolicy(spec);
      const later = runToCompletion(withSecretKeys(before, SECRETS, false));
      expectEqual(shown(later, descriptors), shown(buildPolicy(spec, SECRETS), descriptors));
      const sent = across(policyItems(setOf(later)));
      expectEqual(shown(sent, descriptors), shown(later, descriptors));
    }),
    runs(100),
  );
});
