import { expect, test } from '@jest/globals';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { ShouldRateLimit } from '../../../src/service/should-rate-limit.js';
import { BoundedCounters, SeriesBudget } from '../../../src/telemetry/bounded-counters.js';
import { ReferenceStats } from '../../../src/telemetry/reference/reference-stats.js';
import { type CountedNames, RuleSeries } from '../../../src/telemetry/rule-series.js';
import { takeItem } from '../../support/limiter/take-items.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

const TAKE = takeItem('k', windowRate('minute', 10));

/** Counts with room for so many series of rules. */
function countsFor(most: number) {
  const budget = new SeriesBudget(most);
  const byRule = new SeriesBudget(most);
  const byCaller = new SeriesBudget(most);
  const reference = new ReferenceStats({ byRule, byCaller, nearLimitRatio: 0.8, deniedHitsCount: true });
  reference.setRuleNames(() => ['d.a', 'd.b']);
  return { budget, reference, owner: {}, decisions: new BoundedCounters(budget, 7) };
}

const named = (label: string, stat = `d.${label}`): CountedNames => ({
  domain: 'd',
  rulePath: label,
  statName: stat,
  fromCaller: false,
});

/** Returns the hits of each rule in the reference's statistics, and the decisions of each rule. */
function read({ reference, decisions }: ReturnType<typeof countsFor>) {
  const found: Record<string, number> = {};
  reference.eachCounter((name, value) => {
    if (name.endsWith('.total_hits')) found[name.split('.').slice(3, -1).join('.')] = value;
  });
  decisions.forEach((domain, rule, values) => {
    found[`${domain}/${rule}`] = values[0] as number;
  });
  return found;
}

test('a rule without room counts as other, and in a series of its own once there is room', () => {
  const counts = countsFor(1);
  const first = new RuleSeries(counts, named('a'));
  const second = new RuleSeries(counts, named('b'));
  for (const rule of [first, second]) {
    rule.countDecision(false, false);
    rule.countReference('', TAKE, undefined, false);
  }
  expect(read(counts)).toEqual({ 'd.a': 1, 'other.other': 1, 'd/a': 1, 'other/other': 1 });
  counts.budget.release();
  counts.reference.setRuleNames(() => ['d.b']);
  second.countDecision(false, false);
  second.countReference('', TAKE, undefined, false);
  expect(read(counts)).toEqual({ 'd.b': 1, 'other.other': 1, 'd/a': 1, 'd/b': 1, 'other/other': 1 });
});

test('a rule whose name contains values of requests has a series for each name', () => {
  const counts = countsFor(10);
  const rule = new RuleSeries(counts, named('a', ''));
  for (const stat of ['d.a_1', 'd.a_2', 'd.a_1']) rule.countReference(stat, TAKE, undefined, false);
  expect(read(counts)).toEqual({ 'd.a_1': 2, 'd.a_2': 1 });
});

test('two services with one policy count separately', () => {
  const one = new Decider(
    '{ domain: d, descriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: 9 } }] }',
  );
  const other = new Decider('{ domain: d, descriptors: [] }');
  const service = new ShouldRateLimit({ ...other.options, policies: one.options.policies });
  const descriptors = [descriptor(['k=v'])];
  for (let i = 0; i < 2; i++) {
    one.answer(descriptors);
    void service.decide({ domain: 'd', descriptors, hitsAddend: 0 });
  }
  expect(one.observer.told).toEqual(['d k OK', 'd k OK']);
  expect(other.observer.told).toEqual(['d k OK', 'd k OK']);
});
