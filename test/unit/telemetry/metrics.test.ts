import { describe, expect, test } from '@jest/globals';
import { Metrics } from '../../../src/telemetry/metrics.js';

const memoryStats = () => ({ size: 0, bytes: 0, evictions: 0, holdCount: 0, refusedHolds: 0 });
const open = (maxSeries = 100) => new Metrics({ maxSeries, version: '1', memoryStats });
const linesOf = async (metrics: Metrics, family: string) =>
  String(await metrics.registry.text())
    .split('\n')
    .filter((line) => line.startsWith(`${family}{`));

test('forgiven hits are added up for each rule, and rules without any have no series', async () => {
  const metrics = open();
  metrics.counterOf('d', 'k', 'd.k', false).countDecision(false, false);
  metrics.counterOf('d', 'l', 'd.l', false).countDecision(false, false);
  metrics.uncollected('d', 'k', 7);
  metrics.uncollected('d', 'k', 2 ** 40);
  expect(await linesOf(metrics, 'weir_debt_forgiven_total')).toEqual([
    `weir_debt_forgiven_total{domain="d",rule="k"} ${7 + 2 ** 40}`,
  ]);
});

describe('holds', () => {
  const everyLine = async (metrics: Metrics) =>
    String(await metrics.registry.text())
      .split('\n')
      .filter((line) => /^weir_hold.*\{/.test(line));

  test('are counted by rule when they are placed, settled and released', async () => {
    const metrics = open();
    for (const hits of [100, 100, 100, 100]) metrics.holds.placed('d', 'k', hits);
    metrics.holds.settled('d', 'k', 100, 70);
    metrics.holds.settled('d', 'k', 100, undefined);
    metrics.holds.released('d', 'k', 100);
    metrics.holds.lost('d', 'k');
    expect(await everyLine(metrics)).toEqual([
      'weir_holds_placed_total{domain="d",rule="k"} 4',
      'weir_holds_settled_total{domain="d",rule="k",use="known"} 1',
      'weir_holds_settled_total{domain="d",rule="k",use="unknown"} 1',
      'weir_holds_released_total{domain="d",rule="k"} 1',
      'weir_hold_settlements_lost_total{domain="d",rule="k"} 1',
      'weir_hold_hits_total{domain="d",rule="k",event="placed"} 400',
      'weir_hold_hits_total{domain="d",rule="k",event="settled"} 200',
      'weir_hold_hits_total{domain="d",rule="k",event="released"} 100',
      'weir_hold_used_hits_total{domain="d",rule="k"} 70',
    ]);
  });

  test('observe only the use above a hold', async () => {
    const metrics = open();
    const uses = [0, 99, 100, 110, 111, 1_000_000];
    for (const used of uses) metrics.holds.settled('d', 'k', 100, used);
    metrics.holds.settled('d', 'slots', 1, 1);
    const series = 'weir_hold_overshoot_hits';
    const text = String(await metrics.registry.text());
    expect(text).toContain(`# TYPE ${series} histogram\n`);
    expect(text.split('\n').filter((line) => line.startsWith(series))).toEqual([
      `${series}_bucket{domain="d",rule="k",le="10"} 1`,
      `${series}_bucket{domain="d",rule="k",le="100"} 2`,
      `${series}_bucket{domain="d",rule="k",le="1000"} 2`,
      `${series}_bucket{domain="d",rule="k",le="10000"} 2`,
      `${series}_bucket{domain="d",rule="k",le="100000"} 2`,
      `${series}_bucket{domain="d",rule="k",le="+Inf"} 3`,
      `${series}_sum{domain="d",rule="k"} 999921`,
      `${series}_count{domain="d",rule="k"} 3`,
    ]);
  });

  test('share the bound on series by rule', async () => {
    const metrics = open(1);
    for (const rule of ['k', 'l', 'm']) metrics.holds.placed('d', rule, 1);
    expect(await linesOf(metrics, 'weir_holds_placed_total')).toEqual([
      'weir_holds_placed_total{domain="d",rule="k"} 1',
      'weir_holds_placed_total{domain="other",rule="other"} 2',
    ]);
  });

  test('count tokens that settle nothing by the reason', async () => {
    const metrics = open();
    for (const kind of ['unknown', 'malformed', 'unknown'] as const) metrics.holds.unsettled('d', kind);
    expect(await linesOf(metrics, 'weir_hold_tokens_unmatched_total')).toEqual([
      'weir_hold_tokens_unmatched_total{domain="d",kind="unknown"} 2',
      'weir_hold_tokens_unmatched_total{domain="d",kind="malformed"} 1',
    ]);
  });
});
