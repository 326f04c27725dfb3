import { expect, test } from '@jest/globals';
import type { TokenBucketRate } from '../../../../src/limiter/token-bucket.js';
import { policyText } from '../../../../src/replay/suggest/policy-text.js';
import { DEFAULT_SUGGEST_OPTIONS } from '../../../../src/replay/suggest/suggest.js';
import { SimulatedLog, type SimulatedLogOptions } from '../../../support/replay/simulated-log.js';
import { loadedRules, suggestionOf } from '../../../support/replay/suggested.js';

interface Planted extends Pick<SimulatedLogOptions, 'seed' | 'routes' | 'clockSteps'> {
  readonly headroom: number;
}

const LOGS: readonly Planted[] = [
  { seed: 1, headroom: 0.2, routes: [route('/orders', 0.5, 20), route('/search', 0.1, 60)] },
  { seed: 2, headroom: 0, routes: [route('/orders', 0.37, 5), route('/search', 0.2, 10)] },
  {
    seed: 3,
    headroom: 0.2,
    routes: [route('/orders', 0.7, 100)],
    clockSteps: [{ afterMinutes: 200, seconds: 3600 }],
  },
  {
    seed: 4,
    headroom: 0,
    routes: [route('/orders', 0.23, 30), route('/search', 0.095, 10)],
    clockSteps: [
      { afterMinutes: 100, seconds: 90 },
      { afterMinutes: 250, seconds: -600 },
      { afterMinutes: 400, seconds: -7200 },
    ],
  },
];

function route(
  path: string,
  fairPerSecond: number,
  fairBurst: number,
): SimulatedLogOptions['routes'][number] {
  return { path, fairPerSecond, fairBurst };
}

test.each(LOGS)('seed $seed: the rate is fair, and exactly the abusers are named', async (planted) => {
  const { headroom, ...log } = planted;
  const source = new SimulatedLog({
    callers: 200,
    startMicros: Date.parse('2026-11-02T05:00:00Z') * 1000,
    hours: 12,
    abusers: 4,
    storms: 5,
    ...log,
  });
  const options = { ...DEFAULT_SUGGEST_OPTIONS, by: 'tenant', headroom };
  const suggestion = await suggestionOf(source, options);
  const rules = loadedRules(policyText('shop', suggestion, options));
  expect(suggestion.limits.size).toBe(log.routes.length);
  for (const limit of suggestion.limits.values()) {
    const path = limit.node.value ?? '';
    const { fairPerSecond = 0 } = log.routes.find((one) => one.path === path) ?? {};
    const rate = rules.get(`tenant/path=${path}`)?.rate as TokenBucketRate;
    const suggested = (rate.tokensPerFill / rate.fillIntervalMicros) * 1e6;
    const deviation = suggested / (fairPerSecond * (1 + headroom)) - 1;
    expect(Math.abs(deviation)).toBeLessThan(0.1);
    const named = limit.outliers.map(({ name }) => name);
    expect(named.sort()).toEqual([...(source.abusers.get(path) ?? [])].sort());
    expect(limit.denied).toBe(0);
    expect(limit.outliers.every(({ isDenied }) => isDenied)).toBe(true);
  }
});
