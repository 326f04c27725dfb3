import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { diffPolicies } from '../../../src/config/diff/diff-policies.js';
import { explain } from '../../../src/config/show/explain.js';
import { formatProblem } from '../../../src/config/yaml/config-problem.js';
import { localRate } from '../../../src/limiter/local-rate.js';
import type { Rate } from '../../../src/limiter/rate.js';
import { describeRule } from '../../../src/policy/describe.js';
import { DEFAULT_MAX_MATCH_WORK, MatchWork } from '../../../src/policy/match-work.js';
import { type ClassSpec, capacityFor, keptHits } from '../../../src/policy/priorities.js';
import { decisionLine } from '../../../src/server/decision-log/decision-log.js';
import { cases } from '../../support/assert/cases.js';
import { Decider, descriptor, headers } from '../../support/policy/decider.js';
import { entries, parse, policyOf, setOf } from '../../support/policy/policies.js';
import { repositoryRoot } from '../../support/process/tools.js';

const SECOND = 'algorithm: token_bucket, unit: second, requests_per_unit: 100';
const CLASSES = 'priorities: { by: class, keep: { batch: 50%, standard: 20, interactive: 0 } }';
const shared = (limit: string): string =>
  `domain: d\ndescriptors: [{ key: tenant, descriptors: [{ key: class, rate_limit: { ${limit} } }] }]\n`;
const policy = policyOf(shared(`${SECOND}, ${CLASSES}`));

const limitOf = (rate: Rate | undefined): number | undefined => rate?.reportedLimit;

describe('the limit of a class', () => {
  test.each([
    ['batch', 'batch', 50],
    ['standard', 'standard', 80],
    ['interactive', 'interactive', 100],
    ['other', 'batch', 50],
    ['', 'batch', 50],
  ])('class=%s is the class %s, which can use %d', (value, className, limit) => {
    const { rules, keys } = policy.match(entries('tenant=a', `class=${value}`));
    expect(rules.map((rule) => [rule.className, limitOf(rule.rate)])).toEqual([[className, limit]]);
    expect(keys).toEqual(['1:d6:tenant1:a5:class0*']);
  });

  test('a descriptor that lacks the entry meets the limit as the class unknown', () => {
    const { rules, keys, entries: shown } = policy.match(entries('tenant=a'));
    expect(rules.map(({ className }) => className)).toEqual(['batch']);
    expect(keys).toEqual(['1:d6:tenant1:a5:class0*']);
    expect(shown).toEqual(entries('tenant=a'));
  });

  test('a descriptor that lacks the entry meets the limit, whatever other nodes of the level match', () => {
    for (const sibling of ['value_regex: "(gold)?"', 'value: "*d"']) {
      const { rules } = policyOf(
        `domain: d\ndescriptors: [{ key: tenant, descriptors: [{ key: class, ${sibling} }, ` +
          `{ key: class, rate_limit: { ${SECOND}, ${CLASSES} } }] }]\n`,
      ).match(entries('tenant=a'));
      expect(rules.map(({ className }) => className)).toEqual(['batch']);
    }
  });

  test('the search for a limit without the entry is bounded by the matching work', () => {
    const depth = 60;
    const nested = (level: number): string =>
      level === depth
        ? ''
        : `{ key: c${level}, rate_limit: { ${SECOND}, priorities: { by: c${level}, keep: { a: 0 } } } }, ` +
          `{ key: k, descriptors: [${nested(level + 1)}] }`;
    const deep = policyOf(`domain: d\ndescriptors: [${nested(0)}]\n`);
    const asked = entries(...Array.from({ length: depth }, () => 'k=1'));
    const work = new MatchWork(DEFAULT_MAX_MATCH_WORK);
    deep.match(asked, work);
    expect(work.exceeded).toBeUndefined();
    // One lookup for each level.
    const little = new MatchWork(1);
    deep.match(entries('k=1', 'k=1'), little);
    expect(little.exceeded).toBe('match_work');
  });

  test('classes of a list are told apart, whatever their names', () => {
    const limits = ['{ a: 1, "a\\nb": 2 }', '{ c: 3, "b\\nc": 4 }'].map(
      (keep, i) => `{ name: l${i}, ${SECOND}, priorities: { by: class, keep: ${keep} } }`,
    );
    const list = policyOf(
      `domain: d\ndescriptors: [{ key: tenant, descriptors: [{ key: class, rate_limits: [${limits}] }] }]\n`,
    );
    const namesOf = (value: string) =>
      list
        .match([
          { key: 'tenant', value: 'a' },
          { key: 'class', value },
        ])
        .rules.map(({ className }) => className);
    expect([namesOf('a'), namesOf('c')]).toEqual([
      ['a', 'b\nc'],
      ['a\nb', 'c'],
    ]);
  });

  test('other descriptors still match nothing', () => {
    for (const texts of [['class=batch'], ['tenant=a', 'class=b', 'class=c'], ['tenant=a', 'other=1'], []])
      expect(policy.match(entries(...texts)).rules).toEqual([]);
  });

  test('is the same object for every request of the class', () => {
    const ruleOf = (tenant: string) => policy.match(entries(`tenant=${tenant}`, 'class=batch')).rules[0];
    expect(ruleOf('a')).toBe(ruleOf('b'));
  });

  test('may be below the entry that names it, which descriptors may lack anywhere', () => {
    const below = policyOf(
      `domain: d\ndescriptors: [{ key: class, descriptors: [{ key: tenant, descriptors: [{ key: path,
       rate_limit: { ${SECOND}, ${CLASSES} } }], rate_limit: { unit: hour, requests_per_unit: 7 } }] }]\n`,
    );
    const named = below.match(entries('class=standard', 'tenant=a', 'path=/'));
    const lacking = below.match(entries('tenant=a', 'path=/'));
    expect(named.keys).toEqual(['1:d5:class0*6:tenant1:a4:path1:/']);
    expect(lacking.keys).toEqual(named.keys);
    expect([named, lacking].map(({ rules }) => limitOf(rules[0]?.rate))).toEqual([80, 50]);
    expect(lacking.hashTagLength).toBe(named.hashTagLength);
    // A limit without classes keeps the entry in its name, and needs it.
    expect(below.match(entries('class=batch', 'tenant=a')).keys).toEqual([
      '1:d5:class5:batch6:tenant1:a%3600',
    ]);
    expect(below.match(entries('tenant=a')).rules).toEqual([]);
  });

  test('a list has a bucket for each value of the entry, and one for all of them', () => {
    const list = policyOf(
      `domain: d\ndescriptors: [{ key: service, value: s, descriptors: [{ key: tenant, rate_limits: [
         { name: own, unit: second, requests_per_unit: 20, then: common },
         { name: common, unit: second, requests_per_unit: 60, priorities: { by: tenant, keep: { any: 0 } } }] }] }]\n`,
    );
    const { keys, rules } = list.match(entries('service=s', 'tenant=a'));
    expect(keys).toEqual(['1:d7:service1:s6:tenant1:a~3:own%1', '1:d7:service1:s6:tenant0*~6:common%1']);
    expect(rules.map(({ className }) => className)).toEqual(['', 'any']);
  });

  test('follows the number of the plan', () => {
    const planned = policyOf(`
domain: d
plans: { by: tenant, default: free, define: { free: { rate: 10 }, gold: { rate: 1001 } } }
descriptors:
  - key: tenant
    descriptors:
      - key: class
        rate_limit: { unit: minute, requests_per_unit: { plan: rate }, priorities: { by: class, keep: { low: 50%, high: 0 } } }
`);
    const limitFor = (tenant: string, name: string) =>
      limitOf(planned.match(entries(`tenant=${tenant}`, `class=${name}`)).rules[0]?.rate);
    expect(limitFor('free', 'low')).toBe(5);
    expect(limitFor('gold', 'low')).toBe(501);
    expect(limitFor('gold', 'high')).toBe(1001);
  });

  test('denies a blocked customer in every class', () => {
    const blocked = new Decider(`
domain: d
plans: { by: tenant, default: free, define: { free: { rate: 10 }, bad: { blocked: true } } }
descriptors:
  - key: tenant
    descriptors:
      - key: class
        rate_limit: { unit: minute, requests_per_unit: { plan: rate }, priorities: { by: class, keep: { low: 50%, high: 0 } } }
`);
    const codes = ['low', 'high'].map(
      (name) => blocked.answer([descriptor(['tenant=bad', `class=${name}`])]).overallCode,
    );
    expect(codes).toEqual([2, 2]);
  });
});

describe('a share', () => {
  test('rounds down', () => {
    const kept = (keep: number, capacity: number) => keptHits({ name: 'a', keep, isShare: true }, capacity);
    expect([kept(50_000, 5), kept(29_000, 100), kept(99_999, 4_294_967_295), kept(1, 99_999)]).toEqual([
      2, 29, 4_294_924_345, 0,
    ]);
  });

  test('gives the smallest limit in which a class can use a number of hits', () => {
    for (const keep of [0, 1, 29_000, 33_333, 50_000, 99_000, 99_999]) {
      const one: ClassSpec = { name: 'a', keep, isShare: true };
      for (const used of [1, 2, 3, 50, 999, 12_345]) {
        const capacity = capacityFor(one, used);
        expect(capacity - keptHits(one, capacity)).toBeGreaterThanOrEqual(used);
        expect(capacity - 1 - keptHits(one, capacity - 1)).toBeLessThan(used);
      }
    }
  });
});

describe('an answer', () => {
  const KINDS = [
    ['a token bucket', `token_bucket: { max_tokens: 10, tokens_per_fill: 1, fill_interval: 10s }`],
    ['a window', 'unit: hour, requests_per_unit: 10'],
  ] as const;

  test.each(KINDS)('of %s tells the class what it has and can still take', (_, limit) => {
    const decider = new Decider(
      `response_headers: [x-ratelimit, retry-after]\ndecision_metadata: true\n${shared(
        `${limit}, priorities: { by: class, keep: { low: 40%, high: 0 } }`,
      )}`,
    );
    const ask = (name: string, hits: number) => {
      const response = decider.answer([descriptor(['tenant=a', `class=${name}`], { hitsAddend: hits })]);
      const { 'x-ratelimit-limit': most, 'x-ratelimit-remaining': left } = headers(response);
      const decision = response.dynamicMetadata?.['decision'];
      return {
        code: response.overallCode,
        most,
        left,
        current: response.statuses[0]?.currentLimit?.requestsPerUnit,
        decision,
      };
    };
    expect(ask('high', 5)).toMatchObject({
      code: 1,
      most: '10',
      left: '5',
      current: 10,
      decision: { class: 'high', limit: 10, remaining: 5 },
    });
    expect(ask('low', 1)).toMatchObject({ code: 1, most: '6', left: '0', current: 6 });
    expect(ask('low', 1)).toMatchObject({
      code: 2,
      most: '6',
      left: '0',
      decision: { class: 'low', limit: 6 },
    });
    expect(ask('high', 4)).toMatchObject({ code: 1, left: '0' });
    expect(ask('high', 1)).toMatchObject({ code: 2 });
  });

  test('is logged with the class, whose limit it has', () => {
    const lines: string[] = [];
    const decider = new Decider(shared(`${SECOND}, ${CLASSES}`), {
      decisionLog: { sample: () => 1, write: (record) => lines.push(decisionLine(record)) },
    });
    decider.answer([descriptor(['tenant=a', 'class=other']), descriptor(['none=1'])]);
    const { descriptors } = JSON.parse(lines[0] as string);
    expect(descriptors[0]).toMatchObject({ rule: 'tenant/class', class: 'batch', limit: 50, remaining: 49 });
    expect(descriptors[1]).not.toHaveProperty('class');
  });

  test('has the time until the floor of the class is passed as retry-after', () => {
    const decider = new Decider(
      `response_headers: [retry-after]\n${shared(
        'token_bucket: { max_tokens: 10, fill_interval: 1s }, priorities: { by: class, keep: { low: 4, high: 0 } }',
      )}`,
    );
    const ask = (name: string, hits: number) =>
      decider.answer([descriptor(['tenant=a', `class=${name}`], { hitsAddend: hits })]);
    expect(ask('high', 10).overallCode).toBe(1);
    // 4 tokens for the floor, and one to take.
    expect(headers(ask('low', 1))['retry-after']).toBe('5');
    expect(headers(ask('high', 1))['retry-after']).toBe('1');
    decider.clock.advance(4_999_999);
    expect(ask('low', 1).overallCode).toBe(2);
    decider.clock.advance(1);
    expect(ask('low', 1).overallCode).toBe(1);
  });

  test('a flood of a class takes nothing from a window that others may use', () => {
    const decider = new Decider(
      shared('unit: hour, requests_per_unit: 10, priorities: { by: class, keep: { low: 40%, high: 0 } }'),
    );
    const codes = (name: string, times: number) =>
      Array.from(
        { length: times },
        () => decider.answer([descriptor(['tenant=a', `class=${name}`])]).overallCode,
      );
    expect(codes('low', 50).filter((code) => code === 1)).toHaveLength(6);
    expect(codes('high', 5)).toEqual([1, 1, 1, 1, 2]);
  });
});

test('each replica enforces its share of all classes while the store is unavailable', () => {
  const shares = ['batch', 'interactive'].map((name) => {
    const rate = policy.match(entries('tenant=a', `class=${name}`)).rules[0]?.rate as Rate;
    return localRate(rate, 0.5, 1);
  });
  expect(shares).toMatchObject([
    { maxTokens: 25, maxDebt: 25, refillNumerator: 20_000, refillDenominator: 1 },
    { maxTokens: 50, maxDebt: 0, refillNumerator: 20_000, refillDenominator: 1 },
  ]);
});

describe('descriptions', () => {
  test('of the limit name its classes, and those of a class its part', () => {
    const [whole] = policy.rules;
    const [batch] = policy.match(entries('tenant=a', 'class=batch')).rules;
    expect(whole && describeRule(whole, 0)).toBe(
      'token bucket: 100 tokens, 100 every 1s; phase active; on store failure error; classes by class: batch keeps ' +
        '50%, standard keeps 20, interactive keeps 0, others are batch',
    );
    expect(batch && describeRule(batch, 0)).toBe(
      'token bucket: 100 tokens, 100 every 1s; phase active; on store failure error; class batch, which can use 50 ' +
        'of 100',
    );
  });
});

describe('weir explain', () => {
  test('tells why a descriptor without the entry meets a limit', () => {
    const result = (text: string, ...asked: string[]) => explain(setOf(text), 'd', entries(...asked)).result;
    expect(result(shared(`${SECOND}, ${CLASSES}`), 'tenant=a')).toBe(
      'The rule at tenant/class applies to the class batch, because the descriptor lacks only the entry class.',
    );
    const list = `domain: d\ndescriptors: [{ key: class, descriptors: [{ key: tenant, rate_limits: [
      { name: x, ${SECOND}, ${CLASSES} }, { name: y, unit: hour, requests_per_unit: 5, ${CLASSES.replace('20', '1')} }] }] }]\n`;
    expect(result(list, 'tenant=a')).toBe(
      'The limits class/tenant[x], class/tenant[y] apply together to the class batch, because the descriptor lacks ' +
        'only the entry class.',
    );
    expect(result(shared(`${SECOND}, ${CLASSES}`), 'tenant=a', 'class=batch')).toBe(
      'The rule at tenant/class applies.',
    );
  });
});

describe('weir diff', () => {
  const keep = (text: string) =>
    setOf(shared(`${SECOND}${text && `, priorities: { by: class, keep: { ${text} } }`}`));
  test.each([
    ['', 'low: 10'],
    ['low: 50%', 'low: 60'],
    ['low: 50%', 'low: 40'],
    ['low: 10', ''],
  ])('keep { %s } -> { %s } may deny more, of this class or of others', (before, after) => {
    const settings = diffPolicies(keep(before), keep(after), 0).filter(
      ({ setting }) => setting === 'priorities',
    );
    expect(settings.map(({ tightens }) => tightens)).toEqual([true]);
  });

  test('the order of classes has no effect', () => {
    expect(diffPolicies(keep('low: 50%, high: 0'), keep('high: 0, low: 50%'), 0)).toEqual([]);
  });

  test('another entry gives the limit another bucket, and other parts do not', () => {
    const texts = (before: string, after: string) =>
      diffPolicies(keep(before), keep(after), 0).map(({ text }) => text);
    expect(texts('', 'low: 10')).toEqual(["priorities is set; the rule's bucket starts over"]);
    expect(texts('low: 10', 'low: 20')).toEqual(['priorities differs']);
  });
});

const problemsOf = (text: string): readonly string[] =>
  parse(text).problems.errors.map((one) => formatProblem(one).slice('policy.yaml:'.length));
const PLAIN = 'unit: hour, requests_per_unit: 10';
/** Returns the problems of a limit, after the path of the limit. */
const limitProblems = (limit: string): readonly string[] =>
  problemsOf(shared(limit)).map((one) => one.replace('descriptors[0].descriptors[0].rate_limit.', '…'));

describe('errors of a limit', () => {
  test.each(cases`
    priorities: { by: class }
      2:119: …priorities: "keep" is missing; write what each class leaves to the others, as in keep: { batch: 50%,
        interactive: 0 }
    priorities: { keep: { a: 1 } }
      2:119: …priorities.by: "by" is missing; write the key of the entry that names the class of the caller, as in
        by: class
    priorities: { by: class, keep: {} }
      2:138: …priorities.keep: "keep" has 0 classes; write 1 to 16 classes, each with a number or a share, such as
        batch: 50%
    priorities: { by: class, keep: { "": 1 } }
      2:144: …priorities.keep[""]: the name of the class is empty; write a name, such as batch
    priorities: { by: class, keep: { a: 1 }, unknown: "" }
      2:157: …priorities.unknown: "" is not a class in "keep"; write the name of a class in "keep"
    priorities: { by: class, keep: { a: 1 }, unknown: }
      2:157: …priorities.unknown: "unknown" is empty; write a value after it, or remove the key
    priorities: { by: "", keep: { a: 1 } }
      2:125: …priorities.by: "by" is missing; write the key of the entry that names the class of the caller, as in
        by: class
    priorities: { by: class, keep: { ${Array.from({ length: 17 }, (_, i) => `c${i}: 1`).join(', ')} } }
      2:138: …priorities.keep: "keep" has 17 classes; write 1 to 16 classes, each with a number or a share, such as
        batch: 50%
    priorities: { by: class, keep: { a: 10, b: 0 } }
      2:143: …priorities.keep.a: the class "a" keeps 10 of a limit of 10, so none of its requests could ever pass; keep
        at most 9
    priorities: { by: class, keep: { a: 100% } }
      2:143: …priorities.keep.a: the class "a" keeps 100% of a limit of 10, so none of its requests could ever pass;
        keep at most 9
    priorities: { by: class, keep: { a: 50.12345% } }
      2:143: …priorities.keep.a: what a class keeps must be a whole number up to 4294967295 or a percentage, not
        "50.12345%"; write a number such as 20, or a share of the limit such as 50%
    priorities: { by: class, keep: { a: -1 } }
      2:143: …priorities.keep.a: what a class keeps must be a whole number up to 4294967295 or a percentage, not "-1";
        write a number such as 20, or a share of the limit such as 50%
    priorities: { by: class, keep: { a: } }
      2:143: …priorities.keep.a: what a class keeps must be a whole number up to 4294967295 or a percentage, not
        nothing; write a number such as 20, or a share of the limit such as 50%
    priorities: { by: class, keep: { a: [1] } }
      2:143: …priorities.keep.a: what a class keeps must be a whole number up to 4294967295 or a percentage, not a list;
        write a number such as 20, or a share of the limit such as 50%
    priorities: { by: class, keep: { a: { plan: x } } }
      2:143: …priorities.keep.a: what a class keeps must be a whole number up to 4294967295 or a percentage, not a
        mapping; write a number such as 20, or a share of the limit such as 50%
    priorities: { by: class, keep: { batch: 1 }, unknown: bach }
      2:161: …priorities.unknown: "bach" is not a class in "keep"; did you mean "batch"?
    priorities: { by: class, keep: { batch: 1 }, unknown: other }
      2:161: …priorities.unknown: "other" is not a class in "keep"; write the name of a class in "keep"
    priorities: { by: klass, keep: { a: 1 } }
      2:125: …priorities.by: no descriptor from the top to the limit has the key "klass"; did you mean "class"?
    priorities: { by: other, keep: { a: 1 } }
      2:125: …priorities.by: no descriptor from the top to the limit has the key "other"; move the limit to a descriptor
        with key: other, or below one
    priorities: { by: class, keep: { a: 1 } }, allow_debt: true
      2:162: …allow_debt: "allow_debt" cannot be combined with "priorities", because a charge is always allowed, so it
        would take what its class must leave; remove one of the two
    priorities: { by: class, keep: { a: 6 } }, hold: { amount: 5 }, max_debt: 0
      2:143: …priorities.keep.a: the class "a" can use 4 of a limit of 10, but each request holds 5, so none of its
        requests could ever pass; keep at most 5, or lower "amount"
    priorities: { by: class, keep: { a: 1 } }, hold: { amount: 5 }
      2:119: …priorities: "priorities" cannot be combined with a window whose settlements leave debt, because classes
        would disagree about the debt; add max_debt: 0, or write algorithm: token_bucket
  `)('%s', (fields, message) => {
    expect(limitProblems(`${PLAIN}, ${fields}`)).toEqual([message]);
  });

  test.each([
    ['unit: hour, requests_per_unit: 0', '0', 'raise the limit'],
    ['unit: hour, requests_per_unit: 1', '1', 'keep 0'],
    ['concurrency: { max: 3 }', '3', 'keep at most 2'],
    ['token_bucket: { max_tokens: 2, fill_interval: 1s }', '2', 'keep at most 1'],
  ])('a class keeps all of %s', (limit, keep, remedy) => {
    const [message = ''] = limitProblems(`${limit}, priorities: { by: class, keep: { a: ${keep} } }`);
    expect(message).toContain(
      `the class "a" keeps ${keep} of a limit of ${keep}, so none of its requests could ever pass; ${remedy}`,
    );
  });

  test('an unlimited rule has no classes', () => {
    expect(limitProblems('unlimited: true, priorities: { by: class, keep: { a: 1 } }')).toEqual([
      '2:101: …priorities: an unlimited rule cannot have "priorities"; remove "priorities" or "unlimited"',
    ]);
  });
});

describe('errors of a path', () => {
  const limit = (by: string, rate = PLAIN): string => `${rate}, priorities: { by: ${by}, keep: { a: 1 } }`;
  test.each([
    [
      `descriptors: [{ key: t, descriptors: [{ key: class, value: batch, rate_limit: { ${limit('class')} } }] }]`,
      'the descriptor with the key "class" matches only some values, so other classes would not meet the limit; ' +
        'remove its value, and name the classes in "keep"',
    ],
    [
      `descriptors: [{ key: t, descriptors: [{ key: api_key, rate_limit: { ${limit('api_key')} } }] }]`,
      'the values of "api_key" are secrets, which a policy must not contain; derive another entry from it with ' +
        '"derive", and write the key of that entry',
    ],
    [
      `descriptors: [{ key: class, rate_limits: [{ ${limit('class')} }, { ${PLAIN} }] }]`,
      '"class" is the first entry of the descriptor, so other limits of the list could be on another Redis server; ' +
        'put the descriptor below another one, such as key: generic_key',
    ],
    [
      `descriptors: [{ key: a, descriptors: [{ key: b, rate_limits: [{ ${limit('a')} }, { ${PLAIN} }] }] }]`,
      '"a" is the first entry of the descriptor, so other limits of the list could be on another Redis server; put ' +
        'the descriptor below another one, such as key: generic_key',
    ],
    [
      'plans: { by: t, default: free, define: { free: { rate: 5 } } }\n' +
        'descriptors: [{ key: s, descriptors: [{ key: t, ' +
        `rate_limit: { ${limit('t', 'unit: hour, requests_per_unit: { plan: rate }')} } }] }]`,
      'all values of "t" share one bucket, so its limit cannot come from the plan of one of them; write the number',
    ],
  ])('%s', (text, message) => {
    const problems = problemsOf(`domain: d\n${text}\n`);
    expect(problems.map((one) => one.replace(/^\d+:\d+: .*\.priorities\.by: /, ''))).toEqual([message]);
  });

  test('all limits of a list have the same entry', () => {
    const problems = problemsOf(
      'domain: d\ndescriptors: [{ key: a, descriptors: [{ key: b, ' +
        `rate_limits: [{ ${limit('a')} }, { ${limit('b')} }] }] }]\n`,
    );
    expect(problems).toHaveLength(2);
    expect(problems[0]).toContain('the limits of a list must have the same "by"; change one of them');
  });

  test('a row of plans in which a class could use nothing is refused', () => {
    const problems = problemsOf(
      'domain: d\nplans: { by: t, default: free, define: { free: { rate: 5 }, tiny: { rate: 1 } } }\n' +
        'descriptors: [{ key: t, descriptors: [{ key: class, rate_limit: { unit: hour, ' +
        'requests_per_unit: { plan: rate }, priorities: { by: class, keep: { plan: 1, b: 0 } } } }] }]\n',
    );
    expect(problems).toEqual([
      '2:67: plans.define.tiny: the class "plan" keeps 1 of a limit of 1, so none of its requests could ever pass; ' +
        'keep 0',
    ]);
  });
});

describe('the recipe of guaranteed shares', () => {
  const [, recipe = ''] = /^```yaml\n(# file: guaranteed-shares\.yaml\n.*?)^```/ms.exec(
    readFileSync(join(repositoryRoot, 'docs/policy/priorities.md'), 'utf8'),
  ) as RegExpExecArray;

  test('gives each tenant its own share, and the rest to those who need more', () => {
    const decider = new Decider(recipe);
    const passed = (tenant: string, times: number): number =>
      Array.from({ length: times }, () =>
        decider.answer([descriptor(['service=s', `tenant=${tenant}`])], 0, 'api'),
      ).filter(({ overallCode }) => overallCode === 1).length;
    // 20 of its own, and half of the rest.
    expect(passed('crawler', 500)).toBe(50);
    // 20 of their own each, and the other half.
    expect(passed('a', 40)).toBe(40);
    expect(passed('b', 40)).toBe(30);
    expect(passed('c', 40)).toBe(20);
    expect(passed('crawler', 10)).toBe(0);
  });
});
