import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { BufferBudget, MemoryAccount, type MemoryOwner } from '../../../src/h2/serving/buffer-budget.js';
import { runs } from '../../support/assert/runs.js';

class TestHolder implements MemoryOwner {
  readonly holding = new MemoryAccount(this);
  bytes = 0;
  evicted = false;

  measure(): number {
    return this.bytes;
  }

  evict(): void {
    this.evicted = true;
    this.bytes = 0;
  }
}

describe('BufferBudget', () => {
  test('closes the largest holder, and no more holders than necessary', () => {
    const budget = new BufferBudget(1000);
    const holders = [300, 500, 100, 200].map((bytes) => {
      const holder = new TestHolder();
      holder.bytes = bytes;
      budget.set(holder.holding, bytes);
      return holder;
    });
    expect(budget.bytes).toBe(1100);
    budget.enforce();
    expect(holders.map(({ evicted }) => evicted)).toEqual([false, true, false, false]);
    expect(budget.bytes).toBe(600);
    budget.enforce();
    expect(budget.bytes).toBe(600);
  });

  test('detects holders with a negative amount', () => {
    expect(() => new BufferBudget(1000).set(new TestHolder().holding, -1)).toThrow('never negative');
  });

  test('updates the amounts before it closes a holder, because sockets send data without notice', () => {
    const budget = new BufferBudget(1000);
    const [emptied, full] = [new TestHolder(), new TestHolder()];
    budget.set(emptied.holding, 900);
    budget.set(full.holding, 600);
    full.bytes = 600;
    budget.enforce();
    expect([emptied.evicted, full.evicted]).toEqual([false, false]);
    expect(budget.bytes).toBe(600);
  });

  test('for any changes, the sum is correct, and a closed holder has at least 3/4 of the largest amount', () => {
    const change = fc.tuple(fc.nat({ max: 9 }), fc.oneof(fc.nat({ max: 5 }), fc.nat({ max: 100_000 })));
    fc.assert(
      fc.property(fc.array(change, { maxLength: 100 }), (changes) => {
        const budget = new BufferBudget(150_000);
        const holders = Array.from({ length: 10 }, () => new TestHolder());
        for (const [index, bytes] of changes) {
          const holder = holders[index] as TestHolder;
          holder.bytes = bytes;
          holder.evicted = false;
          budget.set(holder.holding, bytes);
          const before = holders.map((one) => one.bytes);
          const largest = Math.max(...before);
          budget.enforce();
          const first = holders.findIndex((one) => one.evicted && one.bytes === 0 && one.holding.bytes === 0);
          if (before.reduce((sum, one) => sum + one, 0) > 150_000) {
            expect(first).toBeGreaterThanOrEqual(0);
            const gone = before.filter((_, at) => holders[at]?.evicted === true && (before[at] ?? 0) > 0);
            expect(Math.max(...gone)).toBeGreaterThanOrEqual(0.75 * largest);
          }
          expect(budget.bytes).toBe(holders.reduce((sum, one) => sum + one.bytes, 0));
          expect(budget.bytes).toBeLessThanOrEqual(150_000);
        }
      }),
      runs(300),
    );
  });
});
