import { test } from '@jest/globals';
import fc from 'fast-check';
import { expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { type Arrival, chainSet, contradictions, policySet } from '../../support/replay/arrivals.js';

const START_MICROS = 1_700_000_000_000_000;

const arrivals = fc
  .record({
    precisionMicros: fc.constantFrom(1, 1000, 50_000, 1_000_000),
    /** Whether all requests have one hit, as nearly all do. */
    single: fc.boolean(),
    gaps: fc.array(
      fc.record({
        gapMicros: fc.oneof(fc.nat(2000), fc.nat(200_000), fc.nat(3_000_000)),
        tenant: fc.constantFrom('a', 'b'),
        /** 0 for a call that only asks, as before a charge. */
        hits: fc.constantFrom(0, 1, 2, 3),
        wasDenied: fc.boolean(),
      }),
      { minLength: 1, maxLength: 60 },
    ),
  })
  .map(({ precisionMicros, single, gaps }) => {
    let micros = START_MICROS;
    const list = gaps.map(({ gapMicros, tenant, hits, wasDenied }): Arrival => {
      micros += gapMicros;
      return { micros, tenant, hits: single ? 1 : hits, wasDenied };
    });
    return { precisionMicros, list };
  });

const limits = fc.oneof(
  fc
    .tuple(
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom('100ms', '1s', '2s'),
    )
    .map(
      ([max, tokens, every]) =>
        `token_bucket: { max_tokens: ${max}, tokens_per_fill: ${tokens}, fill_interval: ${every} }`,
    ),
  fc
    .tuple(fc.integer({ min: 1, max: 6 }), fc.constantFrom('second', 'minute'))
    .map(([requests, unit]) => `requests_per_unit: ${requests}, unit: ${unit}`),
);

test('every verdict and number is the one of the real order and times, or the log leaves it open', async () => {
  await fc.assert(
    fc.asyncProperty(
      arrivals,
      limits,
      fc.option(limits, { nil: undefined }),
      fc.boolean(),
      fc.option(limits, { nil: undefined }),
      fc.boolean(),
      async ({ precisionMicros, list }, ofTenant, ofAll, reversed, ofAllBefore, isSame) => {
        const policy = policySet(ofTenant, ofAll);
        const changed = ofAllBefore === undefined ? undefined : policySet(ofTenant, ofAllBefore);
        const before = isSame ? policy : changed;
        expectEqual(await contradictions(policy, list, { precisionMicros, reversed, before }), []);
      },
    ),
    runs(2000),
  );
});

test('every verdict of a chain is the one of the real order and times, or the log leaves it open', async () => {
  await fc.assert(
    fc.asyncProperty(
      arrivals,
      fc.array(limits, { minLength: 2, maxLength: 3 }),
      fc.option(limits, { nil: undefined }),
      fc.boolean(),
      fc.option(fc.array(limits, { minLength: 2, maxLength: 3 }), { nil: undefined }),
      fc.boolean(),
      async ({ precisionMicros, list }, ofTenant, ofAll, reversed, ofTenantBefore, isSame) => {
        const policy = chainSet(ofTenant, ofAll);
        const changed = ofTenantBefore === undefined ? undefined : chainSet(ofTenantBefore, ofAll);
        const before = isSame ? policy : changed;
        expectEqual(await contradictions(policy, list, { precisionMicros, reversed, before }), []);
      },
    ),
    runs(2000),
  );
});
