import { BucketCounts } from '../duration-histogram.js';
import { type Family, StoredFamily, seriesText, type TakeSample } from '../family-registry.js';
import { UniformSample } from '../reference/duration-stats.js';
import type { ReferenceStats } from '../reference/reference-stats.js';
import type { StatSeries } from '../reference/stat-series.js';
import { escapeMetricName, type MappedStat, type Mapper, type ObserverOptions } from './mapper.js';

const HELP = 'An envoyproxy/ratelimit statistic, converted by the statsd_exporter mapping.';

type FamilyType = 'counter' | 'gauge' | 'histogram' | 'summary';

/** One series of a family. */
interface Sample {
  /** Name with labels. */
  readonly series: string;
  value: number;
  /** Number of the reading that `value` belongs to. */
  reading: number;
}

/** Sample that a statistic adds to, with its factor; null if the statistic is dropped. */
type Target = { readonly sample: Sample; readonly scale: number } | null;

class MappedFamily extends StoredFamily {
  readonly bySeries = new Map<string, Sample>();
  readonly observers = new Map<
    string,
    { readonly labels: Readonly<Record<string, string>>; readonly of: Observer }
  >();

  get isEmpty(): boolean {
    for (const { of } of this.observers.values()) if (!of.isEmpty) return false;
    return this.bySeries.size === 0;
  }

  /** Removes samples that no statistic adds to any more. */
  endReading(reading: number): void {
    for (const [key, sample] of this.bySeries) if (sample.reading !== reading) this.bySeries.delete(key);
  }

  eachSample(take: TakeSample): void {
    for (const { series, value } of this.bySeries.values()) take(series, value);
    for (const { labels, of } of this.observers.values()) {
      if (!of.isEmpty) of.eachSample(this.name, labels, take);
    }
  }
}

export interface MappedMetricsOptions {
  readonly stats: ReferenceStats;
  readonly mapper: Mapper;
  /** Labels of every metric (EXTRA_TAGS). */
  readonly labels: readonly (readonly [string, string])[];
  /** Whether summaries show quantiles. */
  readonly quantiles: boolean;
  /** Returns monotonic milliseconds. */
  readonly now: () => number;
}

/**
 * The reference's statistics as Prometheus metrics. As in statsd_exporter, the samples of a family may have different
 * labels.
 */
export class MappedMetrics {
  readonly #options: MappedMetricsOptions;
  readonly #labels: Readonly<Record<string, string>>;
  readonly #families = new Map<string, MappedFamily>();
  /** Target of each counter of a series, computed when the counter is first used. */
  readonly #counters = new WeakMap<StatSeries, (Target | undefined)[]>();
  #reading = 0;

  constructor(options: MappedMetricsOptions) {
    this.#options = options;
    this.#labels = Object.fromEntries(
      options.labels.map(([name, value]) => [escapeMetricName(name), value] as const),
    );
    options.stats.followDurations((durations) => {
      const mapped = options.mapper.map(durations.name, 'observer');
      if (mapped === undefined) return;
      const observer = this.#observer(mapped);
      if (observer === undefined) return;
      const { scale } = mapped;
      durations.addListener({ observe: (millis) => observer.observe(millis * scale) });
    });
  }

  /** Returns all families with samples and their current values. The samples are valid until the next reading. */
  families(): readonly Family[] {
    this.#reading++;
    for (const series of this.#options.stats.series()) {
      const { values } = series;
      for (let at = 0; at < values.length; at++) {
        const value = values[at] as number;
        if (value !== 0) this.#add(this.#counter(series, at), value);
      }
    }
    for (const [name, value] of this.#options.stats.gauges()) this.#set(this.#gauge(name), value);
    for (const family of this.#families.values()) family.endReading(this.#reading);
    return [...this.#families.values()].filter(({ isEmpty }) => !isEmpty);
  }

  #add(target: Target, value: number): void {
    if (target === null) return;
    const { sample, scale } = target;
    const before = sample.reading === this.#reading ? sample.value : 0;
    sample.value = before + value * scale;
    sample.reading = this.#reading;
  }

  #set(target: Target, value: number): void {
    if (target === null) return;
    target.sample.value = value * target.scale;
    target.sample.reading = this.#reading;
  }

  #counter(series: StatSeries, at: number): Target {
    let targets = this.#counters.get(series);
    if (targets === undefined) {
      targets = new Array<Target | undefined>(series.values.length).fill(undefined);
      this.#counters.set(series, targets);
    }
    let target = targets[at];
    if (target === undefined) {
      const mapped = this.#options.mapper.map(series.nameAt(at), 'counter');
      // A counter must not decrease.
      target = mapped === undefined || mapped.scale < 0 ? null : this.#sample(mapped, 'counter');
      targets[at] = target;
    }
    return target;
  }

  #gauge(name: string): Target {
    const mapped = this.#options.mapper.map(name, 'gauge');
    return mapped === undefined ? null : this.#sample(mapped, 'gauge');
  }

  #sample(mapped: MappedStat, type: 'counter' | 'gauge'): Target {
    const family = this.#family(mapped, type);
    if (family === undefined) return null;
    const series = seriesText(mapped.name, { ...this.#labels, ...mapped.labels });
    let sample = family.bySeries.get(series);
    if (sample === undefined) {
      sample = { series, value: 0, reading: 0 };
      family.bySeries.set(series, sample);
    }
    return { sample, scale: mapped.scale };
  }

  #observer(mapped: MappedStat): Observer | undefined {
    const family = this.#family(mapped, mapped.observer.kind);
    if (family === undefined) return undefined;
    const labels = { ...this.#labels, ...mapped.labels };
    const key = seriesText(mapped.name, labels);
    let observer = family.observers.get(key);
    if (observer === undefined) {
      const { quantiles, now } = this.#options;
      observer = { labels, of: createObserver(mapped.observer, quantiles, now) };
      family.observers.set(key, observer);
    }
    return observer.of;
  }

  /** Returns undefined if another type already uses the name. The first type keeps it, as in statsd_exporter. */
  #family({ name, help }: MappedStat, type: FamilyType): MappedFamily | undefined {
    let family = this.#families.get(name);
    if (family === undefined) {
      family = new MappedFamily({ name, type, help: help === '' ? HELP : help, aggregator: 'sum' });
      this.#families.set(name, family);
    }
    return family.type === type ? family : undefined;
  }
}

/** Durations of one series. */
interface Observer {
  /** Whether no duration was observed yet. */
  readonly isEmpty: boolean;
  observe(value: number): void;
  eachSample(name: string, labels: Readonly<Record<string, string>>, take: TakeSample): void;
}

/** Creates an observer. `quantiles`: whether a summary shows quantiles, which several processes could not add up. */
function createObserver(options: ObserverOptions, quantiles: boolean, now: () => number): Observer {
  return options.kind === 'histogram'
    ? new BucketCounts(options.buckets)
    : new SummaryObserver(options, quantiles, now);
}

/** Summary with quantiles of a sample of the last `maxAgeMs`. The error bounds of a mapping file are ignored. */
class SummaryObserver implements Observer {
  readonly #options: Extract<ObserverOptions, { kind: 'summary' }>;
  readonly #showsQuantiles: boolean;
  readonly #now: () => number;
  /** One for each age. */
  readonly #buckets: UniformSample[];
  #turn: number;
  #count = 0;
  #sum = 0;

  constructor(
    options: Extract<ObserverOptions, { kind: 'summary' }>,
    showsQuantiles: boolean,
    now: () => number,
  ) {
    this.#options = options;
    this.#showsQuantiles = showsQuantiles;
    this.#now = now;
    this.#buckets = Array.from({ length: options.ageBuckets }, () => new UniformSample());
    this.#turn = this.#turnNow();
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  observe(value: number): void {
    this.#count++;
    this.#sum += value;
    if (!this.#showsQuantiles) return;
    this.#clearExpired();
    this.#buckets[this.#turn % this.#buckets.length]?.add(value);
  }

  eachSample(name: string, labels: Readonly<Record<string, string>>, take: TakeSample): void {
    if (this.#showsQuantiles) {
      this.#clearExpired();
      const weighted = this.#buckets.flatMap(({ samples, count }) =>
        samples.map((value) => ({ value, weight: count / samples.length })),
      );
      weighted.sort((one, other) => one.value - other.value);
      for (const quantile of this.#options.quantiles) {
        take(seriesText(name, { quantile, ...labels }), quantileOf(weighted, quantile));
      }
    }
    take(seriesText(`${name}_sum`, labels), this.#sum);
    take(seriesText(`${name}_count`, labels), this.#count);
  }

  #turnNow(): number {
    return Math.floor(this.#now() / (this.#options.maxAgeMs / this.#options.ageBuckets));
  }

  /** Clears the age buckets that have expired. */
  #clearExpired(): void {
    const turn = this.#turnNow();
    const passed = Math.min(turn - this.#turn, this.#buckets.length);
    for (let step = 1; step <= passed; step++) {
      this.#buckets[(turn - passed + step) % this.#buckets.length] = new UniformSample();
    }
    if (turn > this.#turn) this.#turn = turn;
  }
}

/**
 * Returns the smallest value with at least this share of the weight at or below it, or NaN without values, like the
 * client libraries.
 */
function quantileOf(
  ascending: readonly { readonly value: number; readonly weight: number }[],
  quantile: number,
): number {
  const total = ascending.reduce((sum, { weight }) => sum + weight, 0);
  let below = 0;
  for (const { value, weight } of ascending) {
    below += weight;
    if (below >= quantile * total) return value;
  }
  return ascending.at(-1)?.value ?? Number.NaN;
}
