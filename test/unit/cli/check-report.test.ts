import { describe, expect, test } from '@jest/globals';
import { type CheckResult, checkJson, checkTable } from '../../../src/cli/check.js';
import { CODE, type Code, LIMIT_UNIT, type RateLimitResponse } from '../../../src/codec/messages.js';

const result: CheckResult = {
  ok: 100,
  overLimit: 99,
  otherAnswers: 0,
  errors: new Map([['UNAVAILABLE', 1]]),
  hits: 1,
  last: {
    overallCode: CODE.OVER_LIMIT,
    statuses: [
      {
        code: CODE.OVER_LIMIT,
        currentLimit: { name: 'user-chats', requestsPerUnit: 100, unit: LIMIT_UNIT.minute },
        limitRemaining: 0,
        durationUntilResetSeconds: 1,
      },
      {
        code: CODE.OK,
        currentLimit: { name: '', requestsPerUnit: 5, unit: LIMIT_UNIT.unknown },
        limitRemaining: 4,
        durationUntilResetSeconds: undefined,
      },
      { code: CODE.OK, currentLimit: undefined, limitRemaining: 0, durationUntilResetSeconds: undefined },
    ],
    responseHeadersToAdd: [{ key: 'x-ratelimit-limit', value: '100\u001b[2J' }],
    requestHeadersToAdd: [{ key: 'x-quota', value: '7\u001b[2J' }],
    rawBody: undefined,
    dynamicMetadata: { a: 1 },
  },
  unmatched: [{ descriptor: 3, why: ['did you mean a?', 'b\u001b[2J'] }],
  latencies: Float64Array.from({ length: 200 }, (_unused, i) => i + 1),
};
const nothing: CheckResult = {
  ok: 0,
  overLimit: 0,
  otherAnswers: 0,
  errors: new Map([['UNAVAILABLE', 1]]),
  hits: 1,
  last: undefined,
  unmatched: [],
  latencies: new Float64Array(0),
};

describe('checkTable', () => {
  test('shows counts, the last answer and the latency, without control characters from the server', () => {
    expect(checkTable(result, false)).toBe(`OK                  100
OVER_LIMIT          99
UNAVAILABLE         1

last answer         OVER_LIMIT
  descriptor 1: OVER_LIMIT, limit 100 per minute (user-chats), remaining 0, reset in 1s
  descriptor 2: OK, limit 5, remaining 4
  descriptor 3: OK, no rule matched
  x-ratelimit-limit: 100\ufffd[2J
  upstream x-quota: 7\ufffd[2J

why no rule matched
  descriptor 3: did you mean a?
  descriptor 3: b\ufffd[2J

latency  p50 100.00 ms, p99 198.00 ms
`);
  });

  test('shows the class of the caller if the decision metadata names it', () => {
    const dynamicMetadata = { decision: { class: 'batch\u001b[2J' } };
    const last = { ...(result.last as RateLimitResponse), dynamicMetadata };
    expect(checkTable({ ...result, last }, false)).toContain('\n  class batch\ufffd[2J\n');
    expect(checkTable(result, false)).not.toContain('class');
  });

  test('explains the time of a status', () => {
    const limit = { name: '', requestsPerUnit: 5, unit: LIMIT_UNIT.unknown };
    const words = (hits: number, code: Code, currentLimit?: typeof limit): string | undefined => {
      const status = { code, currentLimit, limitRemaining: 0, durationUntilResetSeconds: 3589 };
      const last = { ...(result.last as RateLimitResponse), statuses: [status] };
      return /remaining 0, (.*)|no limit, (.*)/
        .exec(checkTable({ ...result, hits, last }, false))
        ?.slice(1)
        .join('');
    };
    expect(words(3, CODE.OK, limit)).toBe('reset in 59m49s');
    expect(words(0, CODE.OVER_LIMIT, limit)).toBe('reset in 59m49s');
    expect(words(3, CODE.OVER_LIMIT, limit)).toBe('enough tokens in 59m49s');
    // More hits than the limit are always denied.
    expect(words(6, CODE.OVER_LIMIT, limit)).toBe('full in 59m49s');
    // A request that exceeds a processing bound has no limit.
    expect(words(1, CODE.OVER_LIMIT)).toBe('denied for 59m49s');
  });

  test('shows percentiles for 10 or more calls', () => {
    const latencies = Float64Array.from({ length: 10 }, (_unused, i) => i + 1);
    const few = { ...result, latencies: latencies.subarray(0, 9) };
    expect(checkTable(few, false)).not.toContain('latency');
    expect(JSON.parse(checkJson(few))).not.toHaveProperty('latencyMs');
    expect(checkTable({ ...result, latencies }, false)).toContain('latency  p50 5.00 ms, p99 10.00 ms\n');
    expect(JSON.parse(checkJson({ ...result, latencies }))).toMatchObject({ latencyMs: { p50: 5, p99: 10 } });
  });

  test('shows answers that are neither OK nor OVER_LIMIT', () => {
    expect(checkTable({ ...nothing, otherAnswers: 2 }, false)).toContain('other               2\n');
  });

  test('colors only names, and only if colors are on', () => {
    expect(checkTable(result, true)).toContain('\u001b[32mOK                  \u001b[0m100\n');
    expect(checkTable(result, true)).toContain('\u001b[31mOVER_LIMIT          \u001b[0m99\n');
  });
});

describe('the body of a denial', () => {
  const last = result.last && { ...result.last, rawBody: Buffer.from('no\u001b[2J\n') };

  test('is shown in both formats, without control characters', () => {
    expect(checkTable({ ...result, last }, false)).toMatch(/\n {2}body: no\ufffd\[2J/);
    expect(JSON.parse(checkJson({ ...result, last }))).toHaveProperty('last.body', 'no\u001b[2J\n');
  });
});

describe('checkJson', () => {
  test('is one line with all values', () => {
    const text = checkJson(result);
    expect(text).toMatch(/^[^\n]+\n$/);
    expect(JSON.parse(text)).toEqual({
      ok: 100,
      overLimit: 99,
      unmatched: [{ descriptor: 3, why: ['did you mean a?', 'b\u001b[2J'] }],
      otherAnswers: 0,
      errors: { UNAVAILABLE: 1 },
      last: {
        code: 'OVER_LIMIT',
        statuses: [
          {
            code: 'OVER_LIMIT',
            limit: { name: 'user-chats', requestsPerUnit: 100, unit: 'minute' },
            remaining: 0,
            resetSeconds: 1,
          },
          { code: 'OK', limit: { name: '', requestsPerUnit: 5, unit: 'unknown' }, remaining: 4 },
          { code: 'OK', remaining: 0 },
        ],
        headers: [{ key: 'x-ratelimit-limit', value: '100\u001b[2J' }],
        requestHeaders: [{ key: 'x-quota', value: '7\u001b[2J' }],
        dynamicMetadata: { a: 1 },
      },
      latencyMs: { p50: 100, p99: 198 },
    });
  });

  test('omits missing values', () => {
    expect(JSON.parse(checkJson(nothing))).toEqual({
      ok: 0,
      overLimit: 0,
      otherAnswers: 0,
      errors: { UNAVAILABLE: 1 },
    });
  });
});
