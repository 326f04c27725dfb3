import { EventEmitter } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import {
  ConnectionGuard,
  type ConnectionHandle,
  Heartbeat,
} from '../../../../src/server/workers/worker-watchdog.js';
import { waitFor } from '../../../support/process/wait-for.js';

class Handle implements ConnectionHandle {
  fd = 7;
  close(): void {
    this.fd = -1;
  }
}

/** The process of a worker, as node:cluster uses it. */
class Child extends EventEmitter {
  readonly sent: unknown[] = [];
  /** Numbers of the connections that were declined. */
  readonly declined: unknown[] = [];
  seq = 0;

  constructor() {
    super();
    this.on('internalMessage', ({ cmd, ack, accepted }) => {
      if (cmd === 'NODE_CLUSTER' && accepted === false) this.declined.push(ack);
    });
  }

  send(_message: unknown, handle?: unknown): boolean {
    this.sent.push(handle);
    return true;
  }

  /** Sends a connection that a listener has accepted. */
  connect(key = 'grpc'): Handle {
    const handle = new Handle();
    this.send({ cmd: 'NODE_CLUSTER', act: 'newconn', key, seq: this.seq++ }, handle);
    return handle;
  }
}

function guarded() {
  const child = new Child();
  let pings = 0;
  const guard = new ConnectionGuard(child as never, new Heartbeat(() => pings++));
  return { child, guard, pings: () => pings };
}

describe('a connection', () => {
  test('goes to its worker after the worker has answered, and only once', () => {
    const { child, guard, pings } = guarded();
    const handle = child.connect();
    expect(pings()).toBe(1);
    expect(child.sent).toEqual([]);
    guard.answered();
    guard.answered();
    expect(child.sent).toEqual([handle]);
    expect(child.declined).toEqual([]);
  });

  test('is declined if the worker does not answer, so that another worker gets it', async () => {
    const { child, guard } = guarded();
    child.connect();
    await waitFor('the connection to be declined', () => child.declined.length === 1);
    guard.answered();
    expect(child.sent).toEqual([]);
    expect(child.declined).toEqual([0]);
  });

  test('is declined if the worker ends', () => {
    const { child, guard } = guarded();
    const handle = child.connect();
    guard.ended();
    expect(child.declined).toEqual([0]);
    expect(handle.fd).toBe(7);
  });

  test('that the worker never accepted is closed when the worker ends', () => {
    const { child, guard } = guarded();
    const accepted = child.connect();
    guard.answered();
    accepted.close();
    const lost = [child.connect(), child.connect('http')];
    guard.answered();
    guard.ended();
    expect(lost.map(({ fd }) => fd)).toEqual([-1, -1]);
  });
});

test('other messages go to the worker unchanged', () => {
  const { child } = guarded();
  const listener = new Handle();
  child.send({ cmd: 'NODE_CLUSTER', ack: 1 }, listener);
  child.send({ kind: 'ping' });
  expect(child.sent).toEqual([listener, undefined]);
});
