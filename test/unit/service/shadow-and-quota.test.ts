/*
 * Shadow mode and quotas. property/reference-answers.property.test.ts compares windows in every mode with the
 * reference.
 */
import { describe, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import { UnavailableStore } from '../../support/limiter/unavailable-store.js';
import { Decider, descriptor, headers } from '../../support/policy/decider.js';

const POLICY = `
domain: d
descriptors:
  - key: window
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: bucket
    rate_limit: { token_bucket: { max_tokens: 1, fill_interval: 10s } }
  - key: other
    rate_limit: { token_bucket: { max_tokens: 2, fill_interval: 10s } }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: replaced
    rate_limit: { name: replaced, unit: minute, requests_per_unit: 1 }
  - key: replacing
    rate_limit: { replaces: [{ name: replaced }], unit: minute, requests_per_unit: 1 }
`;

const one = (key: string) => descriptor([`${key}=x`]);
const codes = (decider: Decider, ...keys: string[]) => {
  const { overallCode, statuses } = decider.answer(keys.map(one));
  return [overallCode, ...statuses.map(({ code }) => code)];
};
const { OK, OVER_LIMIT } = CODE;

describe('SHADOW_MODE', () => {
  const shadowed = (policy = POLICY) => new Decider(policy, { answers: { shadowMode: true } });

  test('denies no request; statuses and a count report the denials', () => {
    const decider = shadowed();
    expect(codes(decider, 'window', 'other')).toEqual([OK, OK, OK]);
    expect(decider.observer.told).not.toContain('global shadow');
    decider.observer.told.length = 0;
    expect(codes(decider, 'window', 'bucket')).toEqual([OK, OVER_LIMIT, OK]);
    expect(decider.observer.told).toEqual(['global shadow', 'd window OK would', 'd bucket OK']);
  });

  test('an exceeded bucket is unchanged, and the other buckets of the request take', () => {
    const decider = shadowed();
    codes(decider, 'bucket');
    expect(codes(decider, 'bucket', 'other')).toEqual([OK, OVER_LIMIT, OK]);
    expect(decider.answer([one('other')]).statuses[0]).toMatchObject({ code: OK, limitRemaining: 0 });
    decider.clock.advance(10_000_000);
    expect(codes(decider, 'bucket')).toEqual([OK, OK]);
  });

  test("has the file's headers as in the monitoring phase", () => {
    const decider = shadowed(
      POLICY.replace('domain: d', 'domain: d\nresponse_headers: [x-ratelimit, retry-after]'),
    );
    expect(headers(decider.answer([one('window')]))).toMatchObject({
      'x-ratelimit-will-be-throttled': 'false',
    });
    expect(headers(decider.answer([one('window')]))).toEqual({
      'x-ratelimit-limit': '1',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '1700000040',
      'x-ratelimit-will-be-throttled': 'true',
    });
  });

  test('while the store is unavailable, rules with deny allow requests, and rules with error fail none', () => {
    const decider = new Decider(
      `
domain: d
descriptors:
  - { key: deny, rate_limit: { on_store_failure: deny, unit: minute, requests_per_unit: 9 } }
  - { key: error, rate_limit: { unit: minute, requests_per_unit: 9 } }
`,
      { answers: { shadowMode: true }, store: new UnavailableStore() },
    );
    expect(codes(decider, 'deny')).toEqual([OK, OVER_LIMIT]);
    expect(decider.observer.told).toContain('global shadow');
    expect(codes(decider, 'deny', 'error')).toEqual([OK, OVER_LIMIT, OK]);
    expect(codes(decider, 'error')).toEqual([OK, OK]);
  });
});

describe('QUOTA_MODE', () => {
  const quotas = () => new Decider(POLICY, { answers: { quotaMode: true } });

  test.each([
    ['without a rule', ['nothing']],
    ['of a replaced rule', ['replacing', 'replaced']],
    ['of a shadow rule', ['shadow']],
  ])('a descriptor %s is a quota that allows, so no request is denied', (_name, keys) => {
    const decider = quotas();
    codes(decider, 'window', 'replacing');
    const response = decider.answer(['window', ...keys].map(one));
    expect([response.overallCode, response.statuses[0]?.code]).toEqual([OK, OVER_LIMIT]);
    decider.answer(['bucket', ...keys].map(one));
    decider.answer(['bucket', 'other', ...keys].map(one));
    // Limits with enough hits are taken from, because the request is allowed.
    expect(decider.answer([one('other')]).statuses[0]?.limitRemaining).toBe(0);
  });
});
