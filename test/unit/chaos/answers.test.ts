import { expect, test } from '@jest/globals';
import { CODE, type RateLimitResponse } from '../../../src/codec/messages.js';
import { readAnswer } from '../../chaos/calls/answer.js';
import type { Bucket } from '../../chaos/calls/buckets.js';
import { FrameScan } from '../../chaos/latency/frame-scanner.js';
import { Lateness, MARGIN_MS } from '../../chaos/testbed/deadline-check.js';

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
  ['admitted', response(CODE.OK, status(ONE, 1), status(TWO, 1)), { kind: 'admitted' }],
  ['denied', response(CODE.OVER_LIMIT, status(ONE, 1), status(TWO, 2)), { kind: 'denied', short: [TWO] }],
  ['answered by policy', response(CODE.OK, status(undefined, 1), status(undefined, 1)), { kind: 'policy' }],
  [
    'denied unseen',
    response(CODE.OVER_LIMIT, status(undefined, 2), status(undefined, 2)),
    { kind: 'unseen' },
  ],
  ['of another call', response(CODE.OK, status(TWO, 1), status(ONE, 1)), { kind: 'wrong' }],
  ['too short', response(CODE.OK, status(ONE, 1)), { kind: 'wrong' }],
  ['at odds with itself', response(CODE.OK, status(ONE, 1), status(TWO, 2)), { kind: 'wrong' }],
])('an answer is %s', (_name, message, expected) => {
  expect(readAnswer([ONE, TWO], 0, '', message)).toMatchObject(expected);
});

test.each([
  [14, 'policy'],
  [4, 'policy'],
  [13, 'wrong'],
  [-1, 'wrong'],
])('grpc-status %d without a message is %s', (code, kind) => {
  expect(readAnswer([ONE], code, '', undefined).kind).toBe(kind);
});

test('a stream ends where its last frame does, however the bytes are cut', () => {
  const frame = (type: number, flags: number, stream: number, bytes: number): Buffer => {
    const all = Buffer.alloc(9 + bytes, 1);
    all.writeUIntBE(bytes, 0, 3);
    all[3] = type;
    all[4] = flags;
    all.writeUInt32BE(stream, 5);
    return all;
  };
  const bytes = Buffer.concat([
    Buffer.alloc(24, 0x20),
    frame(4, 1, 0, 0),
    frame(1, 4, 1, 30),
    frame(0, 1, 1, 12),
    frame(1, 4, 3, 5),
    frame(0, 0, 3, 300),
    frame(0, 1, 3, 0),
    // WINDOW_UPDATE has no END_STREAM, whatever its flags are.
    frame(8, 1, 5, 4),
  ]);
  for (const step of [1, 2, 7, 1000]) {
    const scan = new FrameScan(24);
    const ended: number[] = [];
    for (let at = 0; at < bytes.length; at += step) {
      scan.scan(bytes.subarray(at, at + step), (stream) => ended.push(stream));
    }
    expect(ended).toEqual([1, 3]);
  }
});

test('an answer is late beyond the deadline, the margin and what is usual, waits for a core aside', () => {
  const lateness = new Lateness();
  const call = (tookMs: number, waitedMs = 0) => ({
    port: 1,
    stream: 1,
    readMs: 0,
    tookMs,
    waitedMs,
    ranMs: 1,
  });
  expect(lateness.lateBy(call(23), 20)).toBe(0);
  expect(lateness.endBaseline()).toMatchObject({ calls: 1, longestMs: 23 });
  expect(lateness.marginMs).toBe(MARGIN_MS + 3);
  expect(lateness.lateBy(call(20 + MARGIN_MS + 3), 20)).toBe(0);
  expect(lateness.lateBy(call(20 + MARGIN_MS + 4), 20)).toBeCloseTo(MARGIN_MS + 4);
  expect(lateness.lateBy(call(120, 80), 20)).toBe(0);
});
