import { describe, expect, test } from '@jest/globals';
import { Metrics } from '../../../src/telemetry/metrics.js';

const memoryStats = () => ({ size: 0, bytes: 0, evictions: 0 });
const open = (maxSeries = 100) => new Metrics({ maxSeries, version: '1', memoryStats });
const linesOf = async (metrics: Metrics, family: string) =>
  (await metrics.registry.metrics()).split('\n').filter((line) => line.startsWith(`${family}{`));

describe('candidates', () => {
  test('are counted by the actual answer and their own answer', async () => {
    const metrics = open();
    metrics.candidate('d', 'k', false, false);
    metrics.candidate('d', 'k', false, true);
    metrics.candidate('d', 'k', false, true);
    metrics.candidate('d', 'k', true, false);
    metrics.candidate('d', 'k', true, true);
    expect(await linesOf(metrics, 'weir_candidate_decisions_total')).toEqual([
      'weir_candidate_decisions_total{domain="d",rule="k",live="OK",candidate="OK"} 1',
      'weir_candidate_decisions_total{domain="d",rule="k",live="OK",candidate="OVER_LIMIT"} 2',
      'weir_candidate_decisions_total{domain="d",rule="k",live="OVER_LIMIT",candidate="OK"} 1',
      'weir_candidate_decisions_total{domain="d",rule="k",live="OVER_LIMIT",candidate="OVER_LIMIT"} 1',
    ]);
  });

  test('share the bound on series by rule', async () => {
    const metrics = open(2);
    metrics.decided('d', 'k', false, false);
    for (const rule of ['k', 'l', 'm']) metrics.candidate('d', rule, false, false);
    const lines = await linesOf(metrics, 'weir_candidate_decisions_total');
    expect(lines.filter((line) => line.includes('live="OK",candidate="OK"'))).toEqual([
      'weir_candidate_decisions_total{domain="d",rule="k",live="OK",candidate="OK"} 1',
      'weir_candidate_decisions_total{domain="other",rule="other",live="OK",candidate="OK"} 2',
    ]);
    expect(await metrics.registry.metrics()).toContain('weir_metrics_series_refused_total 2\n');
  });
});

test('forgiven hits are added up for each rule, and rules without any have no series', async () => {
  const metrics = open();
  metrics.decided('d', 'k', false, false);
  metrics.decided('d', 'l', false, false);
  metrics.forgiven('d', 'k', 7);
  metrics.forgiven('d', 'k', 2 ** 40);
  expect(await linesOf(metrics, 'weir_debt_forgiven_total')).toEqual([
    `weir_debt_forgiven_total{domain="d",rule="k"} ${7 + 2 ** 40}`,
  ]);
});
