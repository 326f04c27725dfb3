import { EventEmitter } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import {
  ConnectionDispatcher,
  type ConnectionHandle,
} from '../../../../src/server/workers/connection-dispatcher.js';
import { Heartbeat } from '../../../../src/server/workers/heartbeat.js';
import { waitFor } from '../../../support/process/wait-for.js';

class Handle implements ConnectionHandle {
  fd = 7;
  close(): void {
    this.fd = -1;
  }
}

/** A worker, with the handles that were sent to it. */
class Worker {
  readonly sent: unknown[] = [];
  questions = 0;
  listens = true;
  readonly heartbeat = new Heartbeat({ send: () => this.questions++ });
  readonly process = {
    send: (_message: unknown, handle?: unknown): boolean => {
      this.sent.push(handle);
      return true;
    },
  };
  readonly #events = new EventEmitter();

  once(event: string, listener: () => void): void {
    this.#events.once(event, listener);
  }

  end(): void {
    this.#events.emit('exit');
  }

  /** Sends a connection to the worker, as node:cluster does. */
  connect(): Handle {
    const handle = new Handle();
    this.process.send({ cmd: 'NODE_CLUSTER', act: 'newconn' }, handle);
    return handle;
  }
}

function handed(count: number) {
  const ended: ConnectionHandle[] = [];
  const connections = new ConnectionDispatcher((handle) => ended.push(handle));
  const workers = Array.from({ length: count }, () => new Worker());
  for (const worker of workers) connections.add(worker as never, worker);
  const answer = (worker: Worker): void => {
    worker.heartbeat.onMessage(true);
    connections.workerAnswered(worker);
  };
  const [one, two] = workers as [Worker, Worker];
  return { connections, ended, one, two, answer };
}

describe('a connection', () => {
  test('goes to the next worker after it has answered', () => {
    const { one, two, answer } = handed(2);
    const handle = one.connect();
    expect(one.questions).toBe(1);
    expect(one.sent).toEqual([]);
    answer(one);
    expect(one.sent).toEqual([handle]);
    expect([two.questions, two.sent.length]).toEqual([0, 0]);
    // The connection is sent only once.
    answer(one);
    expect(one.sent).toEqual([handle]);
  });

  test('goes to another worker if that worker does not answer, and to only one worker', async () => {
    const { one, two, answer } = handed(2);
    const handle = one.connect();
    // A timer may fire slightly before a worker counts as late.
    await waitFor('the other to be asked', () => two.questions === 1 && one.heartbeat.late);
    answer(two);
    expect(two.sent).toEqual([handle]);
    // The next connection does not wait for the worker that does not answer.
    const next = one.connect();
    expect(two.questions).toBe(2);
    answer(two);
    expect(two.sent).toEqual([handle, next]);
    answer(one);
    expect(one.sent).toEqual([]);
  });

  test('goes to a worker that does not listen yet only if it is the next one', async () => {
    const { connections, one, two, answer } = handed(2);
    two.listens = false;
    const third = new Worker();
    connections.add(third as never, third);
    const handle = one.connect();
    await waitFor('another to be asked', () => two.questions + third.questions === 1);
    expect(third.questions).toBe(1);
    answer(third);
    expect(third.sent).toEqual([handle]);
    const own = two.connect();
    answer(two);
    expect(two.sent).toEqual([own]);
  });

  test('goes to another worker if its worker ends, and is closed without one', () => {
    const { one, two, answer } = handed(2);
    const handle = one.connect();
    one.end();
    answer(two);
    expect(two.sent).toEqual([handle]);
    const last = two.connect();
    two.end();
    expect(last.fd).toBe(-1);
  });

  test('that a worker never accepted is closed when the worker ends', () => {
    const { connections, ended, one, answer } = handed(1);
    const taken = one.connect();
    answer(one);
    taken.close();
    const lost = one.connect();
    answer(one);
    connections.workerSilent(one);
    expect(ended).toEqual([lost]);
    expect(lost.fd).toBe(7);
    one.end();
    expect(lost.fd).toBe(-1);
  });
});

test('other messages go to the worker unchanged', () => {
  const { one } = handed(1);
  const listener = new Handle();
  one.process.send({ cmd: 'NODE_CLUSTER', ack: 1 }, listener);
  one.process.send({ kind: 'metrics', id: 1 });
  expect(one.sent).toEqual([listener, undefined]);
});
