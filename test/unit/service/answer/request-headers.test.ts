import { describe, expect, test } from '@jest/globals';
import type { AnswerOptions } from '../../../../src/service/answer/answer-options.js';
import { Decider, descriptor } from '../../../support/policy/decider.js';

const RULES = `
descriptors:
  - { key: plain, rate_limit: { name: plain, unit: hour, requests_per_unit: 3 } }
  - { key: own, rate_limit: { name: own, unit: hour, requests_per_unit: 2, request_headers: [x-ratelimit] } }
  - { key: quiet, rate_limit: { name: quiet, unit: hour, requests_per_unit: 3, request_headers: [] } }
  - { key: watched, phase: monitoring, rate_limit: { name: watched, unit: hour, requests_per_unit: 0 } }
  - { key: free, rate_limit: { unlimited: true } }
`;

const NAMES = { limit: 'RateLimit-Limit', remaining: 'RateLimit-Remaining', reset: 'RateLimit-Reset' };
const FROM_ENVIRONMENT: Partial<AnswerOptions> = { limitRequestHeaders: NAMES };

const on = (file: string, answers: Partial<AnswerOptions> = {}): Decider =>
  new Decider(`domain: d\n${file}${RULES}`, { answers });

/** Returns the headers to add to the request, as an object. Checks the headers to add to the response. */
function upstream(decider: Decider, key: string, responses: readonly string[] = []): Record<string, string> {
  const answer = decider.answer([descriptor([`${key}=x`])]);
  expect(answer.responseHeadersToAdd.map((header) => header.key)).toEqual(responses);
  return Object.fromEntries(answer.requestHeadersToAdd.map((header) => [header.key, String(header.value)]));
}

describe('LIMIT_REQUEST_HEADERS_ENABLED', () => {
  test('adds three headers to an allowed or denied request, and none to the response', () => {
    const decider = on('', FROM_ENVIRONMENT);
    // The clock is 13 min 20 s after a full hour.
    const expected = (remaining: string) => ({
      'RateLimit-Limit': '3',
      'RateLimit-Remaining': remaining,
      'RateLimit-Reset': '2800',
    });
    expect(upstream(decider, 'plain')).toEqual(expected('2'));
    upstream(decider, 'plain');
    upstream(decider, 'plain');
    expect(upstream(decider, 'plain')).toEqual(expected('0'));
    expect(upstream(decider, 'free')).toEqual({});
    expect(upstream(decider, 'unknown')).toEqual({});
  });

  test('can use other headers than LIMIT_RESPONSE_HEADERS_ENABLED', () => {
    const limitHeaders = { limit: 'a', remaining: 'b', reset: 'c' };
    const decider = on('', { ...FROM_ENVIRONMENT, limitHeaders });
    expect(Object.keys(upstream(decider, 'plain', ['a', 'b', 'c']))).toEqual(Object.values(NAMES));
  });

  test('applies if neither the rule nor the file has a setting', () => {
    const decider = on('', FROM_ENVIRONMENT);
    expect(Object.keys(upstream(decider, 'own'))).toEqual([
      'x-ratelimit-limit',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
    ]);
    expect(upstream(decider, 'quiet')).toEqual({});
    expect(upstream(on('request_headers: []', FROM_ENVIRONMENT), 'plain')).toEqual({});
  });
});

describe('request_headers', () => {
  test('are independent of the response headers', () => {
    expect(upstream(on('request_headers: [ratelimit]'), 'plain')).toEqual({
      'ratelimit-policy': '"plain";q=3;w=3600',
      ratelimit: '"plain";r=2;t=2800',
    });
    expect(upstream(on('response_headers: [ratelimit]'), 'plain', ['ratelimit-policy', 'ratelimit'])).toEqual(
      {},
    );
  });

  test('inform the upstream that a request would be denied in the active phase', () => {
    expect(upstream(on('request_headers: [x-ratelimit]'), 'watched')).toMatchObject({
      'x-ratelimit-remaining': '0',
      'x-ratelimit-will-be-throttled': 'true',
    });
  });

  test('are all sent by weir, because Envoy adds its own only to responses', () => {
    const decider = on('request_headers: [x-ratelimit]', {
      envoyAdds: { xRateLimit: true, retryAfter: true },
    });
    expect(upstream(decider, 'plain')).toMatchObject({ 'x-ratelimit-limit': '3' });
  });

  test('are sent for the family `ratelimit` for every limit with that setting', () => {
    const decider = on('request_headers: [ratelimit]');
    const answer = decider.answer([descriptor(['plain=x']), descriptor(['own=x']), descriptor(['quiet=x'])]);
    // `own` has the fewest hits remaining, so it is described; it requests another family.
    expect(answer.requestHeadersToAdd.map(({ value }) => String(value))).toEqual([
      '2',
      '1',
      expect.stringMatching(/^\d+$/),
      '"plain";q=3;w=3600',
      '"plain";r=2;t=2800',
    ]);
  });
});
