import { expect, test } from '@jest/globals';
import { CODE, type RateLimitResponse } from '../../../src/codec/messages.js';
import { readAnswer } from '../../chaos/calls/answer.js';
import type { Bucket } from '../../chaos/calls/buckets.js';
import { DeadlineCheck, MARGIN_MS } from '../../chaos/testbed/deadline-check.js';

const bucket = (name: string, maxTokens: number): Bucket => ({
  name,
  maxTokens,
  perMs: 1,
  onFailure: 'error',
  isLarge: false,
});
const ONE = bucket('b1', 21);
const TWO = bucket('b2', 22);

const status = (limit: Bucket | undefined, code: 1 | 2) => ({
  code,
  currentLimit: limit && { name: limit.name, requestsPerUnit: limit.maxTokens, unit: 0 as const },
  limitRemaining: 0,
  durationUntilResetSeconds: 0,
});
const response = (overallCode: 1 | 2, ...statuses: ReturnType<typeof status>[]): RateLimitResponse => ({
  overallCode,
  statuses,
  responseHeadersToAdd: [],
  requestHeadersToAdd: [],
  rawBody: undefined,
  dynamicMetadata: undefined,
});

test.each([
  ['allowed', response(CODE.OK, status(ONE, 1), status(TWO, 1)), { kind: 'allowed' }],
  ['denied', response(CODE.OVER_LIMIT, status(ONE, 1), status(TWO, 2)), { kind: 'denied', empty: [TWO] }],
  [
    'answered by policy',
    response(CODE.OK, status(undefined, 1), status(undefined, 1)),
    { kind: 'by-policy' },
  ],
  [
    'denied without a decision',
    response(CODE.OVER_LIMIT, status(undefined, 2), status(undefined, 2)),
    { kind: 'undecided-denial' },
  ],
  ['given up', response(CODE.OVER_LIMIT), { kind: 'undecided-denial' }],
  ['wrong: given up, but allowed', response(CODE.OK), { kind: 'wrong' }],
  ['wrong: it belongs to another call', response(CODE.OK, status(TWO, 1), status(ONE, 1)), { kind: 'wrong' }],
  ['wrong: a status is missing', response(CODE.OK, status(ONE, 1)), { kind: 'wrong' }],
  [
    'wrong: its codes contradict each other',
    response(CODE.OK, status(ONE, 1), status(TWO, 2)),
    { kind: 'wrong' },
  ],
])('an answer is %s', (_name, message, expected) => {
  const reply = { status: 0, details: '', response: message, malformed: undefined };
  expect(readAnswer([ONE, TWO], reply)).toMatchObject(expected);
});

test.each([
  [14, 'by-policy'],
  [4, 'by-policy'],
  [13, 'wrong'],
  [-1, 'wrong'],
])('grpc-status %d without a message is %s', (code, kind) => {
  const reply = { status: code, details: '', response: undefined, malformed: undefined };
  expect(readAnswer([ONE], reply).kind).toBe(kind);
});

test('the margin and the delay without faults are tolerated, and waiting for a core does not count', () => {
  const check = new DeadlineCheck();
  const call = (tookMs: number, waitedMs = 0) => ({
    port: 1,
    stream: 1,
    readMs: 0,
    tookMs,
    waitedMs,
    ranMs: 1,
  });
  expect(check.delayOf(call(23), 20)).toBe(0);
  expect(check.endBaseline()).toMatchObject({ calls: 1, maxMs: 23 });
  expect(check.marginMs).toBe(MARGIN_MS + 3);
  expect(check.delayOf(call(20 + MARGIN_MS + 3), 20)).toBe(0);
  expect(check.delayOf(call(20 + MARGIN_MS + 4), 20)).toBeCloseTo(MARGIN_MS + 4);
  expect(check.delayOf(call(120, 80), 20)).toBe(0);
});
