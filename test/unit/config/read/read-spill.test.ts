/* The key `then`, which makes limits of a list a chain. */
import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { answerOf } from '../../../../src/limiter/failure-policy.js';
import { phaseAt } from '../../../../src/policy/rule.js';
import { cases } from '../../../support/assert/cases.js';
import { parse, policyOf } from '../../../support/policy/policies.js';

const DAY = 'unit: day, requests_per_unit: 5';
const list = (...items: readonly string[]): string =>
  `domain: d\ndescriptors: [{ key: k, rate_limits: [${items.map((item) => `{ ${item} }`).join(', ')}] }]\n`;
const errorsOf = (text: string): string[] =>
  parse(text).problems.errors.map((problem) =>
    formatProblem(problem).replace(/^policy\.yaml:\d+:\d+: descriptors\[0\]\./, ''),
  );

const PLAN = `name: plan, then: credits, ${DAY}`;
const CREDITS = `name: credits, ${DAY}`;

describe('then', () => {
  test('names the next limit of the list', () => {
    const { rules } = policyOf(list(PLAN, `name: credits, then: bought, ${DAY}`, `name: bought, ${DAY}`));
    expect(rules.map(({ nextLimit }) => nextLimit)).toEqual(['credits', 'bought', '']);
  });

  test('gives the limits of a chain the settings of its last limit', () => {
    const last =
      'name: bought, phase: grace_period, shadow_mode: true, enforce_percent: 5, on_store_failure: deny';
    const middle = `name: credits, then: bought, ${DAY}`;
    const { rules } = policyOf(list(PLAN, middle, `${last}, ${DAY}`, `name: other, ${DAY}`));
    const settings = rules.map(({ phase, shadowMode, enforcePercent, onStoreFailure }) =>
      [phaseAt(phase, 0), shadowMode, enforcePercent, answerOf(onStoreFailure)].join(),
    );
    const decided = 'grace_period,true,5,deny';
    expect(settings).toEqual([decided, decided, decided, 'active,false,100,error']);
  });

  // The limits of a list, and the error.
  test.each(cases`
    ${PLAN} | name: credit, ${DAY}
      rate_limits[0].then: no limit in this list is named "credits"; did you mean "credit"?
    ${PLAN}
      rate_limits[0].then: no limit in this list is named "credits"; write the name of the next limit
    name: plan, then: plan, ${DAY} => rate_limits[0].then: "then" contains the limit's own name "plan"
    ${PLAN} | ${DAY} | ${CREDITS} => rate_limits[0].then: "credits" must directly follow this limit in the list
    ${CREDITS} | ${PLAN} => rate_limits[1].then: "credits" must directly follow this limit in the list
    ${PLAN}, phase: monitoring | ${CREDITS} => rate_limits[0].phase: "phase" cannot be combined with "then"
    ${PLAN}, on_store_failure: deny | ${CREDITS}
      rate_limits[0].on_store_failure: "on_store_failure" cannot be
    ${PLAN}, shadow_mode: true | ${CREDITS} => rate_limits[0].shadow_mode: "shadow_mode" cannot be combined with
    ${PLAN}, enforce_percent: 5 | ${CREDITS} => rate_limits[0].enforce_percent: "enforce_percent" cannot be
    ${PLAN}, allow_debt: true | ${CREDITS}
      rate_limits[0].allow_debt: "allow_debt" cannot be in a chain of limits
    ${PLAN}, on_over: { allow: true } | ${CREDITS} => rate_limits[0].on_over: "on_over" cannot be in a chain
    ${PLAN} | name: credits, concurrency: { max: 5 }
      rate_limits[1].concurrency: "concurrency" cannot be in a chain
    ${PLAN} | ${CREDITS}, hold: { amount: 1 } => rate_limits[1].hold: "hold" cannot be in a chain of limits
  `)('refuses %s', (items, message) => {
    expect(errorsOf(list(...items.split(' | ')))).toEqual([expect.stringContaining(message)]);
  });

  test('cannot be in a single limit', () => {
    const node = (fields: string) => `domain: d\ndescriptors: [{ key: k, ${fields} }]\n`;
    expect(errorsOf(node(`rate_limit: { ${PLAN} }`))).toHaveLength(1);
  });
});
