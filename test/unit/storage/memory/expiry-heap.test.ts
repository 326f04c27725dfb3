import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ExpiryHeap, type HeapPositions } from '../../../../src/storage/memory/expiry-heap.js';
import { runs } from '../../../support/assert/runs.js';

class Positions implements HeapPositions {
  readonly of = new Map<number, number>();
  positionOf = (slot: number) => this.of.get(slot) as number;
  setPosition = (slot: number, position: number) => void this.of.set(slot, position);
}

test('has the smallest key at the top after any pushes, updates, removals and renumberings', () => {
  const command = fc.record({
    slot: fc.nat(30),
    key: fc.integer({ min: -50, max: 50 }),
    kind: fc.constantFrom('set', 'set', 'remove', 'pop', 'renumber'),
  });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 200 }), (commands) => {
      const positions = new Positions();
      const heap = new ExpiryHeap(positions);
      let fresh = 1000;
      const model = new Map<number, number>();
      for (const { slot, key, kind } of commands) {
        if (kind === 'set') {
          if (model.has(slot)) heap.update(slot, key);
          else heap.push(slot, key);
          model.set(slot, key);
        } else if (kind === 'renumber') {
          const from = heap.top();
          if (from < 0) continue;
          const to = fresh++;
          positions.of.set(to, positions.positionOf(from));
          heap.renumbered(to);
          model.set(to, model.get(from) as number);
          model.delete(from);
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
    runs(200),
  );
});
