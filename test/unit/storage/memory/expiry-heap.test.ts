import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ExpiryHeap } from '../../../../src/storage/memory/expiry-heap.js';

test('always has the smallest key on top, through pushes, updates, removals and growth', () => {
  const command = fc.record({
    slot: fc.nat(30),
    key: fc.integer({ min: -50, max: 50 }),
    kind: fc.constantFrom('set', 'set', 'remove', 'pop'),
  });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 200 }), (commands) => {
      const heap = new ExpiryHeap(8);
      let capacity = 8;
      const model = new Map<number, number>();
      for (const { slot, key, kind } of commands) {
        while (slot >= capacity) {
          capacity *= 2;
          heap.grow(capacity);
        }
        if (kind === 'set') {
          if (model.has(slot)) heap.update(slot, key);
          else heap.push(slot, key);
          model.set(slot, key);
        } else {
          const out = kind === 'pop' ? heap.top() : slot;
          if (model.delete(out)) heap.remove(out);
        }
        expect(heap.size).toBe(model.size);
        const top = heap.top();
        if (model.size === 0) {
          expect(top).toBe(-1);
        } else {
          expect(model.get(top)).toBe(Math.min(...model.values()));
          expect(heap.keyOf(top)).toBe(model.get(top));
        }
      }
    }),
    { numRuns: 200 },
  );
});
