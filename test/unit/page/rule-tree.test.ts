import { describe, expect, test } from '@jest/globals';
import { filteredRules, ruleKey, ruleTree } from '../../../src/page/text/rule-tree.js';
import { dumpedRule } from '../../support/page/dumped-rule.js';

const rule = (path: string, levels: readonly string[], name = '') => dumpedRule(path, { levels, name });

describe('ruleTree', () => {
  test('nests rules in their order, and counts them', () => {
    const rules = [
      rule('tenant', ['tenant']),
      rule('tenant/group=b', ['tenant', 'group=b']),
      rule('tenant/group=a', ['tenant', 'group=a']),
      rule('tenant/group=a', ['tenant', 'group=a'], 'daily'),
      rule('plan', ['plan']),
    ];
    const tree = ruleTree(rules);
    expect([tree.count, [...tree.children.keys()]]).toEqual([5, ['tenant', 'plan']]);
    const tenant = tree.children.get('tenant');
    expect([tenant?.count, tenant?.rules.length]).toEqual([4, 1]);
    expect([...(tenant?.children.keys() ?? [])]).toEqual(['group=b', 'group=a']);
    expect(tenant?.children.get('group=a')?.rules).toHaveLength(2);
  });
});

test('rules are found by path and name', () => {
  const rules = [rule('tenant/group=a', ['tenant', 'group=a'], 'Chats'), rule('plan', ['plan'])];
  expect(filteredRules(rules, '')).toHaveLength(2);
  expect(filteredRules(rules, ' CHATS ')).toEqual([rules[0]]);
  expect(filteredRules(rules, 'group=')).toEqual([rules[0]]);
  expect(filteredRules(rules, 'none')).toEqual([]);
});

test('all rules have different keys', () => {
  expect(ruleKey('a b', 'c')).not.toBe(ruleKey('a', 'b c'));
});
