import { describe, expect, test } from '@jest/globals';
import { Counter, Gauge, Registry } from 'prom-client';
import { AddedMetrics } from '../../../../src/server/workers/added-metrics.js';
import type { MetricsJson } from '../../../../src/server/workers/messages.js';

async function metricsOf(decisions: number, buckets: number): Promise<MetricsJson> {
  const registers = [new Registry()];
  new Counter({ name: 'decisions', help: 'h', labelNames: ['code'], registers }).inc(
    { code: 'OK' },
    decisions,
  );
  new Gauge({ name: 'buckets', help: 'h', registers }).set(buckets);
  return (registers[0] as Registry).getMetricsAsJSON();
}

describe('added metrics', () => {
  test('are the sum over processes', async () => {
    const added = new AddedMetrics();
    const text = await added.text([await metricsOf(3, 10), await metricsOf(4, 20)]);
    expect(text).toContain('decisions{code="OK"} 7\n');
    expect(text).toContain('buckets 30\n');
  });

  test('go on counting what ended processes counted, but not what they held', async () => {
    const added = new AddedMetrics();
    await added.keep(await metricsOf(3, 10));
    await added.keep(await metricsOf(5, 10));
    await added.keep([]);
    const text = await added.text([await metricsOf(1, 2)]);
    expect(text).toContain('decisions{code="OK"} 9\n');
    expect(text).toContain('buckets 2\n');
  });

  test('lose nothing of processes that end at once, at no moment', async () => {
    const added = new AddedMetrics();
    const [one, two] = [await metricsOf(3, 10), await metricsOf(5, 10)];
    const kept = [added.keep(one), added.keep(two)];
    expect(await added.text([])).toContain('decisions{code="OK"} 8\n');
    await Promise.all(kept);
    expect(await added.text([])).toContain('decisions{code="OK"} 8\n');
  });
});
