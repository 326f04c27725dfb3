import { describe, expect, test } from '@jest/globals';
import { ChargeWarnings } from '../../../src/server/decision-warnings.js';
import type { Logger } from '../../../src/telemetry/logger.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

const MINUTE_MS = 60_000;

function open() {
  const warned: [object, string][] = [];
  const clock = { ms: 0 };
  const log = { warn: (...line: [object, string]) => warned.push(line) } as unknown as Logger;
  const warnings = new ChargeWarnings(log, () => clock.ms);
  /** Sends requests of `hits` for the rule within a minute. */
  const ask = (rule: string, hits: number, requests = 20, refund = false): void => {
    for (let request = 1; request <= requests; request++) {
      if (request === requests) clock.ms += MINUTE_MS;
      warnings.asked('llm', rule, hits, refund);
    }
  };
  return { warned, warnings, ask, clock };
}

describe('a rule with allow_debt whose requests all have 1 hit', () => {
  test('is reported once, with the remedy', () => {
    const { warned, ask } = open();
    for (let again = 0; again < 10; again++) ask('tenant', 1);
    ask('user', 1);
    expect(warned).toEqual([
      [
        { domain: 'llm', rule: 'tenant', requests: 20 },
        'this rule has allow_debt, but every request had only 1 hit, so weir charged nothing: a charge ' +
          'needs at least 2 hits. Envoy ignores hits_addend in the rate_limits of a route or virtual ' +
          'host; move these rate limits to typed_per_filter_config. If requests have no usage to charge, ' +
          'remove allow_debt',
      ],
      [{ domain: 'llm', rule: 'user', requests: 20 }, expect.any(String)],
    ]);
  });

  test('is not reported before 20 requests and a minute', () => {
    const { warned, warnings, clock } = open();
    for (let request = 0; request < 1000; request++) warnings.asked('llm', 'tenant', 1, false);
    expect(warned).toEqual([]);
    clock.ms = MINUTE_MS;
    for (let request = 0; request < 19; request++) warnings.asked('llm', 'user', 1, false);
    clock.ms *= 10;
    expect(warned).toEqual([]);
    warnings.asked('llm', 'user', 1, false);
    expect(warned).toHaveLength(1);
  });

  test('is not reported after a charge or a refund, or for peeks only', () => {
    const { warned, warnings, ask } = open();
    warnings.asked('llm', 'charged', 2, false);
    ask('charged', 1);
    ask('refunded', 1, 19);
    warnings.asked('llm', 'refunded', 1, true);
    ask('refunded', 1);
    ask('peeked', 0);
    expect(warned).toEqual([]);
  });

  test('is not observed after the first 1,000 rules', () => {
    const { warned, warnings, ask } = open();
    for (let rule = 0; rule < 1000; rule++) warnings.asked('llm', `rule-${rule}`, 1, false);
    ask('one more', 1);
    expect(warned).toEqual([]);
    ask('rule-7', 1);
    expect(warned).toHaveLength(1);
  });
});

test('the observer is notified only of rules with allow_debt', () => {
  const decider = new Decider(`
domain: d
descriptors:
  - key: debt
    rate_limit: { unit: minute, requests_per_unit: 5, allow_debt: true }
  - key: plain
    rate_limit: { unit: minute, requests_per_unit: 5 }
`);
  decider.answer([descriptor(['debt=a'], { hitsAddend: 0 }), descriptor(['plain=a'])]);
  decider.answer([descriptor(['debt=a'])]);
  decider.answer([descriptor(['debt=a'], { hitsAddend: 700 })]);
  decider.answer([descriptor(['debt=a'], { hitsAddend: 3, isNegativeHits: true })]);
  expect(decider.observer.debts).toEqual(['d debt 0', 'd debt 1', 'd debt 700', 'd debt -3']);
});
