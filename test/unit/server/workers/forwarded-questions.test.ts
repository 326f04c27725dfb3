import { beforeEach, describe, expect, test } from '@jest/globals';
import type { AdminAnswer } from '../../../../src/admin/admin-endpoint.js';
import { CallClient } from '../../../../src/server/workers/call-client.js';
import { CALL_BOUNDS, type CallMessage } from '../../../../src/server/workers/calls.js';
import { forwardAdminCall, type OnUnanswered } from '../../../../src/server/workers/forwarded-calls.js';
import type { ToWorker } from '../../../../src/server/workers/messages.js';
import { waitFor } from '../../../support/process/wait-for.js';

/** A worker that keeps the calls it receives. */
class Worker {
  readonly asked: Extract<CallMessage, { name: 'administer' }>[] = [];
  readonly heartbeat = { ping: () => {}, hasMessageSince: () => !this.hangs };
  readonly hangs: boolean;
  constructor(hangs = false) {
    this.hangs = hangs;
  }
  send(message: ToWorker): void {
    if (message.kind === 'call' && message.name === 'administer') this.asked.push(message);
  }
}

const CALLER = { by: 'ops', peer: '127.0.0.1', right: 'write' } as const;
const QUESTION = { action: 'reset' };
/** Read-only questions. */
const READING = [{ action: 'show' }, { action: 'reset', dry_run: true }];
const DONE = { status: 200, body: {} };

let unanswered: string[];
beforeEach(() => {
  unanswered = [];
});
/** Forwards questions to workers, and passes their answers on. */
class Questions {
  readonly #calls: CallClient;
  readonly #longestMs: number | undefined;
  constructor({ longestMs, ...times }: { readonly longestMs?: number; readonly switchAfterMs?: number }) {
    this.#calls = new CallClient(times);
    this.#longestMs = longestMs;
  }
  ask(workers: () => readonly Worker[], question: unknown): ReturnType<typeof forwardAdminCall> {
    const onUnanswered: OnUnanswered = (_question, { by }, error) => unanswered.push(`${by} ${error}`);
    return forwardAdminCall(
      this.#calls,
      workers,
      { question, caller: CALLER },
      onUnanswered,
      this.#longestMs,
    );
  }
  answered(id: number, answer: AdminAnswer): void {
    this.#calls.received({ kind: 'answer', id, answer });
  }
  lost(worker: Worker): void {
    this.#calls.lost(worker);
  }
}
const questions = (times = {}) => new Questions(times);
const answer = (asked: Questions, { asked: [first] }: Worker): void => asked.answered(first?.id ?? 0, DONE);

test('a request goes to one worker, always the first, and returns its answer', async () => {
  const asked = questions();
  const workers = [new Worker(), new Worker()];
  const answers = [asked.ask(() => workers, QUESTION), asked.ask(() => workers, QUESTION)];
  expect(workers.map((worker) => worker.asked.length)).toEqual([2, 0]);
  expect(workers[0]?.asked[0]?.ask).toEqual({ question: QUESTION, caller: CALLER });
  for (const { id } of workers[0]?.asked ?? []) {
    asked.answered(id, { status: 200, body: { id } });
  }
  expect((await Promise.all(answers)).map(({ body }) => body)).toEqual(
    workers[0]?.asked.map(({ id }) => ({ id })),
  );
  expect(unanswered).toEqual([]);
});

test('a change is not repeated if its worker ends or hangs, and the caller gets an error', async () => {
  const asked = questions({ longestMs: 5 });
  const [ends, hangs, other] = [new Worker(), new Worker(), new Worker()];
  const lost = asked.ask(() => [ends, other], QUESTION);
  const late = asked.ask(() => [hangs, other], QUESTION);
  asked.lost(ends);
  expect(await lost).toMatchObject({
    status: 503,
    body: {
      error: expect.stringMatching(/ended before it answered, so the result is unknown/),
      maybe_done: true,
    },
  });
  expect(await late).toMatchObject({
    status: 503,
    body: { error: expect.stringMatching(/in time, so the result is unknown/), maybe_done: true },
  });
  expect(other.asked).toEqual([]);
  expect(unanswered).toHaveLength(2);
  // Late answers, and the exit of a worker whose call has timed out, are ignored.
  answer(asked, hangs);
  asked.lost(hangs);
  expect(unanswered).toHaveLength(2);
});

test('without a worker no request is sent, and unanswered requests are limited', async () => {
  const asked = questions();
  const worker = new Worker();
  expect(await asked.ask(() => [], QUESTION)).toEqual({
    status: 503,
    body: { error: 'no worker process is serving, so nothing was changed; try again' },
  });
  const answers = Array.from({ length: CALL_BOUNDS.administer.maxPending }, () =>
    asked.ask(() => [worker], QUESTION),
  );
  expect(await asked.ask(() => [worker], QUESTION)).toMatchObject({
    status: 503,
    body: { error: 'too many requests at once, so nothing was changed; try again' },
  });
  asked.lost(worker);
  expect(await Promise.all(answers)).toHaveLength(CALL_BOUNDS.administer.maxPending);
});

describe.each(READING)('the read-only request %j', (question) => {
  test('is sent to another worker if the first one hangs, and the first answer counts', async () => {
    for (const whose of [0, 1]) {
      const asked = questions({ switchAfterMs: 1 });
      const workers = [new Worker(true), new Worker()] as const;
      const told = asked.ask(() => workers, question);
      await waitFor('the other worker to be asked', () => workers[1].asked.length === 1);
      answer(asked, workers[whose] as Worker);
      expect(await told).toEqual(DONE);
    }
    expect(unanswered).toEqual([]);
  });

  test('is sent to another worker if the first one ends', async () => {
    const asked = questions();
    const [ends, other] = [new Worker(), new Worker()];
    let workers = [ends, other];
    const told = asked.ask(() => workers, question);
    workers = [other];
    asked.lost(ends);
    answer(asked, other);
    expect(await told).toEqual(DONE);
  });

  test('waits for a busy worker without another one, and is given up without an answer', async () => {
    const asked = questions({ switchAfterMs: 1 });
    const [busy, hangs] = [new Worker(true), new Worker(true)];
    let workers = [busy];
    const first = asked.ask(() => workers, question);
    await new Promise((resolve) => setImmediate(resolve));
    answer(asked, busy);
    expect(await first).toEqual(DONE);
    workers = [hangs];
    const second = asked.ask(() => workers, question);
    workers = [];
    const error = 'no worker process answers, so the request failed; try again';
    expect(await second).toEqual({ status: 503, body: { error } });
    expect(unanswered).toEqual([`ops ${error}`]);
    expect(await asked.ask(() => [], question)).toMatchObject({
      body: { error: 'no worker process is serving, so the request failed; try again' },
    });
  });

  test('is given up if a live worker never answers', async () => {
    const asked = questions({ switchAfterMs: 1, longestMs: 5 });
    expect(await asked.ask(() => [new Worker()], question)).toMatchObject({
      status: 503,
      body: { error: expect.stringMatching(/did not answer in time, so the request failed/) },
    });
  });
});
