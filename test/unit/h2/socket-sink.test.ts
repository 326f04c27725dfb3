import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { SocketSink } from '../../../src/h2/serving/served-connection.js';

/** A socket whose peer reads only on request. */
class SlowSocket extends Duplex {
  readonly #taken: (() => void)[] = [];

  override _read(): void {}

  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    this.#taken.push(done);
  }

  override _final(done: () => void): void {
    done();
  }

  /** Lets the peer read everything. */
  async takeAll(): Promise<void> {
    for (let done = this.#taken.shift(); done !== undefined; done = this.#taken.shift()) {
      done();
      await new Promise((resolve) => process.nextTick(resolve));
    }
  }
}

let socket: SlowSocket;
let sink: SocketSink;
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  socket = new SlowSocket();
  socket.resume();
  sink = new SocketSink(socket as unknown as Socket);
});
afterEach(() => {
  socket.destroy();
  jest.useRealTimers();
});

describe('back-pressure', () => {
  test('a small backlog does not stop reading', () => {
    sink.write(Buffer.alloc(60_000));
    expect(sink.bufferedBytes).toBe(60_000);
    expect(socket.isPaused()).toBe(false);
  });

  test('reading stops with a large backlog, and continues after the backlog is sent', async () => {
    sink.write(Buffer.alloc(60_000));
    expect(socket.isPaused()).toBe(false);
    sink.write(Buffer.alloc(60_000));
    sink.write(Buffer.alloc(1));
    expect(socket.isPaused()).toBe(true);
    await socket.takeAll();
    expect(sink.bufferedBytes).toBe(0);
    expect(socket.isPaused()).toBe(false);
    sink.write(Buffer.alloc(70_000));
    expect(socket.isPaused()).toBe(true);
    await socket.takeAll();
    expect(socket.isPaused()).toBe(false);
  });
});

describe('turns', () => {
  test('a socket is not read while its received bytes wait for their turn', () => {
    sink.pauseReading();
    sink.pauseReading();
    expect(socket.isPaused()).toBe(true);
    sink.resumeReading();
    expect(socket.isPaused()).toBe(false);
  });

  test('bytes that the socket has read in addition also count', () => {
    sink.pauseReading();
    socket.push(Buffer.alloc(5000));
    expect(sink.unreadBytes).toBe(5000);
  });

  test('reading continues only if both the turn and the peer allow it', async () => {
    sink.pauseReading();
    sink.write(Buffer.alloc(70_000));
    sink.resumeReading();
    expect(socket.isPaused()).toBe(true);
    sink.pauseReading();
    await socket.takeAll();
    expect(socket.isPaused()).toBe(true);
    sink.resumeReading();
    expect(socket.isPaused()).toBe(false);
  });

  test('reading continues at the end', () => {
    sink.pauseReading();
    sink.end();
    expect(socket.isPaused()).toBe(false);
    sink.pauseReading();
    sink.resumeReading();
    expect(socket.isPaused()).toBe(false);
  });
});

describe('the end', () => {
  test('follows when all data is written; a peer that does not close its side is disconnected', async () => {
    sink.write(Buffer.alloc(100_000));
    sink.end();
    expect([sink.ended, socket.isPaused()]).toEqual([true, false]);
    await jest.advanceTimersByTimeAsync(2000);
    expect(socket.destroyed).toBe(false);
    await socket.takeAll();
    await jest.advanceTimersByTimeAsync(900);
    expect(socket.destroyed).toBe(false);
    await jest.advanceTimersByTimeAsync(200);
    expect(socket.destroyed).toBe(true);
    expect(jest.getTimerCount()).toBe(0);
  });

  test('a peer that does not read is disconnected in time', async () => {
    sink.write(Buffer.alloc(100_000));
    sink.end();
    await jest.advanceTimersByTimeAsync(10_100);
    expect(socket.destroyed).toBe(true);
  });

  test('is not followed by data, and a second end or destroy has no effect', () => {
    sink.end();
    sink.write(Buffer.alloc(10));
    sink.end();
    expect(sink.bufferedBytes).toBe(0);
    sink.destroy();
    expect(socket.destroyed).toBe(true);
  });
});
