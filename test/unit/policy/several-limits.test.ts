import { describe, expect, test } from '@jest/globals';
import { explain } from '../../../src/config/show/explain.js';
import { renderExplanation } from '../../../src/config/show/explain-text.js';
import { formatProblem } from '../../../src/config/yaml/config-problem.js';
import { cases } from '../../support/assert/cases.js';
import { entries, parse, policyOf, setOf } from '../../support/policy/policies.js';

const POLICY = `
domain: d
enforce_percent: 50
on_store_failure: local
descriptors:
  - key: tenant
    shadow_mode: true
    phase: active
    metadata: { team: x }
    rate_limits:
      - { name: burst, unit: second, requests_per_unit: 10, shadow_mode: false, replaces: [{ name: plain }] }
      - { unit: day, requests_per_unit: 250, phase: monitoring, enforce_percent: 12.5, on_store_failure: deny }
    descriptors:
      - key: user
        detailed_metric: true
        rate_limits: [{ name: a, unit: hour, requests_per_unit: 1 }, { name: b, unit: day, requests_per_unit: 2 }]
  - { key: plain, enforce_percent: 0, rate_limit: { name: plain, unit: second, requests_per_unit: 1 } }
  - { key: free, rate_limit: { unlimited: true } }
`;

const policy = policyOf(POLICY);
const problemsOf = (text: string) => {
  const { problems } = parse(text);
  return [...problems.errors, ...problems.warnings].map((one) =>
    formatProblem(one).slice('policy.yaml:'.length),
  );
};
/** Returns the problems of a descriptor with these fields, on line 2. */
const node = (fields: string) => problemsOf(`domain: d\ndescriptors: [{ key: k, ${fields} }]\n`);
const MINUTE = 'unit: minute, requests_per_unit: 3';

describe('a list of limits', () => {
  const { rules, keys, statNames, onStoreFailure } = policy.match(entries('tenant=acme'));

  test('has a rule for each limit, in file order', () => {
    expect(rules.map(({ path, name }) => [path, name])).toEqual([
      ['tenant[burst]', 'burst'],
      ['tenant[2]', ''],
    ]);
  });

  test('each has its own settings, or else those of the node or the file', () => {
    expect(rules).toMatchObject([
      { shadowMode: false, enforcePercent: 50, onStoreFailure: 'local', replaces: ['plain'] },
      { shadowMode: true, enforcePercent: 12.5, onStoreFailure: 'deny', replaces: [] },
    ]);
    expect(rules.map(({ phase }) => phase.activeAtMicros)).toEqual([-Infinity, Infinity]);
    expect(rules.map(({ metadata }) => metadata)).toEqual([{ team: 'x' }, { team: 'x' }]);
  });

  test('each has its own bucket and name in statistics', () => {
    expect(keys).toEqual(['1:d6:tenant4:acme~5:burst%1', '1:d6:tenant4:acme~2%86400']);
    expect(statNames).toEqual(['d.tenant.burst', 'd.tenant.2']);
    const detailed = policy.match(entries('tenant=acme', 'user=joe'));
    expect(detailed.statNames).toEqual(['d.tenant_acme.user_joe.a', 'd.tenant_acme.user_joe.b']);
  });

  test('a limit override has the failure policy that all limits have, or else that of the file', () => {
    expect(onStoreFailure).toBe('local');
    const agreed = policyOf(
      `domain: d\ndescriptors: [{ key: k, rate_limits: [{ ${MINUTE}, on_store_failure: deny }] }]`,
    );
    expect(agreed.match(entries('k=v')).onStoreFailure).toBe('deny');
  });
});

describe('errors of several limits', () => {
  test.each([
    ...cases`
      rate_limit: [{ ${MINUTE} }]
        2:37: descriptors[0].rate_limit: "rate_limit" must be a mapping, not a list; write it as { unit: minute,
          requests_per_unit: 10 }, and several limits as "rate_limits"
      rate_limits: { ${MINUTE} }
        2:38: descriptors[0].rate_limits: "rate_limits" must be a list of limits; begin each item with "- "
      rate_limit: { ${MINUTE} }, rate_limits: [{ ${MINUTE} }]
        2:90: descriptors[0].rate_limits: "rate_limits" cannot be combined with "rate_limit"; move that limit into the
          list
      quota_mode: true, rate_limits: [{ ${MINUTE} }]
        2:37: descriptors[0].quota_mode: "quota_mode" cannot be combined with "rate_limits", because a list denies as
          soon as one of its limits is exceeded; remove "quota_mode", or write a single "rate_limit"
      rate_limits: [{ ${MINUTE}, quota_mode: true }]
        2:77: descriptors[0].rate_limits[0].quota_mode: a list denies as soon as one of its limits is exceeded, so its
          limits cannot be quotas; remove "quota_mode"
      rate_limits: [{ ${MINUTE} }, { unlimited: true, ${MINUTE} }]
        2:81: descriptors[0].rate_limits[1].unlimited: a limit in a list cannot be unlimited; remove the item, or use
          rate_limit: { unlimited: true }
      rate_limits: [{ name: a, ${MINUTE} }, { name: a, ${MINUTE} }]
        2:96: descriptors[0].rate_limits[1].name: two limits in this list are named "a"; give each its own name
      rate_limits: [{ name: "2", ${MINUTE} }]
        2:47: descriptors[0].rate_limits[0].name: the name "2" could be confused with a position in the list; add a
          letter to the name
      rate_limits: [{ name: a, ${MINUTE} }, { ${MINUTE}, replaces: [{ name: a }] }]
        2:145: descriptors[0].rate_limits[1].replaces[0].name: "a" is a limit in the same list, so it would never
          apply; remove the limit, or remove this item from "replaces"
      rate_limits: [{ name: a }]
        2:39: descriptors[0].rate_limits[0]: the limit is missing; write token_bucket, or unit and requests_per_unit,
          or concurrency
      rate_limits: [{ ${MINUTE}, enforce_percent: 101 }]
        2:94: descriptors[0].rate_limits[0].enforce_percent: "enforce_percent" is 101; write a number from 0 to 100
    `,
    [
      `rate_limits: [${Array.from({ length: 17 }, () => `{ ${MINUTE} }`).join(', ')}]`,
      '2:38: descriptors[0].rate_limits: "rate_limits" has 17 items; write 1 to 16 items',
    ],
  ])('%s', (fields, error) => {
    expect(node(fields)).toContain(error);
  });
});

describe('errors of enforce_percent', () => {
  test.each(cases`
    rate_limit: { ${MINUTE}, enforce_percent: 5 }
      unknown key "enforce_percent"; it belongs at the top of the file, in an item of "descriptors" or in an item of
        "rate_limits"
    rate_limit: { ${MINUTE}, rate_limits: [] }
      unknown key "rate_limits"; it belongs in an item of "descriptors"
    rate_limit: { ${MINUTE} }, enforce_percent: -0.1
      "enforce_percent" is -0.1; write a number from 0 to 100
    rate_limit: { ${MINUTE} }, enforce_percent: .nan
      "enforce_percent" is .nan; write a number from 0 to 100
    enforce_percent: 5
      "enforce_percent" has no effect without a limit in the same descriptor or below it; add a limit, or remove
        "enforce_percent"
    rate_limit: { unlimited: true }, enforce_percent: 5
      "enforce_percent" has no effect, because the rule is unlimited; remove it
  `)('%s', (fields, message) => {
    expect(node(fields).filter((line) => line.includes(message))).toHaveLength(1);
  });

  test('decimals, 0 and 100, which a roll-out uses, are valid', () => {
    for (const percent of ['0', '0.5', '12.25', '100', '1e1']) {
      expect(node(`rate_limit: { ${MINUTE} }, enforce_percent: ${percent}`)).toEqual([]);
    }
  });

  test('the closest enforce_percent applies: of an item, a node, a node above it, or the file', () => {
    const nested = `
domain: d
enforce_percent: 50
descriptors:
  - { key: file, rate_limit: { ${MINUTE} } }
  - key: above
    enforce_percent: 5
    rate_limit: { unlimited: true }
    descriptors:
      - { key: inherits, rate_limit: { ${MINUTE} } }
      - { key: says, enforce_percent: 0, rate_limit: { ${MINUTE} } }
      - key: between
        descriptors:
          - key: list
            rate_limits: [{ ${MINUTE} }, { unit: day, requests_per_unit: 9, enforce_percent: 100 }]
`;
    expect(problemsOf(nested)).toEqual([]);
    const { rules } = policyOf(nested);
    expect(rules.map(({ path, enforcePercent }) => [path, enforcePercent])).toEqual([
      ['file', 50],
      ['above', 5],
      ['above/inherits', 5],
      ['above/says', 0],
      ['above/between/list[1]', 5],
      ['above/between/list[2]', 100],
    ]);
    const explanation = explain(setOf(policyOf(nested)), 'd', entries('above=1', 'inherits=1'));
    expect(renderExplanation(explanation, 0)).toContain('5% of denials enforced');
  });
});
