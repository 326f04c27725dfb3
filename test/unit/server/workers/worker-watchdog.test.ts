import { describe, expect, test } from '@jest/globals';
import {
  HEARTBEAT_INTERVAL_MS,
  Heartbeat,
  REPLACE_AFTER_MS,
  REPLACE_ALL_SILENT_AFTER_MS,
  REPLACE_STARTING_AFTER_MS,
  SILENT_AFTER_MS,
  WorkerWatchdog,
} from '../../../../src/server/workers/worker-watchdog.js';

class Worker {
  listens = true;
  hangs = false;
  questions = 0;
  readonly heartbeat = new Heartbeat(() => this.questions++);

  /** Simulates the messages that the primary process reads between two ticks. */
  speak(): void {
    if (!this.hangs && this.questions > 0) this.heartbeat.onMessage(true);
  }
}

function watched(...workers: Worker[]) {
  const events: string[] = [];
  const name = (worker: Worker): string => `${workers.indexOf(worker)}`;
  const watch = new WorkerWatchdog<Worker>({
    workers: () => workers,
    onSilent: (worker) => events.push(`${name(worker)} silent`),
    replace: (worker) => events.push(`${name(worker)} replaced`),
  });
  /** Ticks until `ms` have passed. Returns the events in that time. */
  const pass = (ms: number): string[] => {
    events.length = 0;
    for (let passed = 0; passed < ms; passed += HEARTBEAT_INTERVAL_MS) {
      watch.tick();
      for (const worker of workers) worker.speak();
    }
    return [...events];
  };
  return { watch, pass };
}

describe('a worker', () => {
  test('that answers is kept, and checked twice a second', () => {
    const worker = new Worker();
    const { pass } = watched(worker, new Worker());
    expect(pass(10_000)).toEqual([]);
    expect(worker.questions).toBe(20);
    expect(worker.heartbeat.silentMs).toBe(0);
  });

  test('that hangs is first marked silent, and then replaced', () => {
    const [hung, well] = [new Worker(), new Worker()];
    const { pass } = watched(hung, well);
    hung.hangs = true;
    // The first tick sends a ping. Silence counts from then on.
    expect(pass(SILENT_AFTER_MS)).toEqual([]);
    expect(pass(HEARTBEAT_INTERVAL_MS)).toEqual(['0 silent']);
    expect(pass(REPLACE_AFTER_MS - SILENT_AFTER_MS - HEARTBEAT_INTERVAL_MS)).toEqual([]);
    expect(pass(HEARTBEAT_INTERVAL_MS)).toEqual(['0 replaced']);
    expect(hung.questions).toBe(1);
  });

  test('that continues in time is not replaced', () => {
    const hung = new Worker();
    const { pass } = watched(hung, new Worker());
    hung.hangs = true;
    expect(pass(REPLACE_AFTER_MS)).toEqual(['0 silent']);
    hung.hangs = false;
    hung.speak();
    expect(pass(REPLACE_AFTER_MS)).toEqual([]);
    expect(hung.heartbeat.silent).toBe(false);
  });

  test('that sends any message is alive', () => {
    const worker = new Worker();
    const { pass } = watched(worker, new Worker());
    worker.hangs = true;
    for (let round = 0; round < 20; round++) {
      expect(pass(1000)).toEqual([]);
      worker.heartbeat.onMessage(false);
    }
  });

  test('that starts has more time', () => {
    const starting = new Worker();
    const { pass } = watched(starting, new Worker());
    starting.listens = false;
    starting.hangs = true;
    expect(pass(REPLACE_STARTING_AFTER_MS)).toEqual([]);
    expect(pass(HEARTBEAT_INTERVAL_MS)).toEqual(['0 replaced']);
  });
});

describe('several workers that hang', () => {
  test('are replaced one after the other', () => {
    const workers = [new Worker(), new Worker(), new Worker()];
    const [one, two] = workers as [Worker, Worker];
    const { watch, pass } = watched(...workers);
    one.hangs = true;
    two.hangs = true;
    expect(pass(REPLACE_AFTER_MS + 10_000)).toEqual(['0 silent', '1 silent', '0 replaced']);
    one.hangs = false;
    one.speak();
    watch.listening();
    expect(pass(HEARTBEAT_INTERVAL_MS)).toEqual(['1 replaced']);
  });

  test('do not wait forever for a replacement', () => {
    const workers = [new Worker(), new Worker(), new Worker()];
    const { pass } = watched(...workers);
    for (const worker of workers.slice(0, 2)) worker.hangs = true;
    expect(pass(60_000).filter((event) => event.endsWith('replaced')).length).toBe(2);
  });

  test('have more time if all hang, because the machine may be the cause', () => {
    const workers = [new Worker(), new Worker()];
    const { watch, pass } = watched(...workers);
    for (const worker of workers) worker.hangs = true;
    expect(pass(REPLACE_ALL_SILENT_AFTER_MS)).toEqual(['0 silent', '1 silent']);
    expect(pass(HEARTBEAT_INTERVAL_MS)).toEqual(['0 replaced']);
    expect(pass(10_000)).toEqual([]);
    watch.draining();
    // During a drain, both are killed, because they only delay the exit.
    expect(pass(HEARTBEAT_INTERVAL_MS)).toEqual(['0 replaced', '1 replaced']);
  });
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
