import { describe, expect, test } from '@jest/globals';
import { type Arrival, contradictions, countsOf, decide, policySet } from '../../support/replay/arrivals.js';

const START_MICROS = 1_700_000_000_000_000;

function arrival(afterMicros: number, hits: number, tenant = 'a'): Arrival {
  return { micros: START_MICROS + afterMicros, hits, tenant, wasDenied: false };
}

describe('The ranges of a replay contain the truth', () => {
  test('if the first of two limits leaves open whether the second one took its hits', async () => {
    // In the log, the third request passes both limits. In fact, the tenant's limit denies it.
    const list = [arrival(0, 2), arrival(1, 1), arrival(67_000, 2), arrival(68_000, 1), arrival(68_000, 1)];
    const policy = policySet(
      'token_bucket: { max_tokens: 3, tokens_per_fill: 1, fill_interval: 100ms }',
      'token_bucket: { max_tokens: 2, tokens_per_fill: 3, fill_interval: 100ms }',
    );
    expect(await contradictions(policy, list, { precisionMicros: 1000, reversed: true })).toEqual([]);
  });

  test('if both the order and the time of requests leave open what has refilled', async () => {
    // In the log, the bucket of all tenants is full at the third request. In fact, it has 0.4 tokens.
    const list = [
      arrival(896_344, 3),
      arrival(919_174, 1, 'b'),
      arrival(1_000_000, 1),
      arrival(1_000_000, 1),
    ];
    const policy = policySet(
      'requests_per_unit: 3, unit: second',
      'token_bucket: { max_tokens: 3, tokens_per_fill: 4, fill_interval: 1s }',
    );
    expect(await contradictions(policy, list, { precisionMicros: 1_000_000, reversed: true })).toEqual([]);
  });

  test('if the bucket is full after an open decision', async () => {
    // In fact, the token is there at the third request, and then the bucket is full again.
    const list = [
      arrival(0, 1),
      arrival(1643, 1),
      arrival(65_505, 1),
      arrival(66_668, 1),
      arrival(134_000, 1),
    ];
    const policy = policySet(
      'token_bucket: { max_tokens: 2, tokens_per_fill: 3, fill_interval: 100ms }',
      undefined,
    );
    expect(await contradictions(policy, list, { precisionMicros: 1000, reversed: false })).toEqual([]);
  });

  test('if a denied request of the log really took the token that another one of the same time lacked', async () => {
    // In fact, the token is there only after the third request, and one of the last two requests gets it.
    const list = [
      arrival(2312, 1),
      arrival(3261, 1),
      arrival(500_000, 1),
      arrival(550_000, 1),
      arrival(550_000, 1),
    ];
    const policy = policySet(
      'token_bucket: { max_tokens: 2, tokens_per_fill: 2, fill_interval: 1s }',
      undefined,
    );
    expect(await contradictions(policy, list, { precisionMicros: 50_000, reversed: true })).toEqual([]);
  });
});

test('an open decision of a second limit does not make the range of the first one wide', async () => {
  // The limit of all allows one of two requests at one time. Then the tenant exceeds its own limit all the time.
  const list = [arrival(0, 1, 'b'), arrival(0, 1), ...eachMillisecond(1000, 3000)];
  const policy = policySet(
    'token_bucket: { max_tokens: 20, tokens_per_fill: 1, fill_interval: 3ms }',
    'token_bucket: { max_tokens: 1, tokens_per_fill: 2, fill_interval: 1ms }',
  );
  const counts = countsOf(await decide(policy, list, 2));
  expect([counts.get('tenant')?.[0], counts.get('tenant a')?.[0]]).toEqual([
    { least: 1981, most: 1981 },
    { least: 1981, most: 1982 },
  ]);
});

/** Returns requests of one hit, one in each millisecond. */
function eachMillisecond(first: number, count: number): readonly Arrival[] {
  return Array.from({ length: count }, (_, i) => arrival(1000 * (first + i), 1));
}
