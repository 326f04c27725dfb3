import { describe, expect, test } from '@jest/globals';
import { didYouMean, rulePaths, whyUnmatched } from '../../../../src/config/show/why-unmatched.js';
import { shellText } from '../../../../src/runtime/printable.js';
import { cases } from '../../../support/assert/cases.js';
import { policyOf } from '../../../support/policy/policies.js';

const RULE = 'rate_limit: { unit: day, requests_per_unit: 1 }';
const POLICY = policyOf(`domain: d
descriptors:
- key: tenant
  descriptors:
  - { key: resource_group, ${RULE} }
  - key: resource_group
    value: free
    rate_limit: { unlimited: true }
    descriptors: [{ key: method, ${RULE} }]
- { key: remote_address, ${RULE} }
- { key: login, ${RULE}, descriptors: [{ key: user }] }
- key: nothing
`);

test('rules are listed by their keys, the shortest first', () => {
  expect(rulePaths(POLICY.root)).toEqual([
    ['remote_address'],
    ['login'],
    ['tenant', 'resource_group'],
    ['tenant', 'resource_group', 'method'],
  ]);
});

describe('reasons why a descriptor does not match', () => {
  test.each(cases`
    tenant
      the nearest rule is at tenant/resource_group: add the entry resource_group, or add a limit to tenant
    tenant/resource_grop => did you mean tenant/resource_group?
    Tenant/resource-group => did you mean tenant/resource_group?
    tenant/resource_group/mehtod => did you mean tenant/resource_group/method?
    login/user
      a rule exists for login, but only for descriptors without further entries: remove the entry user, or add a
        rule for login/user
    remote_adress => did you mean remote_address?
    remote_address/path/x y
      a rule exists for remote_address, but only for descriptors without further entries: remove the entries path
        'x y', or add a rule for remote_address/path/'x y'
    resource_group/tenant => a rule exists for tenant/resource_group: send the same entries in this order
    resource_group => did you mean tenant/resource_group?
    tenant/resource_group
      rules exist for tenant/resource_group, but none of them matches these values; compare the values with the
        policy
    colour
      rules exist for remote_address, login, tenant/resource_group, tenant/resource_group/method
    ${Array.from({ length: 1000 }, (_, i) => `k${i}`).join('/')}
      the descriptor has 1000 entries, but rules exist for remote_address, login, tenant/resource_group,
        tenant/resource_group/method
  `)('%s', (keys, why) => {
    expect(whyUnmatched(keys.split('/'), rulePaths(POLICY.root))).toBe(why);
  });

  test('a descriptor without entries, and a domain without rules', () => {
    expect(whyUnmatched([], rulePaths(POLICY.root))).toBe(
      'the descriptor has no entries; add an entry, because every rule requires at least one entry',
    );
    expect(whyUnmatched(['k'], [])).toBe('the domain has no rules; add one, or remove the domain');
  });
});

describe('with a policy of any size', () => {
  const large = policyOf(
    `domain: d\ndescriptors:\n${Array.from(
      { length: 5000 },
      (_, i) =>
        `- { key: key-of-a-rule-${i}, value: v${i}, descriptors: [{ key: below-${i}, ${RULE} }], ${RULE} }\n`,
    ).join('')}`,
  );

  test('the search is bounded', () => {
    expect(rulePaths(large.root).length).toBe(200);
  });

  test('rules that are too different are not suggested', () => {
    const far = policyOf(
      `domain: d\ndescriptors:\n${Array.from(
        { length: 5000 },
        (_, i) => `- { key: k${i}, descriptors: [{ key: below-${i}, ${RULE} }] }\n`,
      ).join('')}`,
    );
    expect(whyUnmatched(['other'], rulePaths(far.root), far)).toBe(
      'the policy is too large to find the nearest rule; compare the entries with the policy',
    );
  });

  test('the message is', () => {
    expect(whyUnmatched(['other'], rulePaths(large.root))).toMatch(/, and 195 more paths$/);
    expect(whyUnmatched(['x'.repeat(100_000)], rulePaths(large.root)).length).toBeLessThan(300);
  });
});

test('the closest name is suggested', () => {
  expect(didYouMean('open_api', ['shop', 'open-api'])).toBe('did you mean open-api?');
  expect(didYouMean('x'.repeat(100_000), ['x'.repeat(100_000)])).toBe('');
  expect(didYouMean('colour', ['shop', 'open-api'])).toBe('');
});

describe('values of callers are quoted for a shell', () => {
  test.each([
    ['tenant', 'tenant'],
    ['a=b', "'a=b'"],
    ['', "''"],
    ['two words', "'two words'"],
    ["it's $HOME `id`", "'it'\\''s $HOME `id`'"],
    ['größe', "'größe'"],
    ["line\nbreak's \u001b[31m", "$'line\\U0000000abreak\\'s \\U0000001b[31m'"],
    ['right\u202eleft', "$'right\\U0000202eleft'"],
    ['\ud800', "$'\\U0000d800'"],
    ['y'.repeat(1000), `'${'y'.repeat(100)}…'`],
  ])('%j', (text, shown) => expect(shellText(text)).toBe(shown));
});
