import { type Family, StoredFamily, type TakeSample } from '../../telemetry/family-registry.js';
import type { MetricsPart, Sample } from './messages.js';

/** Returns the metrics that must not decrease when a process exits. Gauges describe a running process only. */
function counting(metrics: readonly Family[]): readonly Family[] {
  return metrics.filter(({ type }) => type === 'counter' || type === 'histogram');
}

/** Adds up the metrics of several processes, including those that have exited. */
export class AggregatedMetrics {
  #ended: readonly Family[] = [];

  /** Keeps the last known counters of a process that has exited. */
  keep(last: readonly Family[]): void {
    this.#ended = sumOf([this.#ended, counting(last)]);
  }

  /** Names and help texts are those of the first of `processes`. */
  sum(processes: readonly (readonly Family[])[]): readonly Family[] {
    return sumOf([...processes, this.#ended]);
  }
}

/** A metric family of several processes. */
class SumFamily extends StoredFamily {
  /** Sum, and number of processes that have the series, by the text of the series. */
  readonly #sums = new Map<string, { value: number; count: number }>();

  add(series: string, value: number): void {
    const sum = this.#sums.get(series);
    if (sum === undefined) {
      this.#sums.set(series, { value, count: 1 });
      return;
    }
    sum.count++;
    if (this.aggregator === 'sum' || this.aggregator === 'average') sum.value += value;
    else if (this.aggregator === 'min') sum.value = Math.min(sum.value, value);
    else if (this.aggregator === 'max') sum.value = Math.max(sum.value, value);
  }

  eachSample(take: TakeSample): void {
    const averages = this.aggregator === 'average';
    for (const [series, { value, count }] of this.#sums) take(series, averages ? value / count : value);
  }
}

function sumOf(processes: readonly (readonly Family[])[]): readonly Family[] {
  const families = new Map<string, SumFamily>();
  for (const one of processes.flat()) {
    if (one.aggregator === 'omit') continue;
    const family = families.get(one.name) ?? new SumFamily(one);
    families.set(one.name, family);
    one.eachSample((series, value) => family.add(series, value));
  }
  return [...families.values()];
}

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
interface WorkerMetrics {
  readonly metrics: readonly Family[];
  readonly stats: readonly Family[];
}

export const NO_METRICS: WorkerMetrics = { metrics: [], stats: [] };

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
