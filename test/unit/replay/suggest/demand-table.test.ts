import { describe, expect, test } from '@jest/globals';
import { DAY, DemandTable, HOUR, MINUTE } from '../../../../src/replay/suggest/demand-table.js';
import { SPOKEN_RATES } from '../../../../src/replay/suggest/spoken-rates.js';
import { seededRandom } from '../../../support/limiter/seeded-random.js';

interface Request {
  readonly micros: number;
  readonly hits: number;
}

/** Requests with pauses from microseconds to hours, and 1 to 5 hits. */
function randomRequests(seed: number): readonly Request[] {
  const random = seededRandom(seed);
  let micros = 1.7e15;
  return Array.from({ length: 300 }, () => {
    micros += Math.floor(10 ** (random() * 10));
    return { micros, hits: 1 + Math.floor(random() * 5) };
  });
}

/** Returns the requests that a token bucket denies, which begins full. */
function denials(requests: readonly Request[], perSecond: number, maxTokens: number): number {
  let tokens = maxTokens;
  let last = requests[0]?.micros ?? 0;
  let denied = 0;
  for (const { micros, hits } of requests) {
    tokens = Math.min(maxTokens, tokens + (perSecond * (micros - last)) / 1e6);
    last = micros;
    // Numbers of the table are rounded to 24 bits.
    if (tokens < hits - 1e-3) denied++;
    else tokens -= hits;
  }
  return denied;
}

/** Returns a table with one series, and its index. */
function observed(requests: readonly Request[]): { readonly table: DemandTable; readonly series: number } {
  const table = new DemandTable();
  const series = table.add();
  for (const { micros, hits } of requests) table.observe(series, micros, hits);
  return { table, series };
}

describe('the demand of a caller', () => {
  test('the burst of each rate is the smallest capacity that denies nothing', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const requests = randomRequests(seed);
      const { table, series } = observed(requests);
      const wrong = SPOKEN_RATES.filter(({ perSecond }, rate) => {
        const burst = table.burst(series, rate);
        return denials(requests, perSecond, burst) > 0 || denials(requests, perSecond, burst - 1) === 0;
      });
      expect(wrong).toEqual([]);
    }
  });

  test('the busiest hour is never below the most hits within an hour', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const requests = randomRequests(seed);
      const { table, series } = observed(requests);
      const within = requests.map(({ micros }) =>
        requests
          .filter((other) => other.micros >= micros && other.micros < micros + 3600e6)
          .reduce((sum, { hits }) => sum + hits, 0),
      );
      expect(table.busiest(series, 3600)).toBeGreaterThanOrEqual(Math.max(...within));
    }
  });

  test('windows begin on the clock', () => {
    const minute = 60e6;
    const requests = [0, 1, 2, 61, 62, 3600, 86_400, 86_401].map((at) => ({
      micros: 100 * 86_400e6 + (at * minute) / 60,
      hits: 2,
    }));
    const { table, series } = observed(requests);
    expect([MINUTE, HOUR, DAY].map((window) => table.busiestWindow(series, window as 0 | 1 | 2))).toEqual([
      6, 10, 12,
    ]);
    expect([table.requests(series), table.hits(series)]).toEqual([8, 16]);
  });

  test('series are independent, in any number', () => {
    const table = new DemandTable();
    const all = Array.from({ length: 3000 }, () => table.add());
    for (const series of all) for (let i = 0; i <= series % 7; i++) table.observe(series, 1e15, 1);
    const bursts = all.map((series) => table.burst(series, 20));
    expect(bursts).toEqual(all.map((series) => (series % 7) + 1));
  });
});
