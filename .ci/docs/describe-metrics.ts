import { NO_SECRETS } from '../../src/policy/redact.js';
import { NO_SPAN_LOSSES } from '../../src/server/calls/tracing.js';
import { exposeUsedRatio } from '../../src/server/metrics/bucket-used-ratio.js';
import { exposeLoad, exposeServing } from '../../src/server/metrics/load-gauges.js';
import { exposeLosses } from '../../src/server/metrics/losses.js';
import { exposePlans } from '../../src/server/metrics/plan-metrics.js';
import { exposeStore } from '../../src/server/metrics/store-metrics.js';
import { exposeWorkers } from '../../src/server/metrics/worker-gauges.js';
import { NO_GIVE_BACKS } from '../../src/server/store/store.js';
import type { MetricDescription } from '../../src/telemetry/label-meanings.js';
import { defaultMapping, MAPPED_LABELS } from '../../src/telemetry/mapping/default-mapping.js';
import { Mapper } from '../../src/telemetry/mapping/mapper.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { describeStats, type StatDescription } from '../../src/telemetry/reference/reference-stats.js';

const NONE = { size: 0, bytes: 0, evictions: 0, holdCount: 0, refusedHolds: 0, answers: 0, entries: 0 };
const NO_LOAD = {
  grpc: { connections: 0, bufferedBytes: 0, reads: 0, answers: 0, deadlines: 0, inflating: 0, lost: 0 },
  storeWaitingBytes: 0,
  large: { size: 0, bytes: 0 },
};

/** weir's own metrics, those of Node.js apart, whatever the settings. */
export function describeMetrics(): readonly MetricDescription[] {
  const metrics = new Metrics({
    maxSeries: 0,
    version: '',
    memoryStats: () => NONE,
    denyCacheStats: () => NONE,
  });
  metrics.exposeDomainStates(() => []);
  metrics.exposeLogOutput({ dropped: 0 });
  metrics.exposeSinks(() => []);
  exposeLoad(metrics.registry, () => NO_LOAD);
  exposeStore(metrics.registry, {
    giveBackStats: () => NO_GIVE_BACKS,
    nodes: () => [],
  });
  exposePlans(metrics.registry, { current: () => undefined });
  exposeServing(metrics.registry, () => true);
  exposeUsedRatio(metrics.registry, { top: undefined, secretKeys: () => NO_SECRETS }, 0);
  exposeLosses(
    metrics.registry,
    () => 0,
    () => NO_SPAN_LOSSES,
  );
  exposeWorkers(metrics.registry, { workers: [], restarts: 0, silentKilled: 0 }, () => 0);
  return metrics.registry.describe().filter(({ name }) => name.startsWith('weir_'));
}

/** A statistic of the reference, and its Prometheus metric in the default mapping. */
export interface MappedStatDescription extends StatDescription {
  readonly metric: MetricDescription;
}

/** The statistics of the reference. */
export function describeReference(): readonly MappedStatDescription[] {
  const mapper = new Mapper(defaultMapping(false));
  return describeStats().map((stat) => {
    const { name, type, meaning } = stat;
    const isTimer = type === 'timer';
    // Names cannot contain brackets, so a word replaces each variable part.
    const word = name.replaceAll(/<(\w+)>/g, 'ANY$1');
    const mapped = mapper.map(word, isTimer ? 'observer' : type);
    // Rules of two levels and more have a further label.
    const deeper = mapper.map(word.replace('ANYkey', 'ANYkey.ANYkey'), isTimer ? 'observer' : type);
    const labels = Object.keys({ ...mapped?.labels, ...deeper?.labels });
    return {
      ...stat,
      metric: {
        name: (mapped?.name ?? '').replaceAll(/ANY([a-z]+)/g, '<$1>'),
        type: isTimer ? 'histogram' : type,
        help: meaning,
        labels: Object.fromEntries(labels.map((label) => [label, MAPPED_LABELS[label] ?? { meaning: '' }])),
      },
    };
  });
}
