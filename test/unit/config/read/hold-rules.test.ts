import { expect, test } from '@jest/globals';
import type { FieldReader } from '../../../../src/config/read/field-reader.js';
import { HoldRules } from '../../../../src/config/read/read-domain.js';
import { formatProblem, ProblemList } from '../../../../src/config/yaml/config-problem.js';
import { policyOf } from '../../../support/policy/policies.js';

/** Returns the reader of a descriptor on a line. */
function readerOn(line: number, problems: ProblemList): FieldReader {
  const at = { line, column: 5 };
  return { problems, map: { at }, path: `descriptors[${line}]` } as unknown as FieldReader;
}

test('two rules with the same digest are an error', () => {
  const problems = new ProblemList('policy.yaml');
  const rules = new HoldRules((place) => place.slice(0, 1));
  rules.add(readerOn(1, problems), 'a1');
  rules.add(readerOn(2, problems), 'b1');
  // The same place twice has an error of its own.
  rules.add(readerOn(3, problems), 'a1');
  expect(problems.errors).toEqual([]);
  rules.add(readerOn(4, problems), 'a2');
  expect(problems.errors.map(formatProblem)).toEqual([
    'policy.yaml:4:5: descriptors[4]: hold tokens cannot tell a limit here from a limit in policy.yaml:1:5, because ' +
      'both have the same digest; rename the key, the value or the limit of one of the two descriptors',
  ]);
});

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
