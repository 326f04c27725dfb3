import type { Family } from '../../telemetry/family.js';
import type { MetricsPart, Sample } from './calls.js';

/** Maximum number of samples in a part. */
const SAMPLES_PER_PART = 1000;

/** Yields families in parts. */
export function* metricsParts(of: MetricsPart['of'], families: Iterable<Family>): Generator<MetricsPart> {
  for (const family of families) {
    const { name, help, type, aggregator } = family;
    const head = { name, help, type, aggregator };
    const samples: Sample[] = [];
    family.eachSample((series, value) => samples.push([series, value]));
    // Families without samples are sent, too, for their names and help texts.
    let at = 0;
    do {
      yield { of, family: head, samples: samples.slice(at, at + SAMPLES_PER_PART) };
      at += SAMPLES_PER_PART;
    } while (at < samples.length);
  }
}

/** Metrics and statistics that a worker sent in one answer. Large families are several elements. */
export interface WorkerMetrics {
  readonly metrics: readonly Family[];
  readonly stats: readonly Family[];
}

export const NO_METRICS: WorkerMetrics = { metrics: [], stats: [] };

/** Returns the metrics in the parts of an answer. */
export function receivedMetrics(parts: readonly MetricsPart[]): WorkerMetrics {
  const familiesOf = (of: MetricsPart['of']): readonly Family[] =>
    parts
      .filter((part) => part.of === of)
      .map(({ family, samples }) => ({
        ...family,
        eachSample(take) {
          for (const [series, value] of samples) take(series, value);
        },
      }));
  return { metrics: familiesOf('metrics'), stats: familiesOf('stats') };
}
