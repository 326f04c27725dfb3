import { describe, expect, test } from '@jest/globals';
import type { Descriptor } from '../../../src/codec/messages.js';
import { HEADER_FAMILIES } from '../../../src/policy/rule.js';
import type { AnswerOptions } from '../../../src/service/answer/answer-options.js';
import { Decider, descriptor, headers } from '../../support/policy/decider.js';

const SECOND = 1_000_000;

const RULES = `
descriptors:
  - { key: burst, rate_limit: { name: burst, token_bucket: { max_tokens: 10, tokens_per_fill: 4, fill_interval: 1s } } }
  - { key: daily, rate_limit: { name: daily, unit: day, requests_per_unit: 250 } }
  - { key: tenant, value: a, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: odd, rate_limit: { name: 'a"b\\c größe', unit: minute, requests_per_unit: 1 } }
  - { key: same, rate_limit: { name: burst, unit: hour, requests_per_unit: 5 } }
  - { key: watched, phase: monitoring, rate_limit: { name: watched, unit: hour, requests_per_unit: 0 } }
  - { key: own, rate_limit: { name: own, unit: hour, requests_per_unit: 3, response_headers: [ratelimit] } }
  - { key: quiet, rate_limit: { name: quiet, unit: hour, requests_per_unit: 3, response_headers: [] } }
  - { key: plain, rate_limit: { name: plain, unit: hour, requests_per_unit: 3 } }
  - { key: fast, rate_limit: { name: fast, token_bucket: { max_tokens: 2, tokens_per_fill: 100, fill_interval: 1s } } }
  - { key: free, rate_limit: { unlimited: true } }
`;

const on = (families: string, answers: Partial<AnswerOptions> = {}): Decider =>
  new Decider(`domain: d\n${families}${RULES}`, { answers });
const one = (text: string, more: Partial<Descriptor> = {}) => descriptor([text], more);
const asked = (decider: Decider, ...texts: string[]) =>
  headers(decider.answer(texts.map((text) => one(text))));

describe.each(Object.values(HEADER_FAMILIES))('%s alone', (family) => {
  const denied = (decider: Decider, text: string) => {
    decider.answer([one(text)]);
    return headers(decider.answer([one(text)]));
  };

  test('adds headers to a denial if the file or a rule enables them', () => {
    const list = `response_headers: [${family}]`;
    expect(denied(on(list), 'tenant=a')).not.toEqual({});
    const rule = `{ key: k, rate_limit: { unit: minute, requests_per_unit: 1, ${list} } }`;
    expect(denied(new Decider(`domain: d\ndescriptors: [${rule}]`), 'k=v')).not.toEqual({});
  });
});

describe('ratelimit (draft-ietf-httpapi-ratelimit-headers-11)', () => {
  const FILE = 'response_headers: [ratelimit]';

  test('has an item for every limit that applied, in the order of the request', () => {
    const decider = on(FILE);
    decider.clock.advance(43_200 * SECOND);
    expect(asked(decider, 'burst=x', 'free=x', 'unknown=x', 'daily=x')).toEqual({
      'ratelimit-policy': '"burst";q=10;w=3, "daily";q=250;w=86400',
      ratelimit: expect.stringMatching(/^"burst";r=9;t=1, "daily";r=249;t=\d+$/),
    });
    expect(asked(decider, 'free=x')).toEqual({});
    expect(asked(decider, 'unknown=x')).toEqual({});
  });

  test('uses the path for a rule without a name; names are Strings of structured fields', () => {
    const decider = on(FILE);
    expect(asked(decider, 'tenant=a')['ratelimit-policy']).toBe('"tenant=a";q=1;w=60');
    expect(asked(decider, 'odd=x')['ratelimit-policy']).toBe('"a\\"b\\\\c gr%C3%B6%C3%9Fe";q=1;w=60');
  });

  test('has the wait of a denial, and no reset for a full bucket', () => {
    const decider = on(FILE);
    decider.answer([one('burst=x')], 10);
    expect(decider.answer([one('burst=x')], 8).responseHeadersToAdd).toEqual([
      { key: 'ratelimit-policy', value: '"burst";q=10;w=3' },
      { key: 'ratelimit', value: '"burst";r=0;t=2' },
    ]);
    expect(headers(on(FILE).answer([one('burst=y', { hitsAddend: 0 })]))['ratelimit']).toBe('"burst";r=10');
  });

  test('rounds a fill time of less than a second up to one second', () => {
    expect(asked(on(FILE), 'fast=x')['ratelimit-policy']).toBe('"fast";q=2;w=1');
  });

  test('has one item for two buckets of one rule, the tighter; the path replaces a repeated name', () => {
    const decider = on(FILE);
    asked(decider, 'burst=y');
    asked(decider, 'burst=y');
    expect(asked(decider, 'burst=x', 'burst=y', 'same=x')).toMatchObject({
      'ratelimit-policy': '"burst";q=10;w=3, "same";q=5;w=3600',
      ratelimit: expect.stringMatching(/^"burst";r=7;t=1, "same";r=4;t=\d+$/),
    });
  });

  test('names a limit override `override`, with its own numbers each time', () => {
    const decider = on(FILE);
    const withLimit = (requestsPerUnit: number, unit: number) =>
      headers(decider.answer([one('burst=x', { limit: { requestsPerUnit, unit } })]))['ratelimit-policy'];
    expect(withLimit(5, 1)).toBe('"override";q=5;w=1');
    expect(withLimit(7, 2)).toBe('"override";q=7;w=60');
  });

  test('lists some of very many limits, including the denying one', async () => {
    const rule = (i: number, n: number) =>
      `  - { key: k${i}, rate_limit: { unit: hour, requests_per_unit: ${n} } }\n`;
    const rules = Array.from({ length: 40 }, (_, i) => rule(i, i === 30 ? 0 : 5)).join('');
    const decider = new Decider(`domain: d\n${FILE}\ndescriptors:\n${rules}`);
    const all = Array.from({ length: 40 }, (_, i) => descriptor([`k${i}=x`]));
    const { ratelimit = '' } = headers(await decider.answerLarge(all));
    expect(ratelimit.split(', ')).toHaveLength(16);
    expect(ratelimit).toMatch(/, "k30";r=0;t=\d+$/);
  });

  test('in monitoring, has only the remaining hits', () => {
    expect(asked(on('response_headers: [ratelimit, retry-after]'), 'watched=x')).toEqual({
      'ratelimit-policy': '"watched";q=0;w=3600',
      ratelimit: expect.stringMatching(/^"watched";r=0;t=\d+$/),
    });
  });
});

describe('ratelimit-draft-03', () => {
  test('has the described limit with all policies, its remaining hits, and seconds', () => {
    const decider = on('response_headers: [ratelimit-draft-03]');
    expect(asked(decider, 'daily=x', 'burst=x')).toEqual({
      'ratelimit-limit': '10, 250;w=86400, 10;w=3',
      'ratelimit-remaining': '9',
      'ratelimit-reset': '1',
    });
    expect(headers(decider.answer([one('burst=x')], 11))).toMatchObject({
      'ratelimit-limit': '10, 10;w=3',
      'ratelimit-reset': '1',
    });
  });

  test('has a reset of 0 seconds for a full bucket', () => {
    const decider = on('response_headers: [ratelimit-draft-03]');
    expect(headers(decider.answer([one('burst=y', { hitsAddend: 0 })]))['ratelimit-reset']).toBe('0');
  });
});

test('all families can be combined, with each name once and in lower case', () => {
  const decider = on('response_headers: [x-ratelimit, retry-after, ratelimit-draft-03, ratelimit]');
  decider.answer([one('tenant=a')]);
  const names = decider.answer([one('tenant=a')]).responseHeadersToAdd.map(({ key }) => key);
  expect(names).toEqual([
    'x-ratelimit-limit',
    'x-ratelimit-remaining',
    'x-ratelimit-reset',
    'x-ratelimit-will-be-throttled',
    'ratelimit-limit',
    'ratelimit-remaining',
    'ratelimit-reset',
    'ratelimit-policy',
    'ratelimit',
    'retry-after',
  ]);
});

describe('response_headers of a rule', () => {
  const env = {
    limitHeaders: { limit: 'RateLimit-Limit', remaining: 'RateLimit-Remaining', reset: 'RateLimit-Reset' },
  };

  test('apply to requests that the rule describes, and override the file', () => {
    const decider = on('response_headers: [x-ratelimit]');
    expect(Object.keys(asked(decider, 'own=x'))).toEqual(['ratelimit-policy', 'ratelimit']);
    expect(asked(decider, 'quiet=x')).toEqual({});
    expect(Object.keys(asked(decider, 'plain=x'))).toEqual([
      'x-ratelimit-limit',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
    ]);
  });

  test('of several limits: the described one determines the families, and each one its listing in `ratelimit`', () => {
    const decider = on('response_headers: [x-ratelimit]');
    asked(decider, 'plain=x');
    // `plain` has fewer hits remaining, so it is described.
    expect(asked(decider, 'own=x', 'plain=x', 'quiet=x')).toMatchObject({
      'x-ratelimit-remaining': '1',
      'ratelimit-policy': '"own";q=3;w=3600',
    });
  });

  test('override the environment, which applies to other rules', () => {
    const decider = on('', env);
    expect(Object.keys(asked(decider, 'own=x'))).toEqual(['ratelimit-policy', 'ratelimit']);
    expect(asked(decider, 'quiet=x')).toEqual({});
    expect(Object.keys(asked(decider, 'plain=x'))).toEqual([
      'RateLimit-Limit',
      'RateLimit-Remaining',
      'RateLimit-Reset',
    ]);
  });
});

describe('ENVOY_ADDS_HEADERS', () => {
  const FILE = 'response_headers: [x-ratelimit, retry-after, ratelimit]';

  test('leaves out the headers that Envoy adds, and keeps will-be-throttled', () => {
    const decider = on(FILE, { envoyAdds: { xRateLimit: true, retryAfter: true } });
    decider.answer([one('tenant=a')]);
    expect(Object.keys(asked(decider, 'tenant=a'))).toEqual([
      'x-ratelimit-will-be-throttled',
      'ratelimit-policy',
      'ratelimit',
    ]);
  });

  test('each for itself', () => {
    const decider = on(FILE, { envoyAdds: { xRateLimit: false, retryAfter: true } });
    decider.answer([one('tenant=a')]);
    expect(asked(decider, 'tenant=a')).not.toHaveProperty('retry-after');
    expect(asked(decider, 'tenant=a')).toHaveProperty('x-ratelimit-limit', '1');
  });
});
