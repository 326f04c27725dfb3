import { describe, expect, test } from '@jest/globals';
import { type Arrival, contradictions, policySet } from '../../support/replay/arrivals.js';

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
});
