/* `weir diff` reports no change between spellings that behave the same. */
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { diffPolicies } from '../../src/config/diff/diff-policies.js';
import type { CompiledPolicy } from '../../src/policy/compiled-policy.js';
import { expectEqual } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { arbitraryEntries, arbitraryPolicy } from '../support/policy/arbitrary-policies.js';
import { policyOf } from '../support/policy/policies.js';
import { respelled, seededChance } from '../support/policy/respell.js';

const NOW = Date.UTC(2026, 5, 1) * 1000;

const read = (file: unknown): CompiledPolicy => policyOf(JSON.stringify(file));

test('another spelling of a policy is not a change, and uses the same buckets and statistics', () => {
  let differing = 0;
  fc.assert(
    fc.property(
      arbitraryPolicy,
      fc.nat(),
      fc.array(arbitraryEntries, { minLength: 3, maxLength: 3 }),
      (file, seed, descriptors) => {
        const other = respelled(file, seededChance(seed));
        if (JSON.stringify(other) !== JSON.stringify(file)) differing += 1;
        const [before, after] = [read(file), read(other)];
        const sets = [before, after].map((policy) => ({ domains: new Map([['d', policy]]), version: '' }));
        expectEqual(diffPolicies(sets[0]!, sets[1]!, NOW), []);
        expectEqual(diffPolicies(sets[1]!, sets[0]!, NOW), []);
        for (const entries of descriptors) {
          const [was, is] = [before, after].map((policy) => policy.match(entries));
          expectEqual(is?.keys, was?.keys);
          expectEqual(is?.statNames, was?.statNames);
        }
      },
    ),
    runs(100),
  );
  expect(differing).toBeGreaterThan(27);
});
