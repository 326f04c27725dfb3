import { MAX_TIMER_MS } from '../../limiter/clock.js';
import type { Closers } from '../../runtime/closers.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Metrics } from '../../telemetry/metrics.js';
import { DogStatsdUdp } from '../../telemetry/statsd/dogstatsd-udp.js';
import { extraTags, flushStats, type SinkTarget, type StatsSink } from '../../telemetry/statsd/stats-sink.js';
import { StatsdTcp } from '../../telemetry/statsd/statsd-tcp.js';
import type { Settings } from '../settings/settings-table.js';

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
  metrics.exposeSinks(() => sinks);
  closers.add(async () => {
    clearInterval(timer);
    flushStats(stats, sinks);
    await Promise.all(sinks.map((sink) => sink.close()));
  });
}
