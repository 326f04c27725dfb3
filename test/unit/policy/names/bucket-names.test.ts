import { describe, expect, test } from '@jest/globals';
import { entriesKey } from '../../../../src/policy/names/bucket-key.js';
import { entries, policyOf } from '../../../support/policy/policies.js';

const LIMIT = 'rate_limit: { token_bucket: { max_tokens: 1, fill_interval: 1s } }';

/** The values of tenant and user are part of the name, so it equals {@link entriesKey}. */
const POLICY = `
domain: d
descriptors:
  - key: tenant
    ${LIMIT}
    descriptors:
      - { key: user, ${LIMIT} }
      - { key: other, ${LIMIT} }
  - key: api_key
    ${LIMIT}
`;

describe('names of buckets that repeat', () => {
  test('are equal, even if there are many more names than the cache keeps', () => {
    const policy = policyOf(POLICY);
    for (let round = 0; round < 4; round++) {
      for (let i = 0; i < 20_000; i++) {
        // Some names repeat at once, some within the round, and all in the next round.
        const number = i % 3 === 0 ? i : i % 97;
        const given = entries(`tenant=${number % 113}`, `user=${number}`);
        const expected = entriesKey('d', given);
        const {
          keys: [key],
          hashTagLength,
        } = policy.match(given);
        if (key !== expected.key || hashTagLength !== expected.hashTagLength)
          throw new Error(`${key} names ${number}`);
      }
    }
  });

  test('are mostly cached if a thousand names take turns', () => {
    const policy = policyOf(POLICY);
    const round = () =>
      Array.from({ length: 1000 }, (_, i) => policy.match(entries(`tenant=tenant-${i}`)).keys);
    const first = round();
    const again = round().filter((keys, i) => keys === first[i]);
    expect(again.length).toBeGreaterThan(800);
  });

  test.each([
    ['values split at another position', ['tenant=ab', 'user=c'], ['tenant=a', 'user=bc']],
    ['values in reverse order', ['tenant=a', 'user=b'], ['tenant=b', 'user=a']],
    ['another rule', ['tenant=a', 'user=b'], ['tenant=a', 'other=b']],
    ['another level', ['tenant=a'], ['tenant=a', 'user=']],
    ['values with the same end', ['tenant=0-0123456789'], ['tenant=1-0123456789']],
    ['values beyond the cache', [`tenant=${'x'.repeat(300)}`], [`tenant=${'x'.repeat(301)}`]],
    ['credentials', ['api_key=secret-1'], ['api_key=secret-2']],
  ])('differ: %s', (_name, one, other) => {
    const policy = policyOf(POLICY);
    for (let round = 0; round < 4; round++) {
      for (const given of [entries(...one), entries(...other)]) {
        const { key, hashTagLength } = entriesKey('d', given);
        expect(policy.match(given)).toMatchObject({ keys: [key], hashTagLength });
      }
    }
  });
});
