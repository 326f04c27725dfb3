import { formatProblem } from '../../config/yaml/config-problem.js';
import { MAX_FILE_BYTES } from '../../config/yaml/yaml-value.js';
import { MAX_TIMER_MS } from '../../limiter/clock.js';
import type { Closers } from '../../runtime/closers.js';
import { workingDirectoryHint } from '../../runtime/working-directory.js';
import type { Family } from '../../telemetry/family-registry.js';
import type { Logger } from '../../telemetry/logger.js';
import { MappedMetrics } from '../../telemetry/mapping/mapped-metrics.js';
import { defaultMapping, Mapper, type Mapping } from '../../telemetry/mapping/mapper.js';
import type { Metrics } from '../../telemetry/metrics.js';
import type { ReferenceStats } from '../../telemetry/reference/reference-stats.js';
import { DogStatsdUdp } from '../../telemetry/statsd/dogstatsd-udp.js';
import { extraTags, flushStats, type SinkTarget, type StatsSink } from '../../telemetry/statsd/stats-sink.js';
import { StatsdTcp } from '../../telemetry/statsd/statsd-tcp.js';
import { readNamedFile } from '../followed-files.js';
import { ConfigWarnings } from '../policies/policy-log.js';
import { servesReference } from '../settings/settings-check.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError } from '../start-error.js';
import { readMappingFile } from './mapping-file.js';

/** Maximum number of problems of a mapping file in a message. */
const MAX_SHOWN = 20;

/** Returns the mapping that the settings select. Throws {@link StartError} with the problems of its file. */
function mappingOf(settings: Settings, log: Logger): Mapping {
  const { prometheusMapper: file } = settings;
  if (file === '') return defaultMapping(settings.prometheusMillis);
  let bytes: Uint8Array;
  try {
    bytes = readNamedFile('PROMETHEUS_MAPPER_YAML', file, MAX_FILE_BYTES);
  } catch (error) {
    const { cause, message } = error as Error;
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') {
      // Envoy Gateway mounts the file from an optional ConfigMap that may not exist yet. The reference starts without
      // it, too.
      log.warn(
        `PROMETHEUS_MAPPER_YAML: ${file} does not exist${workingDirectoryHint(file)}; weir uses the default mapping`,
      );
      return defaultMapping(settings.prometheusMillis);
    }
    throw new StartError([message]);
  }
  const { mapping, errors, warnings } = readMappingFile(file, bytes);
  if (errors.length > 0) {
    const shown = errors.slice(0, MAX_SHOWN).map(formatProblem);
    throw new StartError([
      ...shown,
      `PROMETHEUS_MAPPER_YAML: ${file} cannot be used; correct the errors above, or unset the variable`,
    ]);
  }
  new ConfigWarnings(log).logNew('', warnings);
  return mapping;
}

/**
 * Exposes the reference's statistics of this process as metrics, with the names of the mapping. Throws {@link
 * StartError} if the mapping is invalid.
 */
export function exposeReference(settings: Settings, metrics: Metrics, log: Logger): void {
  if (!servesReference(settings)) return;
  const mapped = new MappedMetrics({
    stats: metrics.reference,
    mapper: new Mapper(mappingOf(settings, log)),
    labels: extraTags(settings.extraTags),
    quantiles: settings.workers === 1,
    now: () => performance.now(),
  });
  metrics.registry.addSource(() => mapped.families());
}

/**
 * Sends the reference's statistics of this process to statsd and dogstatsd, if the settings enable them. Closing
 * `closers` sends the last values.
 */
export function openStatsSinks(settings: Settings, metrics: Metrics, log: Logger, closers: Closers): void {
  if (settings.disableStats) return;
  const target: SinkTarget = {
    host: settings.statsdHost,
    port: settings.statsdPort,
    tags: extraTags(settings.extraTags),
    log: (level, message) => log[level](message),
  };
  const sinks: StatsSink[] = [];
  if (settings.useStatsd) sinks.push(new StatsdTcp(target));
  if (settings.useDogStatsd)
    sinks.push(new DogStatsdUdp({ ...target, mogrifiers: settings.dogStatsdMogrifierTable }));
  if (sinks.length === 0) return;
  const intervalMs = Math.min(Math.max(settings.statsFlushInterval / 1000, 1), MAX_TIMER_MS);
  const stats = metrics.reference;
  stats.followDurations((durations) => durations.keepSamples());
  const timer = setInterval(() => flushStats(stats, sinks), intervalMs).unref();
  metrics.registry.show('weir_stats_dropped_total', () =>
    sinks.map(({ name, dropped }) => [{ sink: name }, dropped]),
  );
  closers.add(async () => {
    clearInterval(timer);
    flushStats(stats, sinks);
    await Promise.all(sinks.map((sink) => sink.close()));
  });
}

/** Returns the statistics of one process, with the reference's names, as metric families that can be aggregated. */
export function statFamilies(stats: ReferenceStats): readonly Family[] {
  return [
    {
      name: 'counters',
      help: '',
      type: 'counter',
      aggregator: 'sum',
      eachSample: (take) => stats.eachCounter(take),
    },
    {
      name: 'gauges',
      help: '',
      type: 'gauge',
      aggregator: 'sum',
      eachSample(take) {
        for (const [name, value] of stats.gauges()) take(name, value);
      },
    },
  ];
}

/** Returns the text of `/stats`: lines of `name: value`, sorted by name. Values with the same name are added up. */
export function statsText(families: Iterable<Family>): string {
  const sums = new Map<string, number>();
  for (const family of families) {
    family.eachSample((name, value) => sums.set(name, (sums.get(name) ?? 0) + value));
  }
  let text = '';
  for (const name of [...sums.keys()].sort()) text += `${name}: ${sums.get(name)}\n`;
  return text;
}
