import { expect, test } from '@jest/globals';
import { freeBuffer } from '../../../src/runtime/free-buffer.js';

test('frees a buffer with its own memory, even if called repeatedly', () => {
  const bytes = Buffer.allocUnsafeSlow(1000);
  const { buffer } = bytes;
  freeBuffer(bytes);
  freeBuffer(bytes);
  expect([bytes.length, buffer.byteLength]).toEqual([0, 0]);
});

test('does not free shared or empty memory', () => {
  const whole = Buffer.allocUnsafeSlow(1000);
  const part = whole.subarray(0, 999);
  const pooled = Buffer.from('a slice of the pool');
  const empty = Buffer.alloc(0);
  for (const bytes of [part, pooled, empty, empty]) freeBuffer(bytes);
  expect([whole.length, part.length, pooled.toString()]).toEqual([1000, 999, 'a slice of the pool']);
});
