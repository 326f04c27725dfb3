import { expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import { Decider, descriptor, headers } from '../../support/policy/decider.js';

/** A policy whose rows are its plans. */
function policyWith(burst: number, more = ''): string {
  return `domain: d
response_headers: [x-ratelimit]
plans: { by: tenant, define: { acme: { burst: ${burst} }, evil: { blocked: true }, me: { unlimited: true }, new: { phase: monitoring, burst: 1 } } }
descriptors:
  - key: tenant
    rate_limit: { name: calls, token_bucket: { max_tokens: { plan: burst, default: 2 }, fill_interval: 1h }${more} }
`;
}

const of = (tenant: string) => [descriptor([`tenant=${tenant}`])];

test('each customer has the limit of its row, or of the default', () => {
  const decider = new Decider(policyWith(3));
  const passes = (tenant: string): number => {
    const codes = [1, 2, 3, 4, 5].map(() => decider.answer(of(tenant)).overallCode);
    return codes.filter((code) => code === CODE.OK).length;
  };
  expect(['acme', 'x', 'evil', 'me', 'new'].map(passes)).toEqual([3, 2, 0, 5, 5]);
  expect(headers(decider.answer(of('acme')))).toMatchObject({ 'x-ratelimit-limit': '3' });
  expect(headers(decider.answer(of('new')))).toMatchObject({ 'x-ratelimit-will-be-throttled': 'true' });
});

test('metrics and statistics have the names of the rule, whatever the row', () => {
  const decider = new Decider(policyWith(1));
  for (const tenant of ['acme', 'evil', 'x']) decider.answer(of(tenant));
  expect(decider.observer.told).toEqual([
    'd tenant OK',
    'd tenant OVER_LIMIT',
    'd tenant never 1 of 0',
    'd tenant OK',
  ]);
  expect(decider.observer.descriptors.map(({ stat }) => stat)).toEqual(['d.tenant', 'd.tenant', 'd.tenant']);
});

test('the metadata names the plan of the limit that it describes', () => {
  const user = '  - { key: user, rate_limit: { unit: minute, requests_per_unit: 9 } }\n';
  const decider = new Decider(`decision_metadata: true\n${policyWith(2)}${user}`);
  const planOf = (...descriptors: ReturnType<typeof of>) =>
    (decider.answer(descriptors).dynamicMetadata?.['decision'] as { plan?: string } | undefined)?.plan;
  expect(planOf(...of('acme'))).toBe('acme');
  expect(planOf(descriptor(['user=x']), ...of('new'))).toBe('new');
  expect(planOf(descriptor(['user=x']))).toBeUndefined();
});

test('a changed row never refills the bucket', () => {
  const decider = new Decider(policyWith(3));
  for (let i = 0; i < 3; i++) decider.answer(of('acme'));
  decider.reload(policyWith(10));
  const left = decider.answer(of('acme')).statuses[0]?.limitRemaining;
  // The larger bucket has room for seven more, one of which this request took.
  expect(left).toBeLessThanOrEqual(6);
  decider.reload(policyWith(3));
  expect(decider.answer(of('acme')).overallCode).toBe(CODE.OVER_LIMIT);
});

/** A policy with reservations in a window, whose rows are its plans. */
function reservationsOf(acme: string, pair = 'token'): string {
  return `domain: d
plans: { by: tenant, define: { acme: { ${acme} }, other: { n: 30 } } }
descriptors:
  - key: tenant
    rate_limit:
      { algorithm: fixed_window, unit: year, requests_per_unit: { plan: n, default: 10 }, max_debt: 0, hold: { amount: 5, pair: ${pair} } }
`;
}

const left = (decider: Decider): number | undefined =>
  decider.answer([descriptor(['tenant=acme'], { hitsAddend: 0 })]).statuses[0]?.limitRemaining;

test('a settlement charges the use up to the limit of the customer', () => {
  const decider = new Decider(reservationsOf('n: 100'));
  const token = String(decider.answer(of('acme')).dynamicMetadata?.['hold']);
  decider.answer([descriptor([`hold=${token}`], { hitsAddend: 90 })]);
  // The limit of customers without a row allows a use of at most 10.
  expect(left(decider)).toBe(10);
  expect(decider.observer.told.join()).not.toContain('forgiven');
});

test('a raised limit acts at once, also if the use of a request exceeded the limit before', () => {
  const decider = new Decider(reservationsOf('n: 10'));
  const token = String(decider.answer(of('acme')).dynamicMetadata?.['hold']);
  decider.answer([descriptor([`hold=${token}`], { hitsAddend: 30 })]);
  expect(left(decider)).toBe(0);
  decider.reload(reservationsOf('n: 100'));
  expect(left(decider)).toBe(90);
});

test('the end of a request settles its hold also after the row made the customer blocked or unlimited', () => {
  for (const row of ['blocked: true', 'unlimited: true', 'n: 50']) {
    const decider = new Decider(reservationsOf('n: 100'));
    const token = String(decider.answer(of('acme')).dynamicMetadata?.['hold']);
    decider.reload(reservationsOf(row));
    decider.answer([descriptor([`hold=${token}`], { hitsAddend: 2 })]);
    decider.reload(reservationsOf('n: 100'));
    expect([row, left(decider)]).toEqual([row, 98]);
  }
});

test('with pair: oldest, an end settles the oldest hold under the changed limit', () => {
  const decider = new Decider(reservationsOf('n: 100', 'oldest'));
  const call = (hitsAddend: number) => decider.answer([descriptor(['tenant=acme'], { hitsAddend })]);
  for (let i = 0; i < 2; i++) call(0);
  decider.reload(reservationsOf('n: 12', 'oldest'));
  call(2);
  expect(decider.observer.told).toContain('d tenant settled 5 used 2');
  // 7 hits are used, so that a start with 5 more is the last one.
  expect([0, 0].map((hits) => call(hits).overallCode)).toEqual([CODE.OK, CODE.OVER_LIMIT]);
});
