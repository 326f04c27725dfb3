import { expect, test } from '@jest/globals';
import { simulatedLines } from '../../../support/replay/simulated-lines.js';
import { SimulatedLog } from '../../../support/replay/simulated-log.js';

interface Line {
  readonly start_time: string;
  readonly duration: number;
  readonly request_id: string;
}

const simulated = () =>
  new SimulatedLog({
    seed: 7,
    callers: 20,
    startMicros: Date.parse('2026-11-02T12:00:00Z') * 1000,
    hours: 1,
    abusers: 1,
    storms: 1,
    routes: [{ path: '/orders', fairPerSecond: 0.5, fairBurst: 5 }],
  });

test.each([3, 6] as const)(
  'a simulated log has a line for each request when it ends, with %d digits',
  (digits) => {
    const lines = [...simulatedLines(simulated(), digits)].map((line) => JSON.parse(line) as Line);
    const requests = [...simulated().minutes()].flat();
    expect(new Set(lines.map(({ request_id }) => request_id)).size).toBe(requests.length);
    const ends = lines.map(({ start_time, duration }) => Date.parse(start_time) + duration);
    // A time with 3 digits is up to a millisecond too early.
    expect(ends.filter((end, i) => end < (ends[i - 1] ?? 0) - 1)).toEqual([]);
    expect(lines[0]?.start_time).toMatch(digits === 3 ? /:\d\d\.\d{3}Z$/ : /:\d\d\.\d{6}Z$/);
  },
);
