/* Requests with more hits than a limit can ever allow. Their answers contain that the request never passes. */
import { describe, expect, test } from '@jest/globals';
import { CODE, type Descriptor } from '../../../../src/codec/messages.js';
import { StorageError } from '../../../../src/limiter/bucket-store.js';
import { DenyCache } from '../../../../src/storage/deny-cache.js';
import { MemoryStore } from '../../../../src/storage/memory/memory-store.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';
import { MEMORY } from '../../../support/limiter/store-options.js';
import { Decider, descriptor, headers } from '../../../support/policy/decider.js';

const SECOND = 1_000_000;
const FAMILIES = 'response_headers: [x-ratelimit, retry-after, ratelimit-draft-03, ratelimit]';

const POLICY = `
domain: d
${FAMILIES}
denied_response: problem+json
decision_metadata: true
descriptors:
  - { key: bucket, rate_limit: { name: bucket, token_bucket: { max_tokens: 10, fill_interval: 1s } } }
  - { key: window, rate_limit: { name: window, unit: minute, requests_per_unit: 5 } }
  - { key: none, rate_limit: { name: none, unit: minute, requests_per_unit: 0 } }
  - { key: debt, rate_limit: { name: debt, allow_debt: true, token_bucket: { max_tokens: 10, fill_interval: 1s } } }
  - { key: hour, rate_limit: { name: hour, token_bucket: { max_tokens: 20, fill_interval: 1h } } }
  - { key: watched, phase: monitoring, rate_limit: { name: watched, token_bucket: { max_tokens: 10, fill_interval: 1s } } }
  - key: list
    rate_limits:
      - { name: slow, token_bucket: { max_tokens: 20, fill_interval: 1h } }
      - { name: small, token_bucket: { max_tokens: 10, fill_interval: 1s } }
      - { name: minute, unit: minute, requests_per_unit: 50 }
  - { key: strict, quota_mode: true, rate_limit: { name: strict, token_bucket: { max_tokens: 2, fill_interval: 1s } } }
  - { key: loose, quota_mode: true, rate_limit: { name: loose, token_bucket: { max_tokens: 20, fill_interval: 1m } } }
`;

/** The fake clock is 20 s after a full minute. */
const TO_END_OF_MINUTE = 40;

const hits = (text: string, hitsAddend?: number, more: Partial<Descriptor> = {}): Descriptor =>
  descriptor([text], { hitsAddend, ...more });

/** Everything that an answer reports about the limit it describes. */
function asked(decider: Decider, ...descriptors: Descriptor[]) {
  const response = decider.answer(descriptors);
  const { rawBody, dynamicMetadata, overallCode, statuses } = response;
  const all = headers(response);
  const reset = Number(all['x-ratelimit-reset']) - decider.clock.wallMicros() / SECOND;
  return {
    code: overallCode,
    status: statuses.map((status) => [status.currentLimit?.name, status.durationUntilResetSeconds]),
    remaining: all['x-ratelimit-remaining'],
    reset,
    draftReset: all['ratelimit-reset'],
    item: all['ratelimit'],
    retryAfter: all['retry-after'],
    throttled: all['x-ratelimit-will-be-throttled'],
    decision: dynamicMetadata?.['decision'] as Record<string, unknown>,
    body: rawBody === undefined ? undefined : JSON.parse(Buffer.from(rawBody).toString()),
  };
}

describe('a request with more hits than a limit can ever allow', () => {
  test.each<[string, { before?: number; hits: number }, { reset: number; remaining: string; name: string }]>([
    // A full bucket has no time to refill, so the answer reports the time of a complete refill.
    ['bucket=x', { hits: 11 }, { name: 'bucket', reset: 10, remaining: '10' }],
    ['bucket=x', { before: 4, hits: 11 }, { name: 'bucket', reset: 4, remaining: '6' }],
    ['bucket=x', { hits: Number.MAX_SAFE_INTEGER }, { name: 'bucket', reset: 10, remaining: '10' }],
    ['window=x', { hits: 6 }, { name: 'window', reset: TO_END_OF_MINUTE, remaining: '0' }],
    ['none=x', { hits: 1 }, { name: 'none', reset: TO_END_OF_MINUTE, remaining: '0' }],
    ['list=x', { hits: 11 }, { name: 'small', reset: 10, remaining: '10' }],
    // The first limit of the list is empty and allows the hits in an hour. The second limit never allows them.
    ['list=x', { before: 10, hits: 11 }, { name: 'small', reset: 10, remaining: '0' }],
    ['list=x', { hits: 51 }, { name: 'slow', reset: 20 * 3600, remaining: '20' }],
  ])('%s %j', (text, { before = 0, hits: wanted }, { name, reset, remaining }) => {
    const decider = new Decider(POLICY);
    if (before > 0) decider.answer([hits(text, before)]);
    const { item, decision, ...shown } = asked(decider, hits(text, wanted));
    expect(shown).toEqual({
      code: CODE.OVER_LIMIT,
      status: [[name, reset]],
      remaining,
      reset,
      draftReset: String(reset),
      retryAfter: undefined,
      throttled: 'true',
      body: {
        type: expect.stringContaining('quota-exceeded'),
        title: expect.any(String),
        status: 429,
        detail: 'The request exceeds the maximum that the limit can ever allow, so it will always be denied.',
        'violated-policies': expect.arrayContaining([name]),
      },
    });
    expect(shown.body['violated-policies'][0]).toBe(name);
    expect(item).toContain(`"${name}";r=${remaining};t=${reset}`);
    expect(decision).toMatchObject({ code: 'OVER_LIMIT', name, reason: 'never_passes' });
    expect(decision).not.toHaveProperty('retry_after');
  });

  test('is reported with a reset later than all other denials of the request, in any descriptor', () => {
    const decider = new Decider(POLICY);
    decider.answer([hits('hour=x', 20)]);
    for (const descriptors of [
      [hits('hour=x', 1), hits('bucket=x', 11)],
      [hits('bucket=x', 11), hits('hour=x', 1)],
    ]) {
      const { decision, retryAfter, status } = asked(decider, ...descriptors);
      expect(decision).toMatchObject({ name: 'bucket', reason: 'never_passes' });
      expect(retryAfter).toBeUndefined();
      expect(status).toContainEqual(['hour', 3600]);
    }
  });

  test('is reported in phases that allow the request', () => {
    const { code, decision, throttled, reset } = asked(new Decider(POLICY), hits('watched=x', 11));
    expect([code, throttled, reset]).toEqual([CODE.OK, 'true', 10]);
    expect(decision).toMatchObject({ code: 'OK', retry_after: 0, reason: 'never_passes' });
  });

  test('has one listed limit if two buckets of one rule deny it', () => {
    const decider = new Decider(POLICY);
    decider.answer([hits('bucket=x', 10)]);
    const { item } = asked(decider, hits('bucket=x', 1), hits('bucket=y', 11));
    expect(item).toBe('"bucket";r=10;t=10');
  });

  test('names a limit override, too', () => {
    const limit = { requestsPerUnit: 5, unit: 2 };
    const { decision, retryAfter } = asked(new Decider(POLICY), hits('bucket=x', 6, { limit }));
    expect(decision).toMatchObject({ rule: 'override', reason: 'never_passes' });
    expect(retryAfter).toBeUndefined();
    const zero = { limit: { requestsPerUnit: 0, unit: 2 } };
    expect(asked(new Decider(POLICY), hits('bucket=x', 1, zero)).retryAfter).toBeUndefined();
  });

  test('is not reported for a quota next to a quota that can allow the hits', () => {
    const decider = new Decider(POLICY);
    decider.answer([hits('loose=x', 19)]);
    const both = [hits('strict=x', 3), hits('loose=x', 3)];
    expect(asked(decider, ...both)).toMatchObject({ decision: { name: 'loose' }, retryAfter: '120' });
    expect(asked(decider, ...both.reverse())).toMatchObject({
      decision: { name: 'loose' },
      retryAfter: '120',
    });
    expect(asked(decider, hits('strict=x', 3), hits('loose=x', 21))).toMatchObject({
      decision: { reason: 'never_passes' },
      retryAfter: undefined,
    });
  });
});

describe('descriptors of one bucket that together have more hits than it can ever contain', () => {
  const never = { decision: { reason: 'never_passes' }, retryAfter: undefined };

  test.each<[string, Descriptor[], { before?: number; name: string; reset: number; sum: string }]>([
    ['bucket', [hits('bucket=x', 6), hits('bucket=x', 5)], { name: 'bucket', reset: 10, sum: '11 of 10' }],
    [
      'bucket',
      [hits('bucket=x', 6), hits('bucket=x', 5)],
      { before: 2, name: 'bucket', reset: 2, sum: '11 of 10' },
    ],
    // The first limit denies, but would allow the hits with a full bucket.
    [
      'bucket',
      [hits('bucket=x', 6), hits('bucket=x', 5)],
      { before: 7, name: 'bucket', reset: 7, sum: '11 of 10' },
    ],
    ['peek', [hits('bucket=x', 10), hits('bucket=x', 0)], { name: 'bucket', reset: 10, sum: '10 of 10' }],
    [
      'window',
      [hits('window=x', 3), hits('window=x', 3)],
      { name: 'window', reset: TO_END_OF_MINUTE, sum: '6 of 5' },
    ],
    ['list', [hits('list=x', 6), hits('list=x', 6)], { before: 3, name: 'small', reset: 3, sum: '12 of 10' }],
    ['debt', [hits('debt=x', 12), hits('debt=x', 1)], { before: 4, name: 'debt', reset: 4, sum: '13 of 10' }],
    [
      'many',
      Array.from({ length: 20 }, (_, i) => hits(`bucket=${i % 19}`, 6)),
      { name: 'bucket', reset: 10, sum: '12 of 10' },
    ],
  ])('%s %#', (key, descriptors, { before = 0, name, reset, sum }) => {
    const decider = new Decider(POLICY);
    if (before > 0) decider.answer([hits(`${key === 'peek' ? 'bucket' : key}=x`, before)]);
    const answer = asked(decider, ...descriptors);
    expect(answer).toMatchObject({ ...never, code: CODE.OVER_LIMIT, reset, decision: { name } });
    expect(answer.status.at(-1)).toEqual([name, reset]);
    expect(answer.body.detail).toContain('it will always be denied');
    const told = decider.observer.told.filter((line) => line.includes('never'));
    expect(new Set(told)).toEqual(new Set([`d ${name === 'small' ? 'list[small]' : name} never ${sum}`]));
  });

  test.each<[string, Descriptor[]]>([
    ['as many hits as the capacity', [hits('bucket=x', 6), hits('bucket=x', 4)]],
    ['another bucket', [hits('bucket=x', 6), hits('bucket=y', 6)]],
    [
      'hits with a refund in between',
      [hits('bucket=x', 6), hits('bucket=x', 6, { isNegativeHits: true }), hits('bucket=x', 6)],
    ],
  ])('is not reported for %s', (_name, descriptors) => {
    const decider = new Decider(POLICY);
    decider.answer([hits('bucket=x', 9)]);
    const { decision, retryAfter } = asked(decider, ...descriptors);
    expect(decision).not.toHaveProperty('reason');
    expect(Number(retryAfter)).toBeGreaterThan(0);
  });

  test('is allowed by quotas if one of them can allow it', () => {
    const decider = new Decider(POLICY);
    const both = [hits('strict=x', 2), hits('strict=x', 1)];
    expect(asked(decider, ...both).code).toBe(CODE.OK);
    expect(asked(decider, ...both)).toMatchObject({ code: CODE.OVER_LIMIT, retryAfter: '2' });
  });

  test('is reported if the local store decides for an unavailable store', () => {
    const take = () => new StorageError('disconnected', 'away');
    const policy = POLICY.replace('name: bucket,', 'name: bucket, on_store_failure: local,');
    const decider = new Decider(policy, { store: { take, close: async () => {} } });
    expect(asked(decider, hits('bucket=x', 6), hits('bucket=x', 5))).toMatchObject({ ...never, reset: 10 });
  });
});

test('is reported in the same way if the deny cache denies it', () => {
  const clock = new FakeClock();
  const store = new DenyCache({
    store: new MemoryStore({ ...MEMORY, clock }),
    maxAgeMicros: 60 * SECOND,
    windows: true,
    maxEntries: 10,
    monotonicMicros: () => clock.monotonicMicros(),
  });
  const decider = new Decider(POLICY, { store });
  decider.answer([hits('bucket=x', 4)]);
  const asks = [hits('bucket=x', 11), hits('window=x', 6), hits('list=x', 51)];
  const first = asks.map((ask) => asked(decider, ask));
  expect(store.answers).toBe(0);
  expect(asks.map((ask) => asked(decider, ask))).toEqual(first);
  expect(store.answers).toBe(2);
});

test('the observer gets every limit that can never allow the hits', () => {
  const decider = new Decider(POLICY);
  decider.answer([hits('list=x', 30), hits('window=x', 5), hits('watched=x', 11)]);
  expect(decider.observer.told.filter((line) => line.includes('never'))).toEqual([
    'd list[slow] never 30 of 20',
    'd list[small] never 30 of 10',
    'd watched never 11 of 10',
  ]);
});

test('the window of a list that denies a request reports its remaining hits', () => {
  const items = `
      - { name: minute, unit: minute, requests_per_unit: 5 }
      - { name: hour, unit: hour, requests_per_unit: 100 }`;
  const policy = `domain: d\n${FAMILIES}\ndescriptors:\n  - key: k\n    rate_limits:${items}\n`;
  const decider = new Decider(policy);
  const left = (wanted: number, ...more: Descriptor[]) =>
    decider
      .answer([hits('k=x', wanted), ...more])
      .statuses.map(({ code, limitRemaining }) => [code, limitRemaining]);
  expect(left(3)).toEqual([[CODE.OK, 2]]);
  expect(left(3)).toEqual([[CODE.OVER_LIMIT, 2]]);
  // The states that two takes of one window found.
  expect(left(2, hits('k=x', 1))).toEqual([
    [CODE.OK, 2],
    [CODE.OVER_LIMIT, 0],
  ]);
  expect(left(2)).toEqual([[CODE.OK, 0]]);
  expect(left(1)).toEqual([[CODE.OVER_LIMIT, 0]]);
});

test('with enforce_percent, which allows some denied requests, no request is reported as never passing', () => {
  const ask = (percent: number) => {
    const limit = `enforce_percent: ${percent}, rate_limit: { unit: minute, requests_per_unit: 5 }`;
    const policy = `domain: d\n${FAMILIES}\ndenied_response: problem+json\ndescriptors: [{ key: k, ${limit} }]\n`;
    const decider = new Decider(policy, { random: () => 0 });
    const answer = decider.answer([hits('k=1', 6)]);
    expect(answer.overallCode).toBe(CODE.OVER_LIMIT);
    return { after: headers(answer)['retry-after'], body: Buffer.from(answer.rawBody ?? []).toString() };
  };
  expect(ask(100)).toEqual({ after: undefined, body: expect.stringContaining('it will always be denied') });
  expect(ask(50)).toEqual({ after: `${TO_END_OF_MINUTE}`, body: expect.not.stringContaining('never') });
});
