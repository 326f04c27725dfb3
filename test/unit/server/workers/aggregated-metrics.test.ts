import { describe, expect, test } from '@jest/globals';
import { AggregatedMetrics } from '../../../../src/server/workers/aggregated-metrics.js';
import {
  type Family,
  FamilyRegistry,
  familiesText,
  sampledFamily,
} from '../../../../src/telemetry/family-registry.js';

function metricsOf(decisions: number, buckets: number): Promise<readonly Family[]> {
  const registry = new FamilyRegistry();
  const counter = { name: 'decisions', help: 'h', type: 'counter', aggregator: 'sum' };
  registry.addFamily(sampledFamily(counter, () => [[{ code: 'OK' }, decisions]]));
  const gauge = (name: string, aggregator = 'sum'): void =>
    registry.addFamily(sampledFamily({ name, help: 'h', type: 'gauge', aggregator }, () => buckets));
  gauge('buckets');
  gauge('least', 'min');
  gauge('most', 'max');
  gauge('mean', 'average');
  gauge('any', 'first');
  gauge('own', 'omit');
  return registry.read();
}

const textOfSum = (added: AggregatedMetrics, processes: readonly (readonly Family[])[]): string =>
  String(familiesText(added.sum(processes)));

describe('added metrics', () => {
  test('are the sum over processes', async () => {
    const added = new AggregatedMetrics();
    const text = textOfSum(added, [await metricsOf(3, 10), await metricsOf(4, 20)]);
    expect(text).toContain('decisions{code="OK"} 7\n');
    expect(text).toContain('buckets 30\n');
  });

  test('or the minimum, maximum, mean or first value, or are omitted, as the metric specifies', async () => {
    const text = textOfSum(new AggregatedMetrics(), [await metricsOf(1, 10), await metricsOf(1, 40)]);
    for (const line of ['least 10', 'most 40', 'mean 25', 'any 10']) expect(text).toContain(`${line}\n`);
    expect(text).not.toContain('own');
  });

  test('keep the counters of ended processes, but not their gauges', async () => {
    const added = new AggregatedMetrics();
    added.keep(await metricsOf(3, 10));
    added.keep(await metricsOf(5, 10));
    added.keep([]);
    const text = textOfSum(added, [await metricsOf(1, 2)]);
    expect(text).toContain('decisions{code="OK"} 9\n');
    expect(text).toContain('buckets 2\n');
  });
});
