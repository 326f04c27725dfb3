/*
 * Headers, bodies and metadata of nodes with several limits, a calendar window, debt, or partial enforcement.
 */
import { describe, expect, test } from '@jest/globals';
import { Decider, descriptor, headers } from '../../support/policy/decider.js';

const FILE =
  'domain: d\nresponse_headers: [ratelimit]\ndenied_response: problem+json\ndecision_metadata: true\n';
const on = (node: string, file = FILE): Decider => new Decider(`${file}descriptors:\n  - ${node}\n`);
const k = descriptor(['k=x']);

function asked(decider: Decider, hits = 0) {
  const response = decider.answer([k], hits);
  const { rawBody, dynamicMetadata } = response;
  return {
    headers: headers(response),
    body: rawBody && JSON.parse(Buffer.from(rawBody).toString()),
    decision: dynamicMetadata?.['decision'] as Record<string, unknown> | undefined,
  };
}

const BURST = '{ name: burst, token_bucket: { max_tokens: 2, fill_interval: 10s } }';

describe('a list of limits', () => {
  test('every item is listed by its name or index, and the decision is that of the tightest limit', () => {
    const decider = on(`{ key: k, rate_limits: [${BURST}, { unit: day, requests_per_unit: 250 }] }`);
    const first = asked(decider);
    expect(first.headers).toEqual({
      'ratelimit-policy': '"burst";q=2;w=20, "k[2]";q=250;w=86400',
      ratelimit: expect.stringMatching(/^"burst";r=1;t=10, "k\[2\]";r=249;t=\d+$/),
    });
    expect(first.decision).toMatchObject({ rule: 'k[burst]', name: 'burst', remaining: 1 });
    asked(decider);
    const denied = asked(decider);
    expect(denied.body).toMatchObject({ 'violated-policies': ['burst'] });
    expect(denied.decision).toMatchObject({ code: 'OVER_LIMIT', rule: 'k[burst]', retry_after: 10 });
  });

  test('an item that hides its headers is not listed, and the body is that of the denying item', () => {
    const decider = on(
      `{ key: k, rate_limits: [${BURST}, { name: hidden, unit: day, requests_per_unit: 1, ` +
        'response_headers: [], denied_response: { body: "1" } }] }',
    );
    expect(asked(decider).headers['ratelimit-policy']).toBe('"burst";q=2;w=20');
    const denied = asked(decider);
    expect(denied.headers).toEqual({
      'ratelimit-policy': '"burst";q=2;w=20',
      ratelimit: '"burst";r=1;t=10',
    });
    expect(denied.body).toBe(1);
    expect(denied.decision).toMatchObject({ rule: 'k[hidden]' });
  });
});

test('a calendar window has its real length', () => {
  const decider = on('{ key: k, rate_limit: { unit: day, calendar: Europe/Berlin, requests_per_unit: 9 } }');
  const policyAt = (time: string) => {
    decider.clock.stepWall(Date.parse(time) * 1000 - decider.clock.wall);
    return asked(decider).headers['ratelimit-policy'];
  };
  expect(policyAt('2026-03-28T12:00:00Z')).toBe('"k";q=9;w=86400');
  // The clock only moves forward.
  expect(policyAt('2026-03-29T12:00:00Z')).toBe('"k";q=9;w=82800');
  expect(policyAt('2026-03-30T12:00:00Z')).toBe('"k";q=9;w=86400');
  const months = on('{ key: k, rate_limit: { unit: month, calendar: UTC, requests_per_unit: 9 } }');
  months.clock.stepWall(Date.parse('2028-02-10T00:00:00Z') * 1000 - months.clock.wall);
  expect(asked(months).headers['ratelimit-policy']).toBe(`"k";q=9;w=${29 * 86_400}`);
});

test('windows of several units, and token buckets in one line', () => {
  const policyOf = (limit: string) =>
    asked(on(`{ key: k, rate_limit: { ${limit} } }`)).headers['ratelimit-policy'];
  expect(policyOf('unit: minute, unit_multiplier: 5, requests_per_unit: 9')).toBe('"k";q=9;w=300');
  expect(policyOf('unit: minute, requests_per_unit: 60, algorithm: token_bucket, burst: 90')).toBe(
    '"k";q=90;w=90',
  );
});

test('in debt, no hits remain, and the wait is the time until the next token', () => {
  const decider = on(
    '{ key: k, rate_limit: { name: n, token_bucket: { max_tokens: 2, fill_interval: 10s }, allow_debt: true } }',
  );
  expect(asked(decider, 4).headers['ratelimit']).toBe('"n";r=0;t=30');
  const denied = asked(decider);
  expect(denied.headers['ratelimit']).toBe('"n";r=0;t=30');
  expect(denied.decision).toMatchObject({ code: 'OVER_LIMIT', remaining: 0, retry_after: 30 });
});
