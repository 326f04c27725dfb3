import { beforeEach, expect, test } from '@jest/globals';
import {
  ForwardedQuestions,
  MAX_FORWARDED_QUESTIONS,
} from '../../../../src/server/workers/forwarded-questions.js';
import type { ToWorker } from '../../../../src/server/workers/messages.js';

/** Keeps what it is asked. */
class Worker {
  readonly asked: Extract<ToWorker, { kind: 'administer' }>[] = [];
  readonly pulse = { ask: () => {}, heardSince: () => true };
  send(message: ToWorker): void {
    if (message.kind === 'administer') this.asked.push(message);
  }
}

const CALLER = { by: 'ops', peer: '127.0.0.1', right: 'write' } as const;
const QUESTION = { action: 'blocks' };
const DONE = { status: 200, body: {} };

let unanswered: string[];
beforeEach(() => {
  unanswered = [];
});
const questions = (longestMs?: number) =>
  new ForwardedQuestions((_question, { by }, error) => unanswered.push(`${by} ${error}`), longestMs);

test('a question goes to one worker, always the first, and its answer comes back', async () => {
  const asked = questions();
  const workers = [new Worker(), new Worker()];
  const answers = [asked.ask(workers, QUESTION, CALLER), asked.ask(workers, QUESTION, CALLER)];
  expect(workers.map((worker) => worker.asked.length)).toEqual([2, 0]);
  expect(workers[0]?.asked[0]).toMatchObject({ question: QUESTION, caller: CALLER });
  for (const { id } of workers[0]?.asked ?? []) {
    asked.answered({ kind: 'administered', id, answer: { status: 200, body: { id } } });
  }
  expect((await Promise.all(answers)).map(({ body }) => body)).toEqual(
    workers[0]?.asked.map(({ id }) => ({ id })),
  );
  expect(unanswered).toEqual([]);
});

test('a question to a worker that ends or hangs is not asked again, and its asker is told', async () => {
  const asked = questions(5);
  const [ends, hangs, other] = [new Worker(), new Worker(), new Worker()];
  const lost = asked.ask([ends, other], QUESTION, CALLER);
  const late = asked.ask([hangs, other], QUESTION, CALLER);
  asked.lost(ends);
  expect(await lost).toMatchObject({
    status: 503,
    body: { error: expect.stringMatching(/has ended, so it is not known/), maybe_done: true },
  });
  expect(await late).toMatchObject({
    status: 503,
    body: { error: expect.stringMatching(/in time, so it is not known/), maybe_done: true },
  });
  expect(other.asked).toEqual([]);
  expect(unanswered).toHaveLength(2);
  // What comes too late, and the end of one that was given up, are told to nobody.
  asked.answered({ kind: 'administered', id: hangs.asked[0]?.id ?? 0, answer: DONE });
  asked.lost(hangs);
  expect(unanswered).toHaveLength(2);
});

test('without a worker nothing is asked; no more than so many are unanswered', async () => {
  const asked = questions();
  const worker = new Worker();
  expect(await asked.ask([], QUESTION, CALLER)).toEqual({
    status: 503,
    body: { error: 'no worker process serves, so nothing was done: try again' },
  });
  const answers = Array.from({ length: MAX_FORWARDED_QUESTIONS }, () =>
    asked.ask([worker], QUESTION, CALLER),
  );
  expect(await asked.ask([worker], QUESTION, CALLER)).toMatchObject({
    status: 503,
    body: { error: 'too many questions at once, so nothing was done: try again' },
  });
  asked.lost(worker);
  expect(await Promise.all(answers)).toHaveLength(MAX_FORWARDED_QUESTIONS);
});
