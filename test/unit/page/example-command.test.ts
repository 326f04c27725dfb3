import { describe, expect, test } from '@jest/globals';
import type { DumpedPolicies, DumpedPolicyRule } from '../../../src/page/text/dumped-policy.js';
import { exampleCommand } from '../../../src/page/text/example-command.js';
import { dumpedRule } from '../../support/page/dumped-rule.js';

const policies = (domain: string, ...rules: readonly DumpedPolicyRule[]): DumpedPolicies => ({
  version: 'v',
  domains: [
    { domain: 'bad', state: 'absent', files: [] },
    {
      domain,
      state: 'ok',
      files: [],
      policy: {
        phase: { now: 'active' },
        on_store_failure: 'error',
        on_unmatched: 'ok',
        derive: [],
        plans: null,
        rules,
      },
    },
  ],
});
/** Returns the request of the command, as JSON and parsed. */
const asked = (known: DumpedPolicies) => {
  const json = /-d '(.*)' \\/.exec(exampleCommand(known) ?? '')?.[1]?.replaceAll("'\\''", "'") ?? '';
  return { json, question: JSON.parse(json) as { domain: string; descriptors: { entries: unknown }[] } };
};

describe('the example command', () => {
  test.each<readonly [string, readonly string[], readonly string[], string?]>([
    ['customer', ['customer'], ['customer=example']],
    ['path=/v1/users', ['path'], ['path=/v1/users']],
    ['q=a=b=c', ['q'], ['q=a=b=c']],
    ['plan=free[burst]', ['plan'], ['plan=free'], 'burst'],
    ['plan=free', ['plan'], ['plan=free'], 'named'],
    ['q=x[a]', ['q'], ['q=x[a]']],
    ['plan[2]', ['plan'], ['plan=example']],
    ['a=x/y/b=z', ['a', 'b'], ['a=x/y', 'b=z']],
    ["who=o'neil", ['who'], ["who=o'neil"]],
  ])('matches the rule %s', (path, keys, wanted, name = '') => {
    const entries = wanted.map((one) => ({ key: one.split('=')[0], value: one.slice(one.indexOf('=') + 1) }));
    expect(asked(policies('shop', dumpedRule(path, keys, { name }))).question).toEqual({
      domain: 'shop',
      descriptors: [{ entries }],
    });
  });

  test.each([
    ['matchers', dumpedRule('ip', ['ip'], { matchers: [{ key: 'ip', value_cidr: ['10.0.0.0/8'] }] })],
    ['a wildcard', dumpedRule('customer=vip-*', ['customer'])],
    ['no limit', dumpedRule('free', ['free'], { limit: { unlimited: true } })],
  ])('skips a rule with %s', (_what, one) => {
    const entries = [{ key: 'plan', value: 'example' }];
    expect(asked(policies('shop', one, dumpedRule('plan', ['plan']))).question.descriptors).toEqual([
      { entries },
    ]);
    const example = [{ key: 'customer', value: 'example' }];
    expect(asked(policies('shop', one)).question.descriptors).toEqual([{ entries: example }]);
  });

  test('contains no invisible characters, but still matches the rule', () => {
    const [domain, key] = ['sh\u202eop\u2066', 'cust\u{e0001}omer'];
    const { json, question } = asked(policies(domain, dumpedRule(key, [key])));
    expect(json).not.toMatch(/[^\x20-\x7e]/);
    expect(json).toContain('sh\\u202eop\\u2066');
    expect(question).toEqual({ domain, descriptors: [{ entries: [{ key, value: 'example' }] }] });
  });

  test('does not exist without a domain in effect', () => {
    expect(exampleCommand(undefined)).toBeUndefined();
    expect(
      exampleCommand({ version: 'v', domains: [{ domain: 'bad', state: 'absent', files: [] }] }),
    ).toBeUndefined();
  });
});
