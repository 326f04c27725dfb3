/* Keys of the first edition that policies no longer have; see runtime/removed-names.ts. */
import { describe, expect, test } from '@jest/globals';
import { policyItems } from '../../../../src/config/threads/policy-transfer.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { parse, setOf } from '../../../support/policy/policies.js';

const LIMIT = 'rate_limit: { unit: minute, requests_per_unit: 10 }';
const file = (node: string): string => `domain: d\ndescriptors:\n  - key: k\n    ${LIMIT}\n${node}`;

describe('candidate', () => {
  test.each([
    'candidate:',
    'candidate: ~',
    'candidate: 5',
    'candidate: ""',
    'candidate: []',
    'candidate: [{ unit: day }, nonsense]',
    'candidate: { unit: day, requests_per_unit: 3 }',
    'candidate: { unlimited: true, unit: minuet, hold: { learned: { start: 5 } }, candidate: { no: key } }',
    'candidate: { concurrency: { max: 3 }, token_bucket: { max_tokens: { plan: burst } } }',
  ])('is ignored with a warning: %s', (candidate) => {
    const { policy, problems } = parse(file(`    ${candidate}\n`));
    expect(problems.errors).toEqual([]);
    expect(problems.warnings.map(formatProblem)).toEqual([
      'policy.yaml:5:5: descriptors[0].candidate: "candidate" was removed and is ignored; to try out a limit, add it ' +
        'to "rate_limits" with "phase: monitoring"',
    ]);
    const without = parse(file('')).policy;
    const itemsOf = (one: typeof policy) => one && [...policyItems(setOf(one))];
    expect(itemsOf(policy)).toEqual(itemsOf(without));
    expect(policy).toBeDefined();
  });

  test('of a descriptor without a limit is ignored, too', () => {
    const { policy, problems } = parse(
      'domain: d\ndescriptors: [{ key: k, candidate: { unit: day, requests_per_unit: 0 } }]\n',
    );
    expect([problems.errors.length, problems.warnings.length]).toEqual([0, 1]);
    expect(policy?.rules).toEqual([]);
  });
});

describe('learned', () => {
  test.each(['learned: { start: 5 }', 'learned:', 'learned: nonsense', 'learned: []'])(
    'is an error that refuses the start, even next to amount: %s',
    (learned) => {
      for (const hold of [`amount: 2, ${learned}`, learned]) {
        const { problems } = parse(
          `domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 9, hold: { ${hold} } } }]\n`,
        );
        const removed = problems.errors.filter(
          ({ path }) => path === 'descriptors[0].rate_limit.hold.learned',
        );
        expect(problems.errors).toEqual(removed);
        expect(problems.refusesStart).toBe(true);
        expect(removed).toMatchObject([
          {
            message:
              '"learned" was removed; write the estimate as "amount", a number or a value of the plan, or as ' +
              'from: first_call',
          },
        ]);
      }
    },
  );
});
