import { describe, expect, test } from '@jest/globals';
import { rlconfigText } from '../../../../src/config/show/dump.js';
import { policyOf } from '../../../support/policy/policies.js';

const policy = policyOf(
  'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: 3 } }]\n',
);
const shown = {
  policySet: { domains: new Map([['d', policy]]), version: 'new' },
  domains: [],
  errors: [],
  wallMicros: 0,
};
const differing = [{ id: 2, policy: 'old' }];

describe('workers with other policies are named', () => {
  test.each(['lines', 'tree'] as const)('at the end of the form %s', (form) => {
    const usual = rlconfigText(form, shown);
    const note = '# worker 2 has other policies (version old) at the moment\n';
    expect(rlconfigText(form, { ...shown, differing })).toBe(usual + note);
    expect(rlconfigText(form, { ...shown, policySet: undefined, differing })).toBe(note);
    expect(rlconfigText(form, { ...shown, differing: [] })).toBe(usual);
  });

  test('in a field of the form json', () => {
    const usual = JSON.parse(rlconfigText('json', shown));
    expect(JSON.parse(rlconfigText('json', { ...shown, differing }))).toEqual({
      ...usual,
      workers_with_other_policies: differing,
    });
  });
});
