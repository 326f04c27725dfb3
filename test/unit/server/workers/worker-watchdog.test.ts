import { expect, test } from '@jest/globals';
import {
  HEARTBEAT_INTERVAL_MS,
  Heartbeat,
  REPLACE_AFTER_MS,
  REPLACE_STARTING_AFTER_MS,
  SILENT_AFTER_MS,
} from '../../../../src/server/workers/worker-watchdog.js';

class Worker {
  hangs = false;
  questions = 0;
  readonly heartbeat = new Heartbeat(() => this.questions++);

  /** Ticks until `ms` have passed. Between two ticks, the primary process reads the messages of the worker. */
  pass(ms: number): void {
    for (let passed = 0; passed < ms; passed += HEARTBEAT_INTERVAL_MS) {
      this.heartbeat.tick();
      if (!this.hangs && this.questions > 0) this.heartbeat.onMessage(true);
    }
  }
}

test('a worker that answers is kept, and checked twice a second', () => {
  const worker = new Worker();
  worker.pass(10_000);
  expect(worker.questions).toBe(20);
  expect(worker.heartbeat.silentMs).toBe(0);
});

test('a worker that hangs is first marked silent, and then replaced', () => {
  const worker = new Worker();
  const { heartbeat } = worker;
  worker.hangs = true;
  // The first tick sends a ping. Silence counts from then on.
  worker.pass(SILENT_AFTER_MS);
  expect(heartbeat.silent).toBe(false);
  worker.pass(HEARTBEAT_INTERVAL_MS);
  expect(heartbeat.silent).toBe(true);
  worker.pass(REPLACE_AFTER_MS - SILENT_AFTER_MS - HEARTBEAT_INTERVAL_MS);
  expect(heartbeat.isLost(true)).toBe(false);
  worker.pass(HEARTBEAT_INTERVAL_MS);
  expect(heartbeat.isLost(true)).toBe(true);
  expect(worker.questions).toBe(1);
});

test('a worker that continues in time is not replaced', () => {
  const worker = new Worker();
  worker.hangs = true;
  worker.pass(REPLACE_AFTER_MS);
  worker.hangs = false;
  worker.heartbeat.onMessage(true);
  worker.pass(REPLACE_AFTER_MS);
  expect(worker.heartbeat.silent).toBe(false);
  expect(worker.heartbeat.isLost(true)).toBe(false);
});

test('a worker that sends any message is alive', () => {
  const worker = new Worker();
  worker.hangs = true;
  for (let round = 0; round < 20; round++) {
    worker.pass(1000);
    expect(worker.heartbeat.silent).toBe(false);
    worker.heartbeat.onMessage(false);
  }
});

test('a worker that starts has more time', () => {
  const worker = new Worker();
  worker.hangs = true;
  worker.pass(REPLACE_STARTING_AFTER_MS);
  expect(worker.heartbeat.isLost(false)).toBe(false);
  worker.pass(HEARTBEAT_INTERVAL_MS);
  expect(worker.heartbeat.isLost(false)).toBe(true);
});

test('a worker gets no other ping until it has answered', () => {
  let sent = 0;
  const heartbeat = new Heartbeat(() => sent++);
  heartbeat.ping();
  heartbeat.ping();
  heartbeat.onMessage(false);
  heartbeat.ping();
  expect(sent).toBe(1);
  heartbeat.onMessage(true);
  heartbeat.ping();
  expect(sent).toBe(2);
});
