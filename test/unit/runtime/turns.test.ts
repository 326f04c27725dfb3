import { beforeEach, describe, expect, test } from '@jest/globals';
import { TurnScheduler, withTimeout } from '../../../src/runtime/turns.js';

describe('turns of the event loop', () => {
  let ends: (() => void)[];
  let served: string[];

  beforeEach(() => {
    ends = [];
    served = [];
  });

  /** Runs one turn of the event loop. */
  function turn(): readonly string[] {
    served = [];
    for (const end of ends.splice(0)) end();
    return served;
  }

  function turnsOf(budget: number, again: ReadonlySet<string> = new Set()): TurnScheduler<string> {
    const turns: TurnScheduler<string> = new TurnScheduler({
      budget,
      serve: (waiter) => {
        served.push(waiter);
        turns.spend(1);
        if (again.has(waiter)) turns.wait(waiter);
      },
      nextTurn: (callback) => ends.push(callback),
    });
    return turns;
  }

  test('serve as many jobs as the budget allows, in their order', () => {
    const turns = turnsOf(2);
    for (const waiter of ['a', 'b', 'c', 'b', 'd', 'e']) turns.wait(waiter);
    expect(turns.cancel('c')).toBe(true);
    expect(turns.cancel('c')).toBe(false);
    expect([turns.size, ends.length, served]).toEqual([4, 1, []]);
    expect([turn(), turn(), turn()]).toEqual([['a', 'b'], ['d', 'e'], []]);
    expect([turns.size, ends.length]).toEqual([0, 0]);
  });

  test('serve a job that waits again after the others, and not twice in a turn', () => {
    const turns = turnsOf(3, new Set(['a']));
    for (const waiter of ['a', 'b', 'c', 'd']) turns.wait(waiter);
    expect([turn(), turn(), turn()]).toEqual([['a', 'b', 'c'], ['d', 'a'], ['a']]);
  });

  test('count work between jobs, and restore the budget in the next turn', () => {
    const turns = turnsOf(2);
    turns.spend(1.5);
    turns.spend(1);
    expect([turns.remaining, ends.length]).toEqual([-0.5, 1]);
    turns.wait('a');
    expect(turn()).toEqual(['a']);
    expect(turns.remaining).toBe(1);
    turn();
    expect([turns.remaining, ends.length]).toEqual([2, 0]);
  });
});

test('a late promise is not awaited, and an early rejection rejects', async () => {
  const never = new Promise<string>(() => {});
  expect(await withTimeout(1, never, () => 'late')).toBe('late');
  expect(await withTimeout(1e6, Promise.resolve('in time'), () => 'late')).toBe('in time');
  await expect(withTimeout(1e6, Promise.reject(new Error('broken')), () => 'late')).rejects.toThrow('broken');
  const tooLate = (): never => {
    throw new Error('too late');
  };
  await expect(withTimeout(1, never, tooLate)).rejects.toThrow('too late');
});
