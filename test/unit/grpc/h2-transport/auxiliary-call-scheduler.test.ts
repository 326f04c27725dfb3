import { beforeEach, describe, expect, test } from '@jest/globals';
import { GenericCallScheduler } from '../../../../src/grpc/h2-transport/grpc-server-state.js';

describe('GenericCallScheduler', () => {
  let ends: (() => void)[];
  let turns: GenericCallScheduler;
  let log: number[];

  beforeEach(() => {
    ends = [];
    log = [];
    turns = new GenericCallScheduler((callback) => ends.push(callback));
  });

  /** Handles a message of a connection, now or in a later turn. */
  function serve(connection: { readonly id: number }): void {
    if (turns.tryStart(connection)) log.push(connection.id);
    else turns.wait(connection, () => serve(connection));
  }

  function turn(): number[] {
    log = [];
    for (const end of ends.splice(0)) end();
    return log;
  }

  test('handles one message of a connection in a turn', () => {
    const connection = { id: 1 };
    for (let message = 0; message < 3; message++) serve(connection);
    expect(log).toEqual([1]);
    expect([turn(), turn(), turn()]).toEqual([[1], [1], []]);
    expect(turn()).toEqual([]);
    expect(ends).toEqual([]);
  });

  test('handles a few messages of all connections in turns', () => {
    const connections = Array.from({ length: 10 }, (_, id) => ({ id }));
    for (const connection of connections) for (let message = 0; message < 50; message++) serve(connection);
    const late = { id: 99 };
    serve(late);
    const [first, second] = [turn(), turn()];
    expect([first.length, second.length]).toEqual([8, 8]);
    expect([...first, ...second]).toContain(99);
    expect(new Set(first).size).toBe(8);
  });

  test('a canceled message does not use a turn of its connection', () => {
    const connection = { id: 1 };
    serve(connection);
    turns.wait(connection, () => {});
    serve(connection);
    expect(turn()).toEqual([1]);
  });
});
