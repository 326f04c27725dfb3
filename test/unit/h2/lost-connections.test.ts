import { expect, test } from '@jest/globals';
import { type LostConnection, LostConnections } from '../../../src/h2/serving/served-connection.js';

class Lost implements LostConnection {
  openStreams: number;
  calls = 0;

  constructor(openStreams: number) {
    this.openStreams = openStreams;
  }

  resetStreams(most: number): void {
    this.calls++;
    this.openStreams -= Math.min(most, this.openStreams);
  }
}

/** Creates {@link LostConnections} with manual turns. */
function started(): { readonly lost: LostConnections; readonly turns: (() => void)[] } {
  const turns: (() => void)[] = [];
  return { lost: new LostConnections((callback) => turns.push(callback)), turns };
}

const streamsOf = (connections: readonly Lost[]): number =>
  connections.reduce((sum, { openStreams }) => sum + openStreams, 0);

test('a lost connection with few or no streams is handled immediately', () => {
  const { lost, turns } = started();
  const few = new Lost(20);
  const none = new Lost(0);
  lost.add(few);
  lost.add(none);
  expect([few.openStreams, few.calls, none.calls, lost.waiting]).toEqual([0, 1, 1, 0]);
  // Each turn restores the budget.
  turns.shift()?.();
  expect(turns).toEqual([]);
});

test('of many that go at once a bounded number of streams is reset in a turn, the first that went first', () => {
  const { lost, turns } = started();
  const connections = Array.from({ length: 100 }, () => new Lost(100));
  for (const connection of connections) lost.add(connection);
  // Each connection is called at least once immediately.
  expect(connections.every(({ calls }) => calls === 1)).toBe(true);
  expect(lost.waiting).toBeGreaterThan(0);
  let before = 100 * 100;
  while (lost.waiting > 0) {
    const left = streamsOf(connections);
    expect(before - left).toBeGreaterThan(0);
    expect(before - left).toBeLessThanOrEqual(500);
    const first = connections.findIndex(({ openStreams }) => openStreams > 0);
    expect(connections.slice(first + 1).every(({ openStreams }) => openStreams === 100)).toBe(true);
    before = left;
    expect(turns).toHaveLength(1);
    turns.shift()?.();
  }
  expect(streamsOf(connections)).toBe(0);
});
