import { expect, test } from '@jest/globals';
import { data, FrameReader, PREFACE, request, windowUpdate } from '../../support/h2/h2-frames.js';

test('FrameReader finds the frames after a preface in any division of the bytes', () => {
  const bytes = Buffer.concat([PREFACE, request(1), data(1, 300), windowUpdate(0, 4), data(1, 0, 1)]);
  for (const step of [1, 2, 7, 1000]) {
    const reader = new FrameReader(PREFACE.length);
    const starts = Array.from({ length: Math.ceil(bytes.length / step) }, (_, at) => at * step);
    const frames = starts.flatMap((at) => reader.read(bytes.subarray(at, at + step)));
    expect(frames.map(({ type, flags, streamId }) => [type, flags, streamId])).toEqual([
      [1, 4, 1],
      [0, 0, 1],
      [8, 0, 0],
      [0, 1, 1],
    ]);
    expect(frames.map(({ payload }) => payload.length)).toEqual([expect.any(Number), 300, 4, 0]);
  }
});
