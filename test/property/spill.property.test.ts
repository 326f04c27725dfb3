/*
 * Chains of limits (`then`) against a model. The buckets do not refill and windows do not end, so the model is a list
 * of numbers. A limit pays only if the limits before it have no room. A denied request takes no tokens. A refund goes
 * to the first limit. A chain therefore never admits more than the sum of its limits.
 */
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { CODE } from '../../src/codec/messages.js';
import { expectEqual } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { Decider, descriptor, headers } from '../support/policy/decider.js';

const NEVER = 'fill_interval: 8760h';
const TENANTS = ['a', 'b', 'c'] as const;
type Tenant = (typeof TENANTS)[number];

/** Capacities of a chain of a tenant, from its row of plans. */
const row = fc.record({
  capacities: fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 4, maxLength: 4 }),
  flag: fc.constantFrom('', '', '', '', 'blocked', 'unlimited'),
});
const call = fc.record({
  tenants: fc.uniqueArray(fc.constantFrom(...TENANTS), { minLength: 1, maxLength: 2 }),
  hits: fc.integer({ min: 0, max: 4 }),
  refunds: fc.oneof({ arbitrary: fc.constant(false), weight: 5 }, fc.constant(true)),
});
const scenario = fc.record({
  rows: fc.array(row, { minLength: TENANTS.length, maxLength: TENANTS.length }),
  length: fc.integer({ min: 2, max: 4 }),
  /** Whether the limits before the last one are windows. */
  windows: fc.boolean(),
  /** Capacity of a limit next to the chain. */
  other: fc.integer({ min: 5, max: 30 }),
  calls: fc.array(call, { minLength: 5, maxLength: 60 }),
});
type Scenario = typeof scenario extends fc.Arbitrary<infer Value> ? Value : never;

function policyOf({ rows, length, windows, other }: Scenario): string {
  const plans = rows.map(({ capacities, flag }, at) => {
    const values = capacities.map((capacity, i) => `n${i}: ${Math.max(1, capacity)}`);
    return `${TENANTS[at]}: { ${[...values.slice(0, length), ...(flag === '' ? [] : [`${flag}: true`])].join(', ')} }`;
  });
  const limits = Array.from({ length }, (_, i) => {
    const then = i + 1 < length ? `then: l${i + 1}, ` : '';
    const most = `{ plan: n${i}, default: 1 }`;
    const rate =
      windows && then !== ''
        ? `unit: year, requests_per_unit: ${most}`
        : `token_bucket: { max_tokens: ${most}, ${NEVER} }`;
    return `{ name: l${i}, ${then}${rate} }`;
  });
  return `domain: d
response_headers: [x-ratelimit]
plans: { by: tenant, define: { ${plans.join(', ')} } }
descriptors:
  - key: tenant
    rate_limits: [${limits.join(', ')}, { name: other, token_bucket: { max_tokens: ${other}, ${NEVER} } }]
`;
}

/** The tokens of a tenant's limits. */
interface Model {
  readonly flag: string;
  readonly capacities: readonly number[];
  readonly left: number[];
  readonly otherCapacity: number;
  other: number;
}

function modelOf({ rows, length, other }: Scenario): Map<Tenant, Model> {
  return new Map(
    rows.map(({ capacities, flag }, at) => {
      const sizes = capacities.slice(0, length).map((capacity) => Math.max(1, capacity));
      const model = { flag, capacities: sizes, left: [...sizes], otherCapacity: other, other };
      return [TENANTS[at] as Tenant, model];
    }),
  );
}

/** Tokens that a limit must have. A request of no hits asks whether there is room for one. */
const needed = (hits: number): number => Math.max(1, hits);

/** Returns the index of the limit that pays; -1 if none has room. */
const payingTake = ({ left }: Model, hits: number): number =>
  left.findIndex((tokens) => tokens >= needed(hits));

/** Applies a call to the model. Returns the code, and the limits that had no room, so that a later one paid. */
function expected(models: readonly Model[], hits: number, refunds: boolean): readonly unknown[] {
  if (refunds) {
    for (const model of models) {
      model.left[0] = Math.min(model.capacities[0] as number, (model.left[0] as number) + hits);
      model.other = Math.min(model.otherCapacity, model.other + hits);
    }
    return ['OK', []];
  }
  const payers = models.map((model) => (model.flag === 'unlimited' ? 0 : payingTake(model, hits)));
  const isDenied = models.some(
    ({ flag, other }, at) => flag === 'blocked' || other < needed(hits) || (payers[at] as number) < 0,
  );
  if (isDenied) return ['OVER_LIMIT', []];
  models.forEach((model, at) => {
    const payer = payers[at] as number;
    if (model.flag !== 'unlimited') model.left[payer] = (model.left[payer] as number) - hits;
    model.other -= hits;
  });
  return ['OK', payers.flatMap((payer) => Array.from({ length: payer }, (_, at) => `l${at}`))];
}

test('chains decide as the model does', () => {
  let spilled = 0;
  fc.assert(
    fc.property(scenario, (one) => {
      const decider = new Decider(policyOf(one));
      const models = modelOf(one);
      for (const { tenants, hits, refunds } of one.calls) {
        const isNegativeHits = refunds && hits > 0;
        const response = decider.answer(
          tenants.map((tenant) => descriptor([`tenant=${tenant}`], { hitsAddend: hits, isNegativeHits })),
        );
        const code = response.overallCode === CODE.OVER_LIMIT ? 'OVER_LIMIT' : 'OK';
        const names = decider.observer.told
          .splice(0)
          .flatMap((told) => /^d tenant\[(.*)\] spilled$/.exec(told)?.[1] ?? []);
        spilled += names.length;
        const asked = tenants.map((tenant) => models.get(tenant) as Model);
        expectEqual([code, names], expected(asked, hits, isNegativeHits));
        expectEqual(headers(response)['x-ratelimit-spilled'] !== undefined, names.length > 0);
      }
    }),
    runs(300),
  );
  expect(spilled).toBeGreaterThan(100);
});
