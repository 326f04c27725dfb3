import { describe, expect, test } from '@jest/globals';
import type { Descriptor } from '../../../src/codec/messages.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

const POLICY = `
domain: d
descriptors:
  - { key: five, rate_limit: { unit: minute, requests_per_unit: 5 } }
  - { key: nine, rate_limit: { unit: hour, requests_per_unit: 9 } }
  - { key: one, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: bucket, rate_limit: { token_bucket: { max_tokens: 3, fill_interval: 7s } } }
  - { key: free, rate_limit: { unlimited: true } }
`;

const one = (key: string) => descriptor([`${key}=x`]);
const many = (key: string, hitsAddend: number) => descriptor([`${key}=x`], { hitsAddend });

function decider(policy = POLICY): Decider {
  const limitHeaders = { limit: 'RateLimit-Limit', remaining: 'RateLimit-Remaining', reset: 'X-Reset' };
  return new Decider(policy, { answers: { limitHeaders } });
}

/** The values of the three headers; checks their names. */
function shown(on: Decider, ...descriptors: Descriptor[]): string {
  const { responseHeadersToAdd: headers } = on.answer(descriptors);
  if (headers.length > 0) {
    expect(headers.map(({ key }) => key)).toEqual(['RateLimit-Limit', 'RateLimit-Remaining', 'X-Reset']);
  }
  return headers.map(({ value }) => value).join(' ');
}

describe('LIMIT_RESPONSE_HEADERS_ENABLED', () => {
  // The clock is 20 s after a full minute and 13 min 20 s after a full hour.
  test('limit, remaining, and seconds until the window ends, as bare integers', () => {
    expect(shown(decider(), one('five'))).toBe('5 4 40');
    expect(shown(decider(), one('nine'))).toBe('9 8 2800');
  });

  test('of a token bucket: seconds until the next token, or until the request would be allowed', () => {
    const on = decider();
    expect(shown(on, one('bucket'))).toBe('3 2 7');
    expect(shown(on, many('bucket', 3))).toBe('3 2 7');
    expect(shown(decider(), many('bucket', 0))).toBe('3 3 0');
  });

  test('are missing if no limit applies', () => {
    const on = decider();
    expect(shown(on, one('nothing'), one('free'), descriptor([]))).toBe('');
    expect(on.answer([one('five')], 0, 'other').responseHeadersToAdd).toEqual([]);
  });

  test.each(['[]', '[x-ratelimit]'])('response_headers: %s of a file overrides them', (wanted) => {
    const on = decider(POLICY.replace('domain: d', `domain: d\nresponse_headers: ${wanted}`));
    const names = on.answer([one('five')]).responseHeadersToAdd.map(({ key }) => key);
    expect(names.filter((name) => !name.startsWith('x-ratelimit'))).toEqual([]);
    expect(names).toHaveLength(wanted === '[]' ? 0 : 3);
  });

  test('in global shadow mode, describe the limit that would deny', () => {
    const on = new Decider(POLICY, {
      answers: { shadowMode: true, limitHeaders: { limit: 'l', remaining: 'r', reset: 's' } },
    });
    on.answer([one('one')]);
    const values = on.answer([one('one'), one('five')]).responseHeadersToAdd.map(({ value }) => value);
    expect(values).toEqual(['1', '0', '40']);
  });
});
