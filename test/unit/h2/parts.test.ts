import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Budget } from '../../../src/h2/budget.js';
import { FrameReader } from '../../../src/h2/frame-reader.js';
import { OutputBuffer } from '../../../src/h2/output-buffer.js';
import {
  MAX_WINDOW_BYTES,
  overflowsWindow,
  ReceiveWindow,
  sendable,
} from '../../../src/h2/streams/flow-window.js';
import { WorkSlice } from '../../../src/h2/work-slice.js';
import { runs } from '../../support/assert/runs.js';
import { frame } from '../../support/h2/h2-peer.js';

describe('flow control arithmetic', () => {
  test('a window is at most 2^31-1', () => {
    expect(overflowsWindow(0, MAX_WINDOW_BYTES)).toBe(false);
    expect(overflowsWindow(1, MAX_WINDOW_BYTES)).toBe(true);
    expect(overflowsWindow(-MAX_WINDOW_BYTES, MAX_WINDOW_BYTES)).toBe(false);
  });

  test('the amount that may be sent is the smaller window, and never negative', () => {
    expect(sendable(5, 7)).toBe(5);
    expect(sendable(7, 5)).toBe(5);
    expect(sendable(-3, 5)).toBe(0);
  });

  test('available, unconsumed and uncredited octets add up to the window', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('receive', 'consume', 'takeIncrement'), fc.nat(400)), {
          maxLength: 60,
        }),
        (steps) => {
          const window = new ReceiveWindow(1000);
          for (const [step, octets] of steps) {
            window[step as 'receive' | 'consume' | 'takeIncrement'](octets);
            expect(window.available + window.unconsumed + window.pendingIncrement).toBe(1000);
            expect(
              Math.min(window.available, window.unconsumed, window.pendingIncrement),
            ).toBeGreaterThanOrEqual(0);
          }
        },
      ),
      runs(300),
    );
  });
});

describe('a budget', () => {
  test('is a burst, refilled by the second, with fractions, up to the burst', () => {
    const budget = new Budget(3, 2, 0);
    expect([0, 0, 0, 0].map((now) => budget.take(now))).toEqual([true, true, true, false]);
    expect(budget.take(499)).toBe(false);
    expect(budget.take(500)).toBe(true);
    expect(budget.take(500)).toBe(false);
    expect([1e6, 1e6, 1e6, 1e6].map((now) => budget.take(now))).toEqual([true, true, true, false]);
  });

  test('accepts returned tokens', () => {
    const budget = new Budget(2, 0, 0);
    budget.take(0);
    budget.refund(10);
    expect([0, 0, 0].map((now) => budget.take(now))).toEqual([true, true, false]);
  });
});

describe('the output buffer', () => {
  test('never changes returned bytes, and loses no bytes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.uint8Array({ minLength: 1, maxLength: 6000 }), fc.constant(undefined)), {
          maxLength: 40,
        }),
        (steps) => {
          const output = new OutputBuffer();
          const taken: Buffer[] = [];
          for (const step of steps) {
            if (step === undefined) {
              const part = output.take();
              if (part !== undefined) taken.push(part);
              continue;
            }
            const at = output.reserve(step.length);
            output.bytes.set(step, at);
            output.end = at + step.length;
          }
          const rest = output.take();
          if (rest !== undefined) taken.push(rest);
          expect(output.length).toBe(0);
          const expected = Buffer.concat(steps.filter((step) => step !== undefined));
          expect(Buffer.concat(taken).equals(expected)).toBe(true);
        },
      ),
      runs(300),
    );
  });
});

test('the returned bytes of a large answer use no additional memory', () => {
  const output = new OutputBuffer();
  const at = output.reserve(100_000);
  output.bytes.fill(7, at, at + 100_000);
  output.end = at + 100_000;
  const taken = output.take();
  expect(taken?.equals(Buffer.alloc(100_000, 7))).toBe(true);
  expect(taken?.buffer.byteLength).toBe(100_000);
});

test('the output buffer gives up its slab once nothing is pending, and begins with a small one again', () => {
  const output = new OutputBuffer();
  const put = (bytes: number): void => {
    output.end = output.reserve(bytes) + bytes;
  };
  for (let n = 0; n < 10; n++) {
    put(30_000);
    if (n < 9) output.take();
  }
  const slab = output.bytes.length;
  output.trim();
  expect([output.length, output.bytes.length]).toEqual([30_000, slab]);
  output.take();
  output.trim();
  expect(output.bytes).toHaveLength(0);
  put(1);
  expect(output.bytes.length).toBeLessThan(slab / 8);
});

describe('the frame reader', () => {
  test('frees a long frame after it is processed, and all its memory when it stops', () => {
    const frames: Buffer[] = [];
    const stopAt = 2;
    const reader = new FrameReader(
      {
        onFrame: (_type, _flags, _id, bytes, start, end) => {
          expect([...new Set(bytes.subarray(start, end))]).toEqual([frames.length]);
          if (frames.push(bytes) === stopAt) reader.stop();
          return true;
        },
        onOversizedFrame: () => {},
      },
      5000,
      new WorkSlice(() => 0),
    );
    for (let n = 0; n < stopAt; n++) {
      const bytes = frame(0, 0, 0, Buffer.alloc(5000, n));
      reader.read(bytes.subarray(0, 100), 0);
      reader.read(bytes.subarray(100), 0);
    }
    expect(frames.map(({ length }) => length)).toEqual([0, 0]);
    expect(reader.heldBytes).toBe(0);
  });

  test('returns the same frames for any chunk sizes', () => {
    const frames = fc.array(
      fc.tuple(fc.nat(255), fc.nat(255), fc.nat(1000), fc.uint8Array({ maxLength: 300 })),
      {
        maxLength: 12,
      },
    );
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (sent, cuts) => {
        const bytes = Buffer.concat(
          sent.map(([type, flags, id, payload]) => frame(type, flags, id, payload)),
        );
        const got: unknown[] = [];
        const reader = new FrameReader(
          {
            onFrame: (type, flags, id, chunk, start, end) => {
              got.push([type, flags, id, Uint8Array.from(chunk.subarray(start, end))]);
              return true;
            },
            onOversizedFrame: () => got.push('too large'),
          },
          300,
          new WorkSlice(() => 0),
        );
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const length = cuts[turn % cuts.length] as number;
          reader.read(Buffer.from(bytes.subarray(at, at + length)), 0);
          at += length;
        }
        expect(got).toEqual(
          sent.map(([type, flags, id, payload]) => [type, flags, id, Uint8Array.from(payload)]),
        );
      }),
      runs(300),
    );
  });

  test('stops at the length of an oversized frame, and on request', () => {
    const seen: number[] = [];
    let oversized = 0;
    const reader = new FrameReader(
      {
        onFrame: (type) => seen.push(type) < 2,
        onOversizedFrame: (length) => {
          oversized = length;
        },
      },
      10,
      new WorkSlice(() => 0),
    );
    reader.read(frame(0, 0, 0, Buffer.alloc(10)), 0);
    const large = frame(1, 0, 0, Buffer.alloc(11));
    reader.read(large.subarray(0, 9), 0);
    expect(oversized).toBe(11);
    reader.read(frame(2, 0, 0), 0);
    expect(seen).toEqual([0]);
  });
});
