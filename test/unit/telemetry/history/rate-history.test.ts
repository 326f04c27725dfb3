import { describe, expect, test } from '@jest/globals';
import { BoundedCounters, SeriesBudget } from '../../../../src/telemetry/bounded-counters.js';
import {
  FailureCounter,
  NO_FAILURES,
  RateHistory,
  RING_BYTES,
  STEPS,
  sumOfFailures,
} from '../../../../src/telemetry/history/rate-history.js';
import { DECISION_SLOTS, type RateCounts, takeNewCounts } from '../../../../src/telemetry/rule-series.js';

const counts = (rule: string, ok: number, denied = 0, would = 0, domain = 'd') => ({
  domain,
  rule,
  ok,
  denied,
  would,
});

describe('a history', () => {
  test('returns the counts of each step, for all rules and for each rule', () => {
    const history = new RateHistory(10);
    history.add(counts('a', 5, 2, 1));
    history.add(counts('b', 1));
    expect(history.allRows()).toMatchObject({ ok: [], denied: [], would: [] });
    history.end();
    history.end();
    history.add(counts('a', 7));
    history.add(counts('a', 1));
    history.end();
    expect(history.allRows()).toMatchObject({ ok: [6, 0, 8], denied: [2, 0, 0], would: [1, 0, 0] });
    expect(history.rows({ domain: 'd', rule: 'b' })).toEqual({
      ok: [1, 0, 0],
      denied: [0, 0, 0],
      would: [0, 0, 0],
    });
    expect(history.rows({ domain: 'e', rule: 'a' })).toBeUndefined();
    expect(history.lastStep()).toMatchObject({ ok: 8, denied: 0, would: 0 });
    const all = { ok: 13, denied: 2, would: 1 };
    expect(history.sums()).toEqual([
      { domain: 'd', rule: 'a', minute: all, hour: all },
      {
        domain: 'd',
        rule: 'b',
        minute: { ok: 1, denied: 0, would: 0 },
        hour: { ok: 1, denied: 0, would: 0 },
      },
    ]);
  });

  test('keeps answers without a decision for all rules together', () => {
    const history = new RateHistory(10);
    history.add(counts('a', 3, 1));
    history.addFailures({ errors: 87, failure_allow: 2, failure_deny: 1, failure_local: 5 });
    history.end();
    history.addFailures(NO_FAILURES);
    history.addFailures({ ...NO_FAILURES, errors: 4 });
    history.end();
    expect(history.allRows()).toEqual({
      ok: [3, 0],
      denied: [1, 0],
      would: [0, 0],
      errors: [87, 4],
      failure_allow: [2, 0],
      failure_deny: [1, 0],
      failure_local: [5, 0],
    });
    expect(history.lastStep()).toEqual({ ok: 0, denied: 0, would: 0, ...NO_FAILURES, errors: 4 });
    history.end(STEPS);
    expect(Math.max(...history.allRows().errors)).toBe(0);
  });

  test('keeps an hour, and a minute separately', () => {
    const history = new RateHistory(10);
    for (let step = 0; step < 3 * STEPS; step++) {
      history.add(counts('a', step));
      history.end();
    }
    const { ok = [] } = history.rows({ domain: 'd', rule: 'a' }) ?? {};
    expect(ok).toHaveLength(STEPS - 1);
    expect([ok[0], ok.at(-1)]).toEqual([2 * STEPS + 1, 3 * STEPS - 1]);
    const sum = (from: number) => ok.slice(from).reduce((all, one) => all + one, 0);
    expect(history.sums()).toMatchObject([{ minute: { ok: sum(-12) }, hour: { ok: sum(0) } }]);
  });

  test('has empty steps for a time without counts', () => {
    const history = new RateHistory(10);
    history.add(counts('a', 4));
    history.end(3);
    history.add(counts('a', 2));
    history.end();
    expect(history.allRows().ok).toEqual([4, 0, 0, 2]);
    history.end(2 * STEPS);
    expect(new Set(history.allRows().ok)).toEqual(new Set([0]));
    expect(history.sums()).toEqual([]);
    history.add(counts('a', 3));
    history.end();
    expect(history.sums()).toMatchObject([{ hour: { ok: 3 } }]);
  });

  test('keeps a limited number of rules, and replaces rules that were idle for an hour', () => {
    const history = new RateHistory(2);
    for (const rule of ['a', 'b', 'c']) history.add(counts(rule, 1));
    history.end();
    expect(history.rows({ domain: 'd', rule: 'c' })).toBeUndefined();
    expect(history.allRows().ok).toEqual([3]);
    expect(history.hadTooManyRules).toBe(true);
    for (let step = 0; step < STEPS; step++) {
      history.add(counts('a', 1));
      history.end();
    }
    expect(history.hadTooManyRules).toBe(false);
    history.add(counts('c', 5));
    history.end();
    expect(history.rows({ domain: 'd', rule: 'c' })?.ok.at(-1)).toBe(5);
    expect(history.rows({ domain: 'd', rule: 'b' })).toBeUndefined();
    expect(history.rows({ domain: 'd', rule: 'a' })?.ok.at(-2)).toBe(1);
  });

  test('replaces the rule that was idle longest, but not a recently active one', () => {
    const history = new RateHistory(2);
    const step = (...rules: string[]): void => {
      for (const rule of rules) history.add(counts(rule, 1));
      history.end();
    };
    step('a', 'b');
    step('b');
    for (let at = 0; at < 50; at++) step('c');
    expect(history.rows({ domain: 'd', rule: 'c' })).toBeUndefined();
    for (let at = 0; at < 20; at++) step('c');
    expect(history.rows({ domain: 'd', rule: 'c' })?.ok.at(-1)).toBe(1);
    expect(history.rows({ domain: 'd', rule: 'a' })).toBeUndefined();
    expect(history.rows({ domain: 'd', rule: 'b' })).toBeDefined();
    expect(history.hadTooManyRules).toBe(true);
  });

  test('keeps only the total with HISTORY_RULES=0', () => {
    const history = new RateHistory(0);
    history.add(counts('a', 1));
    history.end();
    expect([history.allRows().ok, history.sums()]).toEqual([[1], []]);
  });

  test('uses the memory for each rule that the help of HISTORY_RULES gives', () => {
    expect(RING_BYTES).toBeLessThan(9000);
  });
});

describe('new counts', () => {
  const news = (counters: BoundedCounters): readonly RateCounts[] => {
    const taken: RateCounts[] = [];
    takeNewCounts(counters, (each) => taken.push(each));
    return taken;
  };
  const count = (counters: BoundedCounters, rule: string, at: number, by = 1): void => {
    const values = counters.series('d', rule);
    values[at] = (values[at] as number) + by;
  };

  test('are returned once, and rules beyond the bound as other', () => {
    const counters = new BoundedCounters(new SeriesBudget(2), DECISION_SLOTS);
    count(counters, 'a', 0, 3);
    count(counters, 'a', 2);
    count(counters, 'b', 1);
    count(counters, 'c', 0);
    count(counters, 'e', 1);
    expect(news(counters)).toEqual([
      counts('a', 3, 0, 1),
      counts('b', 0, 1),
      counts('other', 1, 1, 0, 'other'),
    ]);
    expect(news(counters)).toEqual([]);
    count(counters, 'a', 0);
    count(counters, 'f', 0);
    expect(news(counters)).toEqual([counts('a', 1), counts('other', 1, 0, 0, 'other')]);
  });
});

test('new failures are returned once, and an error of on_store_failure as the error of its call', () => {
  const failures = new FailureCounter();
  for (const answer of ['error', 'allow', 'deny', 'deny', 'local'] as const) failures.answered(answer);
  failures.refused();
  const told = { errors: 1, failure_allow: 1, failure_deny: 2, failure_local: 1 };
  expect(failures.take()).toEqual(told);
  expect(failures.take()).toEqual(NO_FAILURES);
  expect(sumOfFailures([told, told])).toEqual({
    errors: 2,
    failure_allow: 2,
    failure_deny: 4,
    failure_local: 2,
  });
});
