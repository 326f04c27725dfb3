import { describe, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import { CALLER_WITHOUT_DEADLINE } from '../../../src/service/caller.js';
import { Refusal } from '../../../src/service/refusal.js';
import { UnavailableStore } from '../../support/limiter/unavailable-store.js';
import { Decider, descriptor, headers } from '../../support/policy/decider.js';

const POLICY = `
domain: d
response_headers: [x-ratelimit]
descriptors:
  - { key: error, rate_limit: { token_bucket: { max_tokens: 1, fill_interval: 10s } } }
  - { key: allow, rate_limit: { on_store_failure: allow, token_bucket: { max_tokens: 1, fill_interval: 10s } } }
  - { key: deny, rate_limit: { on_store_failure: deny, token_bucket: { max_tokens: 7, fill_interval: 10s } } }
  - { key: local, rate_limit: { on_store_failure: local, token_bucket: { max_tokens: 1, fill_interval: 10s } } }
  - { key: quota-deny, quota_mode: true, rate_limit: { on_store_failure: deny, token_bucket: { max_tokens: 1, fill_interval: 10s } } }
  - { key: quota-allow, quota_mode: true, rate_limit: { on_store_failure: allow, token_bucket: { max_tokens: 1, fill_interval: 10s } } }
  - { key: watched, phase: monitoring, rate_limit: { on_store_failure: deny, token_bucket: { max_tokens: 1, fill_interval: 10s } } }
`;

const one = (key: string) => descriptor([`${key}=x`]);

describe('without the store', () => {
  test('error makes the call UNAVAILABLE, without internals', () => {
    const refused = new Decider(POLICY, { store: new UnavailableStore() }).ask([one('error'), one('allow')]);
    expect(refused).toEqual(new Refusal('unavailable', 'rate limit store unavailable'));
  });

  test('allow is OK, without limit and headers', () => {
    const decider = new Decider(POLICY, { store: new UnavailableStore() });
    const response = decider.answer([one('allow')]);
    expect(response).toMatchObject({
      overallCode: CODE.OK,
      statuses: [{ code: CODE.OK, currentLimit: undefined, durationUntilResetSeconds: undefined }],
      responseHeadersToAdd: [],
    });
    expect(decider.observer.told).toEqual(['store disconnected', 'failed allow', 'd allow OK']);
  });

  test('deny is OVER_LIMIT with 0 remaining and a reset of one second', () => {
    const response = new Decider(POLICY, { store: new UnavailableStore() }).answer([one('deny')]);
    expect(response.statuses).toMatchObject([
      { code: CODE.OVER_LIMIT, limitRemaining: 0, durationUntilResetSeconds: 1 },
    ]);
    expect(headers(response)).toEqual({
      'x-ratelimit-limit': '7',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '1700000001',
      'x-ratelimit-will-be-throttled': 'true',
    });
  });

  test('local decides with a bucket in memory', () => {
    const decider = new Decider(POLICY, { store: new UnavailableStore() });
    expect(decider.answer([one('local'), one('allow')]).overallCode).toBe(CODE.OK);
    expect(decider.answer([one('local'), one('allow')]).overallCode).toBe(CODE.OVER_LIMIT);
  });

  test('deny overrides error, and local buckets stay unchanged', () => {
    const decider = new Decider(POLICY, { store: new UnavailableStore() });
    expect(decider.answer([one('error'), one('deny'), one('local')]).overallCode).toBe(CODE.OVER_LIMIT);
    expect(decider.answer([one('local')]).overallCode).toBe(CODE.OK);
  });

  test('deny of a quota denies only if all quotas do', () => {
    const decider = new Decider(POLICY, { store: new UnavailableStore() });
    expect(decider.answer([one('quota-deny'), one('error')]).overallCode).toBe(CODE.OVER_LIMIT);
    expect(decider.answer([one('quota-deny'), one('quota-allow')]).overallCode).toBe(CODE.OK);
  });
});

describe('a rule that cannot deny never fails a call without the store', () => {
  const NON_DENYING_POLICY = `
domain: d
response_headers: [x-ratelimit]
descriptors:
  - { key: in-force, rate_limit: { token_bucket: { max_tokens: 1, fill_interval: 10s } } }
  - { key: allow, rate_limit: { on_store_failure: allow, token_bucket: { max_tokens: 1, fill_interval: 10s } } }
  - { key: deny, rate_limit: { on_store_failure: deny, token_bucket: { max_tokens: 1, fill_interval: 10s } } }
  - { key: monitoring, phase: monitoring, rate_limit: { token_bucket: { max_tokens: 1, fill_interval: 10s } } }
  - { key: grace, phase: grace_period, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: later, phase: { active: '2023-11-14T22:13:21Z' }, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: none, enforce_percent: 0, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: half, enforce_percent: 50, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: quota, quota_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: quota-shadow, quota_mode: true, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - key: list
    shadow_mode: true
    rate_limits:
      - { unit: hour, requests_per_unit: 5 }
      - { unit: day, requests_per_unit: 50 }
`;
  const UNAVAILABLE = new Refusal('unavailable', 'rate limit store unavailable');
  const decider = (random = 0, answers = {}) =>
    new Decider(NON_DENYING_POLICY, { store: new UnavailableStore(), random: () => random, answers });

  test.each(['monitoring', 'grace', 'later', 'shadow', 'none', 'quota-shadow', 'list'])('%s', (key) => {
    const own = decider();
    const response = own.answer([one(key)]);
    expect(response).toMatchObject({
      overallCode: CODE.OK,
      statuses: [{ code: CODE.OK, currentLimit: undefined }],
      responseHeadersToAdd: [],
    });
    // The rule is treated like `allow`.
    expect(own.observer.told).not.toContain('failed error');
    // Next to other rules, the other rules decide.
    expect(own.answer([one(key), one('allow')]).overallCode).toBe(CODE.OK);
    expect(own.answer([one(key), one('deny')]).overallCode).toBe(CODE.OVER_LIMIT);
    if (key !== 'quota-shadow') expect(own.ask([one(key), one('in-force')])).toEqual(UNAVAILABLE);
  });

  test('a rule with a schedule fails calls from the time when it is active', () => {
    const own = decider();
    own.clock.stepWall(999_999);
    expect(own.answer([one('later')]).overallCode).toBe(CODE.OK);
    own.clock.stepWall(1);
    expect(own.ask([one('later')])).toEqual(UNAVAILABLE);
  });

  test('a rule that is enforced in part fails the percentage of calls that it may deny', () => {
    expect(decider(0.49).ask([one('half')])).toEqual(UNAVAILABLE);
    expect(decider(0.5).answer([one('half')]).overallCode).toBe(CODE.OK);
  });

  test('under SHADOW_MODE, no rule fails a call', () => {
    const own = decider(0, { shadowMode: true });
    expect(own.answer([one('in-force'), one('quota')]).overallCode).toBe(CODE.OK);
  });

  test('a quota can deny, and fails calls', () => {
    expect(decider().ask([one('quota')])).toEqual(UNAVAILABLE);
  });
});

describe('the deadline given to the store', () => {
  test.each([
    ["the store's timeout, for a call without a deadline", Infinity, 2_000_000],
    ["the caller's, less the way back", 20_000, 15_000],
    ['six tenths of a short deadline', 5000, 3000],
    ["the store's timeout where it is sooner", 60_000_000, 2_000_000],
    ['a long deadline minus at most 50 ms', 1_000_000, 950_000],
  ])('is %s', (_name, patienceMicros, expected) => {
    const store = new UnavailableStore();
    const decider = new Decider(POLICY, { store });
    const start = decider.clock.monotonicMicros();
    const request = { domain: 'd', descriptors: [one('allow')], hitsAddend: 0 };
    void decider.service.decide(request, {
      ...CALLER_WITHOUT_DEADLINE,
      deadlineMicros: start + patienceMicros,
    });
    expect(store.deadlines).toEqual([start + expected]);
  });
});

describe('the decision log', () => {
  test('shows what was decided, with API keys redacted', () => {
    const decider = new Decider(POLICY);
    decider.observer.debug = true;
    decider.answer([one('error'), descriptor(['api_key=sekret', 'deny=x'])]);
    decider.answer([descriptor(['Authorization=Bearer sekret'])], 0, 'other');
    expect(decider.observer.lines).toMatchObject([
      {
        domain: 'd',
        entries: [{ key: 'error', value: 'x' }],
        rule: 'error',
        code: 'OK',
        remaining: 0,
        micros: 0,
      },
      { domain: 'd', rule: '', code: 'OK', remaining: undefined },
      { domain: 'other', rule: '' },
    ]);
    expect(JSON.stringify(decider.observer.lines)).not.toContain('sekret');
  });
});
