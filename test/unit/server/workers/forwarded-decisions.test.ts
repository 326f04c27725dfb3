import { describe, expect, test } from '@jest/globals';
import { CODE, type RateLimitRequest, type RateLimitResponse } from '../../../../src/codec/messages.js';
import { CallClient } from '../../../../src/server/workers/call-client.js';
import { CALL_BOUNDS, type CallMessage, type DecidedByWorker } from '../../../../src/server/workers/calls.js';
import { ForwardedDecisions } from '../../../../src/server/workers/forwarded-calls.js';
import type { ToWorker } from '../../../../src/server/workers/messages.js';
import { Refusal } from '../../../../src/service/refusal.js';
import { waitFor } from '../../../support/process/wait-for.js';

/** A worker that keeps the calls it receives. */
class Worker {
  readonly asked: Extract<CallMessage, { name: 'decide' }>[] = [];
  /** Whether the worker answers pings. */
  isThere = true;
  looks = 0;
  readonly heartbeat = {
    ping: () => {},
    hasMessageSince: () => {
      this.looks++;
      return this.isThere;
    },
  };
  send(message: ToWorker): void {
    if (message.kind === 'call' && message.name === 'decide') this.asked.push(message);
  }
}

interface Limits {
  readonly longestMs: number;
  readonly marginMs?: number;
  readonly maxPending?: number;
}

/** Forwards decisions to workers, and passes their answers on. */
class Decisions {
  readonly #calls: CallClient;
  readonly #forwarded: ForwardedDecisions;
  constructor({ longestMs, marginMs, maxPending = CALL_BOUNDS.decide.maxPending }: Limits) {
    this.#calls = new CallClient({}, { ...CALL_BOUNDS, decide: { ...CALL_BOUNDS.decide, maxPending } });
    this.#forwarded = new ForwardedDecisions(this.#calls, longestMs, marginMs);
  }
  ask(...asked: Parameters<ForwardedDecisions['ask']>): ReturnType<ForwardedDecisions['ask']> {
    return this.#forwarded.ask(...asked);
  }
  answered(id: number, answer: DecidedByWorker): void {
    this.#calls.received({ kind: 'answer', id, answer });
  }
  /** Reports that the worker read the call too late. */
  readLate(id: number): void {
    this.#calls.received({ kind: 'late', id });
  }
  lost(worker: Worker): void {
    this.#calls.lost(worker);
  }
}

const request: RateLimitRequest = { domain: 'd', descriptors: [], hitsAddend: 0 };

const response: RateLimitResponse = {
  overallCode: CODE.OK,
  statuses: [],
  responseHeadersToAdd: [],
  requestHeadersToAdd: [],
  rawBody: undefined,
  dynamicMetadata: undefined,
};

describe('decisions that workers make for the primary process', () => {
  test('go to the workers in turn, and their answers to the caller', async () => {
    const decisions = new Decisions({ longestMs: 60_000 });
    const workers = [new Worker(), new Worker()];
    const asked = Array.from({ length: 4 }, () => decisions.ask(() => workers, request, 5000));
    expect(workers.map((worker) => worker.asked.length)).toEqual([2, 2]);
    const ids = workers.flatMap((worker) => worker.asked.map(({ id }) => id));
    for (const id of ids) {
      decisions.answered(id, { response: { ...response, dynamicMetadata: { id } } });
    }
    const answered = (await Promise.all(asked)) as RateLimitResponse[];
    expect(answered.map(({ dynamicMetadata }) => dynamicMetadata)).toEqual(
      [...ids].sort().map((id) => ({ id })),
    );
    expect(workers[0]?.asked[0]?.ask).toMatchObject({ request, connection: 0 });
    expect(workers[0]?.asked[0]?.ask.timeoutMicros).toBeLessThanOrEqual(5000);
  });

  test('identify the connection', () => {
    const decisions = new Decisions({ longestMs: 60_000 });
    const worker = new Worker();
    const [one, other] = [{}, {}];
    const asked = [one, other, one, undefined].map((connection) =>
      decisions.ask(() => [worker], request, 5000, connection),
    );
    expect(worker.asked.map(({ ask }) => ask.connection)).toEqual([1, 2, 1, 0]);
    decisions.lost(worker);
    return Promise.all(asked);
  });

  test('may be refused', async () => {
    const decisions = new Decisions({ longestMs: 60_000 });
    const worker = new Worker();
    const asked = decisions.ask(() => [worker], request, Infinity);
    const id = worker.asked[0]?.id ?? 0;
    decisions.answered(id, { refused: 'bad_request', message: 'why' });
    expect(await asked).toEqual(new Refusal('bad_request', 'why'));
  });

  test('are refused without a worker, and when the worker is lost', async () => {
    const decisions = new Decisions({ longestMs: 60_000 });
    const unavailable = new Refusal('unavailable', 'no worker process is serving');
    expect(await decisions.ask(() => [], request, Infinity)).toEqual(unavailable);
    const ended = new Refusal('unavailable', 'the worker process ended before it answered');
    const [one, other] = [new Worker(), new Worker()];
    const lost = decisions.ask(() => [one], request, Infinity);
    const kept = decisions.ask(() => [other], request, Infinity);
    decisions.lost(one);
    expect(await lost).toEqual(ended);
    decisions.answered(other.asked[0]?.id ?? 0, { response });
    expect(await kept).toBe(response);
  });

  test('are bounded in number', async () => {
    const decisions = new Decisions({ longestMs: 60_000, maxPending: 2 });
    const worker = new Worker();
    const running = [1, 2].map(() => decisions.ask(() => [worker], request, Infinity));
    expect(await decisions.ask(() => [worker], request, Infinity)).toMatchObject({ kind: 'unavailable' });
    expect(worker.asked).toHaveLength(2);
    decisions.lost(worker);
    await Promise.all(running);
    void decisions.ask(() => [worker], request, Infinity);
    expect(worker.asked).toHaveLength(3);
    decisions.lost(worker);
  });

  test('avoid a worker that hangs', async () => {
    const decisions = new Decisions({ longestMs: 1, marginMs: 0, maxPending: 3 });
    const [hanging, well] = [new Worker(), new Worker()];
    const tooLate = new Refusal('unavailable', 'the worker process did not answer in time');
    expect(await decisions.ask(() => [hanging], request, Infinity)).toEqual(tooLate);
    for (let call = 0; call < 10; call++) {
      const asked = decisions.ask(() => [hanging, well], request, Infinity);
      decisions.answered(well.asked.at(-1)?.id ?? 0, { response });
      expect(await asked).toBe(response);
    }
    expect(hanging.asked).toHaveLength(1);
    for (let call = 0; call < 5; call++) await decisions.ask(() => [hanging], request, Infinity);
    expect(hanging.asked).toHaveLength(3);
    // The worker continues.
    for (const { id } of hanging.asked) decisions.answered(id, { response });
    expect(await decisions.ask(() => [hanging], request, Infinity)).toEqual(tooLate);
    expect(hanging.asked).toHaveLength(4);
  });

  test.each([
    ['its caller waits for ever', 5, Infinity],
    ['its caller waits a moment', 60_000, 5000],
  ])('are given up when %s and the worker does not answer', async (_name, longestMs, timeoutMicros) => {
    const decisions = new Decisions({ longestMs, marginMs: 0 });
    const worker = new Worker();
    const late = await decisions.ask(() => [worker], request, timeoutMicros);
    expect(late).toEqual(new Refusal('unavailable', 'the worker process did not answer in time'));
    // A later answer is ignored.
    decisions.answered(worker.asked[0]?.id ?? 0, { response });
  });

  describe('of a worker that hangs', () => {
    /** Sends a request to a worker that hangs, and thereby to another worker. */
    const hang = async (timeoutMicros: number) => {
      const decisions = new Decisions({ longestMs: 2000 });
      const answer = (worker: Worker) => decisions.answered(worker.asked[0]?.id ?? 0, { response });
      const [hanging, well] = [new Worker(), new Worker()];
      hanging.isThere = false;
      const asked = decisions.ask(
        () => (hanging.asked.length === 0 ? [hanging] : [hanging, well]),
        request,
        timeoutMicros,
      );
      return { decisions, hanging, well, asked, answer };
    };

    test.each([
      ['reads it too late', true],
      ['refuses it', false],
    ])('go to another worker, within the remaining time, if it %s', async (_how, isLate) => {
      const { decisions, hanging, well, asked, answer } = await hang(5e6);
      await waitFor('the other to be asked', () => well.asked.length === 1);
      expect(well.asked[0]?.ask).toMatchObject({ request });
      expect(well.asked[0]?.ask.timeoutMicros).toBeLessThan(4.6e6);
      // The first worker wakes up, and must not answer for the other one.
      const [first] = hanging.asked;
      if (isLate) decisions.readLate(first?.id ?? 0);
      else decisions.answered(first?.id ?? 0, { refused: 'unavailable', message: 'was silent' });
      answer(well);
      expect(await asked).toBe(response);
    });

    test('go to another worker immediately when it ends', async () => {
      const { decisions, hanging, well, asked, answer } = await hang(Infinity);
      decisions.lost(hanging);
      expect(well.asked).toHaveLength(1);
      answer(well);
      expect(await asked).toBe(response);
    });

    test('do not go to another worker after an answer', async () => {
      const { decisions, hanging, well, asked } = await hang(1000);
      expect(await asked).toMatchObject({ message: 'the worker process did not answer in time' });
      decisions.lost(hanging);
      expect(well.asked).toHaveLength(0);
    });

    test('are awaited after a sign of life', async () => {
      const { hanging, well, asked, answer } = await hang(Infinity);
      hanging.isThere = true;
      await waitFor('a look at the first', () => hanging.looks === 1);
      expect(well.asked).toHaveLength(0);
      answer(hanging);
      expect(await asked).toBe(response);
    });
  });
});
