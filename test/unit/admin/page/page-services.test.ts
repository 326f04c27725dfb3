import { afterEach, describe, expect, jest, test } from '@jest/globals';
import type { AdminAnswer } from '../../../../src/admin/admin-access.js';
import { historyService, MAX_HISTORY_RULES } from '../../../../src/admin/page/history-service.js';
import type { HistoryAnswer, Overview } from '../../../../src/admin/page/messages.js';
import { MAX_SUBSCRIBERS, OverviewService } from '../../../../src/admin/page/overview-service.js';
import type { EventFeed, ServerEvent } from '../../../../src/http/event-feed.js';
import { systemClock } from '../../../../src/limiter/clock.js';
import { RateHistory } from '../../../../src/telemetry/history/rate-history.js';

const CALLER = { by: 'ops', peer: '127.0.0.1', right: 'read' } as const;

describe('/history', () => {
  const history = new RateHistory(10);
  history.add({ domain: 'd', rule: 'a', ok: 10, denied: 5, would: 1 });
  history.add({ domain: 'd', rule: 'b', ok: 1, denied: 50, would: 0 });
  history.addFailures({ errors: 87, failure_allow: 5, failure_deny: 10, failure_local: 0 });
  history.end();
  const recorded = { history, endedMicros: systemClock.monotonicMicros(), onStep: () => {} };
  const service = historyService({ recorded, clock: systemClock });
  // This service ignores everything but the question.
  const ask = async (question: unknown): Promise<AdminAnswer> =>
    service.answer(question, CALLER, undefined as never);

  test('returns the rates of all rules, and the sums of each rule in the order of denials', async () => {
    const { status, body } = await ask({});
    expect(status).toBe(200);
    const { all, sums, ends, step, crowded } = body as HistoryAnswer;
    expect({ all, step, crowded }).toEqual({
      all: {
        ...{ ok: [2.2], denied: [11], would: [0.2] },
        ...{ errors: [17.4], failure_allow: [1], failure_deny: [2], failure_local: [0] },
      },
      step: 5,
      crowded: false,
    });
    expect(sums?.map(({ rule, hour }) => [rule, hour.ok, hour.denied])).toEqual([
      ['b', 1, 50],
      ['a', 10, 5],
    ]);
    expect(Math.abs(ends - Date.now() / 1000)).toBeLessThan(60);
  });

  test('returns the series of the requested rules', async () => {
    const rules = [
      { domain: 'd', rule: 'a' },
      { domain: 'd', rule: '__proto__' },
    ];
    const { body } = await ask({ rules });
    expect(body).toMatchObject({ series: [{ ok: [2], denied: [1], would: [0.2] }, null] });
    expect(body).not.toHaveProperty('all');
  });

  test.each([
    ['text', /must be a JSON object/],
    [[], /must be a JSON object/],
    [{ rule: 'a' }, /"rule" is not a valid field/],
    [{ rules: 'a' }, /rules must be a list/],
    [{ rules: [{ domain: 'd' }] }, /rules must be a list/],
    [{ rules: [null] }, /rules must be a list/],
    [{ rules: Array(MAX_HISTORY_RULES + 1).fill({ domain: 'd', rule: 'a' }) }, /at most 50/],
  ])('refuses %j', async (question, error) => {
    expect(await ask(question)).toEqual({ status: 400, body: { error: expect.stringMatching(error) } });
  });

  test('builds the answer for a step once for all clients', async () => {
    const answers = await Promise.all(Array.from({ length: 500 }, () => ask({})));
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
    history.add({ domain: 'd', rule: 'a', ok: 100, denied: 0, would: 0 });
    history.end();
    recorded.endedMicros++;
    expect((await ask({})).body).toMatchObject({ all: { ok: [2.2, 20] } });
  });
});

describe('/overview', () => {
  afterEach(() => {
    jest.useRealTimers();
  });
  const OVERVIEW: Overview = {
    version: '1',
    now: 1,
    uptime_seconds: 1,
    health: { status: 'SERVING' },
    store: { name: 'memory', up: true, nodes: [] },
    workers: [],
    policy: {
      version: 'v',
      domains: [],
      more_domains: 0,
      reload: { result: 'ok', at: 1 },
      errors: [],
      more_errors: 0,
    },
    keeps: { top: 1, history: 1 },
  };
  const POINT = {
    ...{ ends: 5, ok: 1, denied: 2, would: 3 },
    ...{ errors: 4, failure_allow: 5, failure_deny: 6, failure_local: 7 },
  };
  let overview = OVERVIEW;
  let step = (): void => {};
  const open = (): OverviewService =>
    new OverviewService({
      tell: () => overview,
      point: () => POINT,
      onStep: (listener) => {
        step = listener;
      },
    });
  const follow = (service: OverviewService) => {
    const feed = service.feed({}, CALLER) as EventFeed;
    const events: [name: string, data: unknown][] = [];
    let ended = false;
    const take = ({ name, bytes }: ServerEvent): void => {
      const [, data = ''] = /^event: \w+\ndata: (.*)\n\n$/.exec(bytes.toString()) ?? [];
      events.push([name, JSON.parse(data)]);
    };
    const stop = feed.follow(take, () => {
      ended = true;
    });
    return { stop, ended: () => ended, took: () => events.splice(0) };
  };

  test('is returned once, with the name of the caller', () => {
    const answer = open().answer({}, CALLER);
    const caller = { by: 'ops', right: 'read' };
    expect(answer).toEqual({ status: 200, body: { ...OVERVIEW, caller, point: POINT } });
    expect(open().answer({ a: 1 }, CALLER)).toMatchObject({ status: 400 });
    for (const question of [null, [], 'x'])
      expect(open().feed(question, CALLER)).toMatchObject({ status: 400 });
  });

  test('is sent again after each change and each step', () => {
    jest.useFakeTimers({ doNotFake: ['queueMicrotask', 'nextTick', 'performance'] });
    overview = OVERVIEW;
    const service = open();
    const reader = follow(service);
    expect(reader.took()).toEqual([
      ['caller', { by: 'ops', right: 'read' }],
      ['overview', OVERVIEW],
    ]);
    overview = { ...OVERVIEW, now: 2, uptime_seconds: 2 };
    jest.advanceTimersByTime(3000);
    expect(reader.took()).toEqual([]);
    overview = { ...overview, health: { status: 'NOT_SERVING', reason: 'draining' } };
    jest.advanceTimersByTime(1000);
    expect(reader.took()).toEqual([['overview', overview]]);
    step();
    expect(reader.took()).toEqual([['point', POINT]]);
    reader.stop();
    step();
    expect(reader.took()).toEqual([]);
    expect(jest.getTimerCount()).toBe(0);
  });

  test('contains only latencies every five seconds', () => {
    jest.useFakeTimers({ doNotFake: ['queueMicrotask', 'nextTick', 'performance'] });
    const node = { redis: 'main', node: 'a:1', up: 1, of: 1, latency_ms: 0 } as const;
    const withLatency = (latency: number): Overview => ({
      ...OVERVIEW,
      store: { name: 'Redis', up: true, nodes: [{ ...node, latency_ms: latency }] },
    });
    overview = withLatency(0);
    const reader = follow(open());
    reader.took();
    for (let second = 1; second <= 10; second++) {
      overview = withLatency(second);
      jest.advanceTimersByTime(1000);
    }
    expect(reader.took()).toEqual([
      ['overview', withLatency(5)],
      ['overview', withLatency(10)],
    ]);
    reader.stop();
  });

  test('has a maximum number of readers, and none after it is closed', () => {
    const service = open();
    const readers = Array.from({ length: MAX_SUBSCRIBERS }, () => follow(service));
    expect(service.feed({}, CALLER)).toMatchObject({ status: 503 });
    readers[0]?.stop();
    const last = follow(service);
    service.close();
    expect(last.ended()).toBe(true);
    expect(service.feed({}, CALLER)).toEqual({ status: 503, body: { error: 'the server is shutting down' } });
    for (const { stop } of [...readers, last]) stop();
  });
});
