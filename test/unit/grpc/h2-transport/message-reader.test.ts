import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MessageReader, ReceiveBudget } from '../../../../src/grpc/h2-transport/message-reader.js';
import { runs } from '../../../support/assert/runs.js';
import { prefixed } from '../../../support/h2/http2-client.js';

const bytes = fc.uint8Array({ maxLength: 9000 });

describe('MessageReader', () => {
  test('reads the same messages for any chunk sizes, and returns all memory', () => {
    fc.assert(
      fc.property(
        fc.array(bytes, { maxLength: 4 }),
        fc.infiniteStream(fc.integer({ min: 1, max: 5000 })),
        (messages, cuts) => {
          const budget = new ReceiveBudget(1_000_000);
          const reader = new MessageReader(9000, budget);
          const wire = Buffer.concat(messages.map((message) => prefixed(message)));
          const read: Buffer[] = [];
          let at = 0;
          while (at < wire.length) {
            const end = Math.min(wire.length, at + (cuts.next().value as number));
            while (at < end) {
              if (reader.read(wire, at, end) === 'message') read.push(reader.take());
              at = reader.position;
            }
          }
          expect(read).toEqual(messages.map((message) => Buffer.from(message)));
          expect(budget.bytes).toBe(0);
          expect(reader.empty).toBe(true);
        },
      ),
      runs(150),
    );
  });

  test('detects bytes that are returned twice', () => {
    const budget = new ReceiveBudget(1000);
    budget.take(10);
    budget.release(10);
    expect(() => budget.release(10)).toThrow('no more memory is released than was reserved');
  });

  test('allocates memory for received bytes, not for announced bytes', () => {
    const budget = new ReceiveBudget(10_000_000);
    const reader = new MessageReader(4_000_000, budget);
    reader.read(Buffer.concat([Buffer.of(0, 0, 0x3d, 0x09, 0), Buffer.alloc(10)]), 0, 15);
    expect(budget.bytes).toBeLessThanOrEqual(4096);
    reader.drop();
    expect(budget.bytes).toBe(0);
  });

  test('keeps only the start of a message, and the slack that gzip may add', () => {
    const message = prefixed(Buffer.from(Array.from({ length: 9000 }, (_, at) => at & 0xff)));
    for (const cut of [5, 6, 100, 105, 106, 8000]) {
      const budget = new ReceiveBudget(1000);
      const reader = new MessageReader(9000, budget, 100);
      expect(reader.read(message, 0, cut)).toBe('more');
      expect(reader.read(message, cut, message.length)).toBe('message');
      expect(reader.position).toBe(message.length);
      expect(reader.take().equals(message.subarray(5, 105))).toBe(true);
      expect(budget.bytes).toBe(0);
    }
    const reader = new MessageReader(9000, new ReceiveBudget(9000), 100);
    const compressed = Buffer.from(message);
    compressed[0] = 1;
    reader.read(compressed, 0, compressed.length);
    expect(reader.take()).toHaveLength(100 + 1024);
  });

  test('frees dropped messages, but not messages in use', () => {
    const message = prefixed(Buffer.alloc(100_000, 'x'));
    const read = (): MessageReader => {
      const reader = new MessageReader(100_000, new ReceiveBudget(1_000_000));
      expect(reader.read(message, 0, message.length)).toBe('message');
      return reader;
    };
    const taken = read().take();
    const lender = read();
    const lent = lender.lend();
    const dropper = read();
    const dropped = dropper.message;
    for (const reader of [lender, dropper]) reader.drop();
    expect([taken.length, lent.length, dropped.length]).toEqual([100_000, 100_000, 0]);
  });
});
