import { describe, expect, test } from '@jest/globals';
import { LearnedEstimates } from '../../../../src/service/holds/learned-estimates.js';
import { Decider, descriptor } from '../../../support/policy/decider.js';
import { policyOf, setOf } from '../../../support/policy/policies.js';

/** Returns a policy whose tenants learn with these fields. */
function policy(
  learned = 'start: 4000, max: 20000',
  limit = 'unit: day, requests_per_unit: 1000000',
): string {
  return `
domain: d
descriptors:
  - key: tenant
    rate_limit: { ${limit}, hold: { learned: { ${learned} } } }
`;
}

/** Starts a call of a tenant. Returns its token and its estimate. */
function start(decider: Decider, tenant = 'acme'): { readonly token: string; readonly hits: number } {
  const token = decider.answer([descriptor([`tenant=${tenant}`])]).dynamicMetadata?.['hold'];
  const hits = decider.observer.told
    .findLast((text) => / placed /.test(text))
    ?.split(' ')
    .at(-1);
  return { token: String(token), hits: Number(hits) };
}

function settle(decider: Decider, token: string, used?: number): void {
  decider.answer([descriptor([`hold=${token}`, 'done=1'], used === undefined ? {} : { hitsAddend: used })]);
}

function call(decider: Decider, used: number | undefined, count = 1, tenant = 'acme'): void {
  for (let i = 0; i < count; i++) settle(decider, start(decider, tenant).token, used);
}

describe('a rule with learned estimates', () => {
  test('holds start, and later the quantile of the uses', () => {
    const decider = new Decider(policy());
    call(decider, 1000, 19);
    expect(start(decider).hits).toBe(4000);
    call(decider, 1000);
    expect(start(decider).hits).toBe(1024);
    expect(start(decider, 'other').hits).toBe(4000);
  });

  test('learns nothing from unknown uses', () => {
    const decider = new Decider(policy());
    call(decider, undefined, 30);
    expect(start(decider).hits).toBe(4000);
  });

  test('learns nothing from tokens that settle nothing: forged, repeated and expired ones', () => {
    const decider = new Decider(policy());
    const { token } = start(decider);
    const forged = token.slice(0, 6) + (token[6] === '1' ? '2' : '1') + token.slice(7);
    for (let i = 0; i < 30; i++) settle(decider, forged, 20_000);
    for (let i = 0; i < 30; i++) settle(decider, token, 20_000);
    for (let i = 0; i < 30; i++) {
      const late = start(decider).token;
      decider.clock.advance(600_000_001);
      settle(decider, late, 20_000);
    }
    expect(start(decider).hits).toBe(4000);
  });

  test('never holds more than the limit allows, so that a limit without holds allows a request', () => {
    const decider = new Decider(policy('start: 100', 'unit: hour, requests_per_unit: 500'));
    for (let i = 0; i < 30; i++) {
      call(decider, 100_000);
      decider.clock.advance(3 * 3_600_000_000);
    }
    expect(start(decider).hits).toBe(500);
  });

  test('looks without an estimate, and gives back only the given hits', () => {
    const decider = new Decider(policy());
    const left = (): number | undefined =>
      decider.answer([descriptor(['tenant=acme'], { hitsAddend: 0 })]).statuses[0]?.limitRemaining;
    expect(left()).toBe(1_000_000);
    start(decider);
    decider.answer([descriptor(['tenant=acme'], { hitsAddend: 7, isNegativeHits: true })]);
    expect(left()).toBe(996_007);
  });
});

describe('a reload', () => {
  test('keeps what a rule learned, and applies new settings', () => {
    const decider = new Decider(policy());
    call(decider, 1000, 18);
    call(decider, 8000, 2);
    expect(start(decider).hits).toBe(1024);
    decider.reload(policy('start: 10, max: 20000, quantile: 0.95'));
    expect(start(decider).hits).toBe(10);
    call(decider, 8000, 20);
    expect(start(decider).hits).toBe(8192);
    decider.reload(policy('start: 10, max: 5000, quantile: 0.95'));
    expect(start(decider).hits).toBe(5000);
  });

  test('forgets a rule that is removed, or whose buckets have another shape', () => {
    const window = policy();
    for (const other of [
      policy('start: 4000', 'unit: hour, requests_per_unit: 1000000'),
      'domain: d\ndescriptors: []\n',
    ]) {
      const decider = new Decider(window);
      call(decider, 1000, 20);
      decider.reload(other);
      expect([...decider.estimates.current()]).toEqual([]);
      decider.reload(window);
      expect(start(decider).hits).toBe(4000);
    }
  });

  test('settles holds of the previous policy, and learns from them', () => {
    const decider = new Decider(policy());
    const tokens = Array.from({ length: 20 }, () => start(decider).token);
    decider.reload(policy('start: 3000, max: 20000'));
    for (const token of tokens) settle(decider, token, 1000);
    expect(start(decider).hits).toBe(1024);
  });
});

test('the current estimates are those of rules that were used', () => {
  const decider = new Decider(`
domain: d
descriptors:
  - key: tenant
    rate_limit: { unit: day, requests_per_unit: 900000, hold: { learned: { start: 5 } } }
  - { key: unused, rate_limit: { unit: day, requests_per_unit: 900, hold: { learned: { start: 5 } } } }
`);
  expect([...decider.estimates.current()]).toEqual([]);
  start(decider);
  expect([...decider.estimates.current()]).toEqual([{ domain: 'd', rule: 'tenant', hits: 5 }]);
  call(decider, 100);
  expect([...decider.estimates.current()]).toEqual([{ domain: 'd', rule: 'tenant', hits: 107 }]);
});

test('all rules together remember at most 8,192 buckets, and one rule at most 512', () => {
  const estimates = new LearnedEstimates();
  const bucketCount = (rules: number, buckets: number): number => {
    const nodes = Array.from({ length: rules }, (_, i) => {
      const limit = '{ unit: day, requests_per_unit: 9000, hold: { learned: { start: 5 } } }';
      return `  - { key: k${i}, rate_limit: ${limit} }`;
    });
    const set = setOf(policyOf(`domain: d\ndescriptors:\n${nodes.join('\n')}\n`));
    estimates.setPolicies(set);
    for (const rule of set.domains.get('d')?.rules ?? []) {
      for (let i = 0; i < buckets; i++) estimates.learn('d', rule, `b${i}`, 1);
    }
    return estimates.bucketCount;
  };
  expect(bucketCount(1, 2000)).toBe(512);
  expect(bucketCount(32, 2000)).toBe(8192);
  expect(bucketCount(2048, 10)).toBe(8192);
  estimates.setPolicies(undefined);
  expect(estimates.bucketCount).toBe(0);
});
