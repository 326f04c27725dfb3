import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { describeMetrics, describeReference } from '../../../.ci/docs/describe-metrics.js';
import { exposeLoad } from '../../../src/server/metrics/server-metrics.js';
import { Metrics } from '../../../src/telemetry/metrics.js';
import { repositoryRoot } from '../../support/process/tools.js';

const NO_MEMORY = { size: 0, bytes: 0, evictions: 0, holdCount: 0, refusedHolds: 0 };
const described = new Map(describeMetrics().map((metric) => [metric.name, metric]));

/** Returns the label names of each metric in a Prometheus exposition. */
function labelsIn(text: string): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const [, name = '', labels = ''] of text.matchAll(/^(weir_\w+)(?:\{(.*)\})? \S+$/gm)) {
    const metric = name.replace(/_(?:bucket|sum|count)$/, '');
    const names = [...labels.matchAll(/(\w+)="/g)].flatMap(([, label = '']) =>
      label === 'le' ? [] : [label],
    );
    found.set(described.has(name) ? name : metric, names);
  }
  return found;
}

describe('the metrics in the manual', () => {
  test('are those that the source exposes', () => {
    const names = new Set<string>();
    for (const path of readdirSync(join(repositoryRoot, 'src'), { recursive: true, encoding: 'utf8' })) {
      if (!path.endsWith('.ts') || path === join('telemetry', 'families.ts')) continue;
      const text = readFileSync(join(repositoryRoot, 'src', path), 'utf8');
      for (const [, name = ''] of text.matchAll(/'(weir_\w+)'/g)) names.add(name);
    }
    expect([...described.keys()].sort()).toEqual([...names].sort());
  });

  test('have the same labels as the exported series, each with a description', async () => {
    const stats = () => ({ ...NO_MEMORY, answers: 0, entries: 0 });
    const metrics = new Metrics({ maxSeries: 10, version: '1', memoryStats: stats, denyCacheStats: stats });
    metrics.counterOf('d', 'r', 'd.r', false).countDecision(true, true);
    metrics.uncollected('d', 'r', 1);
    metrics.holds.placed('d', 'r', 1);
    metrics.holds.settled('d', 'r', 1, 2);
    metrics.holds.released('d', 'r', 1);
    metrics.holds.lost('d', 'r');
    metrics.holds.unsettled('d', 'unknown');
    metrics.unmatched('d', [{ key: 'k', value: '' }]);
    metrics.unknownDomain('d', 1);
    metrics.requestGivenUp('d', 'late');
    metrics.storeFailed('allow');
    metrics.storeError('timeout');
    metrics.refused('UNAVAILABLE');
    metrics.reloaded(true);
    metrics.setPolicyVersion('1');
    const grpc = {
      connections: 0,
      bufferedBytes: 0,
      reads: 0,
      answers: 0,
      deadlines: 0,
      inflating: 0,
      lost: 0,
    };
    const largeRequests = { size: 0, bytes: 0 };
    exposeLoad(metrics.registry, { load: () => grpc }, { bytes: 0 }, { largeRequests });
    const shown = labelsIn(String(await metrics.registry.text()));
    expect(shown.size).toBeGreaterThan(30);
    for (const [name, labels] of shown) {
      expect([name, Object.keys(described.get(name)?.labels ?? {})]).toEqual([name, labels]);
    }
    for (const { name, labels } of described.values()) {
      for (const { meaning } of Object.values(labels))
        expect([name, meaning]).toEqual([name, expect.stringMatching(/\.$/)]);
    }
  });

  test('include the metrics of the reference with their Prometheus names and label descriptions', () => {
    const metrics = describeReference().map(({ metric }) => metric);
    expect(metrics.find(({ name }) => name === 'ratelimit_service_rate_limit_over_limit')).toMatchObject({
      type: 'counter',
      labels: { domain: {}, key1: {}, key2: {} },
    });
    expect(metrics.find(({ name }) => name === 'ratelimit_service_response_time_seconds')?.type).toBe(
      'histogram',
    );
    for (const { name, help, labels } of metrics) {
      expect([name, help]).toEqual([name, expect.stringMatching(/\S\.$/)]);
      for (const { meaning } of Object.values(labels)) expect(meaning).toMatch(/\S\.$/);
    }
  });
});
