import { expect, test } from '@jest/globals';
import { policyOf } from '../../../support/policy/policies.js';

test('rules whose shown paths are equal have different digests', () => {
  const { rules } = policyOf(`
domain: d
descriptors:
  - { key: a=b, rate_limit: { concurrency: { max: 1 } } }
  - { key: a, value: b, rate_limit: { concurrency: { max: 1 } } }
  - { key: c/d, rate_limit: { concurrency: { max: 1 } } }
  - { key: c, descriptors: [{ key: d, rate_limit: { concurrency: { max: 1 } } }] }
  - key: l
    rate_limits: [{ concurrency: { max: 1 } }, { name: two, concurrency: { max: 1 } }]
  - { key: unheld, rate_limit: { unit: day, requests_per_unit: 1 } }
`);
  expect(new Set(rules.map(({ path }) => path)).size).toBe(5);
  const digests = rules.map(({ digest }) => digest);
  expect(new Set(digests).size).toBe(7);
  expect(digests.slice(0, 6).every((digest) => /^[\w-]{22}$/.test(digest))).toBe(true);
  expect(digests.at(-1)).toBe('');
});
