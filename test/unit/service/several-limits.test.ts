import { describe, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import type { BucketStore } from '../../../src/limiter/bucket-store.js';
import { Refusal } from '../../../src/service/refusal.js';
import { UnavailableStore } from '../../support/limiter/unavailable-store.js';
import { Decider, type DeciderOptions, descriptor, headers } from '../../support/policy/decider.js';

const { OK, OVER_LIMIT } = CODE;
const SECOND = 1_000_000;

/**
 * Returns a policy with these items of `rate_limits` on the key `k`, and `more` next to them. `top` is the beginning of
 * the file.
 */
const policyOf = (items: string, more = '', top = '') => `
domain: d
response_headers: [x-ratelimit, retry-after]
${top}
descriptors:
  - key: k
    ${more}
    rate_limits:
${items.trim().replaceAll(/^\s*-/gm, '      -')}
  - { key: other, rate_limit: { name: other, token_bucket: { max_tokens: 2, fill_interval: 1h } } }
  - { key: replacing, rate_limit: { replaces: [{ name: burst }], unit: hour, requests_per_unit: 100 } }
`;

const TWO = `
- { name: burst, token_bucket: { max_tokens: 2, fill_interval: 10s } }
- { name: daily, token_bucket: { max_tokens: 5, fill_interval: 1h } }
`;

const open = (items = TWO, more = '', options: DeciderOptions = {}, top = '') =>
  new Decider(policyOf(items, more, top), options);
const k = descriptor(['k=x']);
/** Returns the whole tokens of each limit with a peek, from the statistics. */
const levels = (decider: Decider) => {
  decider.observer.descriptors.length = 0;
  decider.answer([descriptor(['k=x'], { hitsAddend: 0 })]);
  return decider.observer.descriptors.map(({ used }) => used);
};

describe('a list of limits', () => {
  test('has windows that do not count denied hits, unlike single windows', () => {
    const decider = open(`
- { token_bucket: { max_tokens: 2, fill_interval: 1h } }
- { unit: day, requests_per_unit: 50 }
`);
    for (let i = 0; i < 5; i++) decider.answer([k]);
    expect(levels(decider)).toEqual([2, 2]);
  });

  test('shows the tightest limit: with the fewest remaining hits if allowed, with the latest reset if denied', () => {
    const decider = open();
    const names = [1, 2, 3].map(() => decider.answer([k]).statuses[0]?.currentLimit?.name);
    expect(names).toEqual(['burst', 'burst', 'burst']);
    decider.clock.advance(20 * SECOND);
    decider.answer([k]);
    decider.answer([k]);
    decider.clock.advance(20 * SECOND);
    // Now 2 tokens of the burst and 1 of the day remain.
    expect(decider.answer([k]).statuses[0]).toMatchObject({
      currentLimit: { name: 'daily' },
      limitRemaining: 0,
    });
    decider.answer([k], 2);
    const both = decider.answer([k], 2);
    expect(both.statuses[0]).toMatchObject({ code: OVER_LIMIT, currentLimit: { name: 'daily' } });
    expect(headers(both)).toMatchObject({
      'x-ratelimit-limit': '5',
      'x-ratelimit-will-be-throttled': 'true',
    });
    expect(Number(headers(both)['retry-after'])).toBe(both.statuses[0]?.durationUntilResetSeconds);
  });

  test('is replaced as a whole by a limit override', () => {
    const decider = open();
    const limited = descriptor(['k=x'], { limit: { requestsPerUnit: 1, unit: 2 } });
    expect(decider.answer([limited]).statuses[0]).toMatchObject({
      currentLimit: { name: '', requestsPerUnit: 1 },
    });
    expect(decider.answer([limited]).overallCode).toBe(OVER_LIMIT);
    expect(decider.observer.told).toEqual(['d override OK', 'd override OVER_LIMIT']);
    expect(levels(decider)).toEqual([0, 0]);
  });

  test('keeps its other limits if one is replaced by name', () => {
    const decider = open();
    for (let i = 0; i < 5; i++) expect(decider.answer([k, descriptor(['replacing=x'])]).overallCode).toBe(OK);
    expect(decider.answer([k, descriptor(['replacing=x'])])).toMatchObject({
      overallCode: OVER_LIMIT,
      statuses: [{ currentLimit: { name: 'daily' } }, { code: OK }],
    });
    expect(levels(decider)).toEqual([0, 5]);
  });

  test('can replace a rule of another descriptor', () => {
    const decider = open(`
- { unit: day, requests_per_unit: 100 }
- { unit: hour, requests_per_unit: 100, replaces: [{ name: other }] }
`);
    const both = [k, descriptor(['other=x'])];
    for (let i = 0; i < 5; i++) expect(decider.answer(both).overallCode).toBe(OK);
    expect(decider.answer(both).statuses[1]).toMatchObject({ code: OK, currentLimit: undefined });
  });

  test('is counted for each limit', () => {
    const decider = open();
    decider.answer([k], 2);
    decider.observer.told.length = 0;
    decider.answer([k]);
    expect(decider.observer.told).toEqual(['d k[burst] OVER_LIMIT', 'd k[daily] OK']);
    expect(decider.observer.descriptors.slice(-2)).toMatchObject([
      { stat: 'd.k.burst', overLimit: true, used: 2 },
      { stat: 'd.k.daily', overLimit: false, used: 2 },
    ]);
  });

  test('the log contains the limit that decided', () => {
    const decider = open();
    decider.observer.debug = true;
    decider.answer([k], 2);
    decider.answer([k]);
    expect(decider.observer.lines).toMatchObject([
      { rule: 'k[burst]', code: 'OK', remaining: 0 },
      { rule: 'k[burst]', code: 'OVER_LIMIT', remaining: 0 },
    ]);
  });
});

describe('a list with one observed limit', () => {
  const SHADOW = `
- { name: burst, token_bucket: { max_tokens: 2, fill_interval: 10s }, shadow_mode: true }
- { name: daily, token_bucket: { max_tokens: 5, fill_interval: 1h } }
`;

  test('allows a request if only that limit is exceeded; that limit is unchanged, and the others take', () => {
    const decider = open(SHADOW);
    for (let i = 0; i < 4; i++) expect(decider.answer([k]).overallCode).toBe(OK);
    expect(levels(decider)).toEqual([2, 4]);
    const would = decider.answer([k]);
    // The status describes the remaining hits. The headers describe the limit that would deny.
    expect(would.statuses[0]).toMatchObject({ code: OK, currentLimit: { name: 'daily' }, limitRemaining: 0 });
    expect(headers(would)).toMatchObject({
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-will-be-throttled': 'true',
    });
    expect(decider.observer.told).toContain('d k[burst] OK would');
  });

  test('shows the limit that denies, even if the observed one waits longer', () => {
    const decider = open(`
- { name: slow, token_bucket: { max_tokens: 1, fill_interval: 24h }, shadow_mode: true }
- { name: fast, token_bucket: { max_tokens: 1, fill_interval: 1s } }
`);
    decider.answer([k]);
    const denied = decider.answer([k]);
    expect(denied).toMatchObject({
      overallCode: OVER_LIMIT,
      statuses: [{ currentLimit: { name: 'fast' }, durationUntilResetSeconds: 1 }],
    });
    expect(headers(denied)).toMatchObject({ 'x-ratelimit-limit': '1', 'retry-after': '1' });
  });

  test('shadow_mode of the node applies to limits without their own setting', () => {
    const decider = open(
      `
- { name: burst, token_bucket: { max_tokens: 2, fill_interval: 10s } }
- { name: daily, token_bucket: { max_tokens: 3, fill_interval: 1h }, shadow_mode: false }
`,
      'shadow_mode: true',
    );
    const codes = [1, 2, 3, 4].map(() => decider.answer([k]).overallCode);
    expect(codes).toEqual([OK, OK, OK, OVER_LIMIT]);
  });

  test('a schedule of one limit changes its phase at its time', () => {
    const start = new Date(1_700_000_000_000 + 60_000).toISOString();
    const decider = open(`
- { name: burst, token_bucket: { max_tokens: 1, fill_interval: 1h }, phase: { active: ${start} } }
- { name: daily, token_bucket: { max_tokens: 50, fill_interval: 1h } }
`);
    expect([1, 2, 3].map(() => decider.answer([k]).overallCode)).toEqual([OK, OK, OK]);
    decider.clock.advance(60 * SECOND);
    expect(decider.answer([k])).toMatchObject({ overallCode: OVER_LIMIT, statuses: [{ code: OVER_LIMIT }] });
    // The second limit, of 50, had allowed three; it refills one per hour.
    expect(levels(decider)).toEqual([1, 3]);
  });
});

describe('a list with global settings', () => {
  test('QUOTA_MODE turns every limit into a quota, so a request is denied only if all are exceeded', () => {
    const decider = open(TWO, '', { answers: { quotaMode: true } });
    const codes = [1, 2, 3, 4, 5, 6].map(() => decider.answer([k]).overallCode);
    expect(codes).toEqual([OK, OK, OK, OK, OK, OVER_LIMIT]);
    expect(levels(decider)).toEqual([2, 5]);
  });
});

describe('a list while the store is unavailable', () => {
  const away = (first: string, second: string, more = '') => {
    return open(
      `
- { name: a, token_bucket: { max_tokens: 1, fill_interval: 1h }, on_store_failure: ${first} }
- { name: b, token_bucket: { max_tokens: 2, fill_interval: 1h }, on_store_failure: ${second}${more} }
`,
      '',
      { store: new UnavailableStore() },
    );
  };

  test('deny on one limit denies, whatever the others have', () => {
    for (const other of ['allow', 'local', 'error', 'deny']) {
      const decider = away('deny', other);
      expect(decider.answer([k])).toMatchObject({
        overallCode: OVER_LIMIT,
        statuses: [
          { code: OVER_LIMIT, currentLimit: { name: 'a' }, limitRemaining: 0, durationUntilResetSeconds: 1 },
        ],
      });
    }
  });

  test('allow on one limit leaves the decision to the others', () => {
    const decider = away('allow', 'local');
    const codes = [1, 2, 3].map(() => decider.answer([k]).overallCode);
    expect(codes).toEqual([OK, OK, OVER_LIMIT]);
    expect(away('allow', 'allow').answer([k]).statuses[0]).toMatchObject({
      code: OK,
      currentLimit: undefined,
    });
  });

  test('error on one limit leaves the decision to Envoy, unless an enforced deny decides', () => {
    expect(away('error', 'allow').ask([k])).toBeInstanceOf(Refusal);
    expect(away('local', 'error').ask([k])).toBeInstanceOf(Refusal);
    expect(away('error', 'deny', ', shadow_mode: true').ask([k])).toBeInstanceOf(Refusal);
  });
});

test('the forgiven hits of a charge are reported for each limit', () => {
  const outcome = { overLimit: false, remaining: 0, waitMicros: 1, used: 0, cached: false };
  const store: BucketStore = {
    take: (takes) => takes.map((_, i) => ({ ...outcome, uncollectedHits: i * 5 })),
    close: async () => {},
  };
  const decider = open(TWO, '', { store });
  decider.answer([k], 9);
  expect(decider.observer.told).toEqual(['d k[burst] OK', 'd k[daily] OK', 'd k[daily] forgiven 5']);
});

describe('a list with one limit that allows debt', () => {
  const DEBT = `
- { name: usage, token_bucket: { max_tokens: 10, fill_interval: 1h }, allow_debt: true, max_debt: 5 }
- { name: calls, token_bucket: { max_tokens: 20, fill_interval: 1h } }
`;

  test('is charged as a whole or not at all', () => {
    const decider = open(DEBT);
    expect(decider.answer([k], 18).statuses[0]).toMatchObject({ code: OK, currentLimit: { name: 'usage' } });
    expect(decider.observer.told).toContain('d k[usage] forgiven 3');
    // A peek is denied until a whole token is available. A charge is allowed while the other limit has tokens.
    expect(decider.answer([descriptor(['k=x'], { hitsAddend: 0 })]).overallCode).toBe(OVER_LIMIT);
    decider.observer.told.length = 0;
    expect(decider.answer([k], 2).overallCode).toBe(OK);
    expect(decider.observer.told).toContain('d k[usage] forgiven 2');
    // Now the other limit is empty.
    decider.observer.told.length = 0;
    expect(decider.answer([k], 2).statuses[0]).toMatchObject({
      code: OVER_LIMIT,
      currentLimit: { name: 'calls' },
    });
    expect(decider.observer.told).toEqual(['d k[usage] OK', 'd k[calls] OVER_LIMIT']);
  });
});

describe('a list whose limits have their own answers', () => {
  const OWN = `
- { name: burst, token_bucket: { max_tokens: 1, fill_interval: 10s }, response_headers: [ratelimit-draft-03], denied_response: { body: slower } }
- { name: daily, token_bucket: { max_tokens: 2, fill_interval: 1h }, denied_response: { body: tomorrow } }
`;
  const text = (body: unknown) =>
    body === undefined ? undefined : Buffer.from(body as Uint8Array).toString();

  test('has the headers, body and metadata of the limit that decides', () => {
    const decider = open(OWN, '', {}, 'decision_metadata: true');
    decider.answer([k]);
    const burst = decider.answer([k]);
    expect(text(burst.rawBody)).toBe('slower');
    expect(Object.keys(headers(burst))).toContain('ratelimit-limit');
    expect(burst.dynamicMetadata).toMatchObject({ decision: { rule: 'k[burst]', name: 'burst', limit: 1 } });
    decider.clock.advance(10 * SECOND);
    decider.answer([k]);
    const daily = decider.answer([k]);
    expect(text(daily.rawBody)).toBe('tomorrow');
    expect(headers(daily)).toMatchObject({ 'x-ratelimit-limit': '2' });
    expect(daily.dynamicMetadata).toMatchObject({
      decision: { rule: 'k[daily]', limit: 2, code: 'OVER_LIMIT' },
    });
  });
});
