import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { FrameReader, ReadQuantum } from '../../../src/h2/frame-reader.js';
import { OutputBuffer } from '../../../src/h2/frames.js';
import { runs } from '../../support/assert/runs.js';
import { frame } from '../../support/h2/h2-peer.js';

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
      new ReadQuantum(() => 0),
    );
    for (let n = 0; n < stopAt; n++) {
      const bytes = frame(0, 0, 0, Buffer.alloc(5000, n));
      reader.read(bytes.subarray(0, 100), 0);
      reader.read(bytes.subarray(100), 0);
    }
    expect(frames.map(({ length }) => length)).toEqual([0, 0]);
    expect(reader.heldBytes).toBe(0);
  });
});
