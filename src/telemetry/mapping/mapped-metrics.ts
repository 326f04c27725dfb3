import {
  BucketCounts,
  type Family,
  type FamilyHead,
  StoredFamily,
  seriesText,
  type TakeSample,
} from '../family-registry.js';
import { UniformSample } from '../reference/duration-stats.js';
import type { ReferenceStats } from '../reference/reference-stats.js';
import type { StatSeries } from '../reference/stat-series.js';
import { escapeMetricName, type MappedStat, type Mapper, type ObserverOptions } from './mapper.js';

const HELP = 'An envoyproxy/ratelimit statistic, converted by the statsd_exporter mapping.';

/** A sample that a counter or gauge adds to. */
interface Target {
  readonly head: FamilyHead;
  /** Name with labels. */
  readonly series: string;
  readonly scale: number;
}

/** Durations with the same name and labels. */
interface MappedObserver {
  readonly head: FamilyHead;
  readonly labels: Readonly<Record<string, string>>;
  readonly of: Observer;
}

class MappedFamily extends StoredFamily {
  readonly values = new Map<string, number>();
  readonly observers: MappedObserver[] = [];

  eachSample(take: TakeSample): void {
    for (const [series, value] of this.values) take(series, value);
    for (const { labels, of } of this.observers) of.eachSample(this.name, labels, take);
  }
}

export interface MappedMetricsOptions {
  readonly stats: ReferenceStats;
  readonly mapper: Mapper;
  /** Labels of every metric (EXTRA_TAGS). */
  readonly labels: readonly (readonly [string, string])[];
  /** Whether summaries show quantiles. */
  readonly quantiles: boolean;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/**
 * The reference's statistics as Prometheus metrics. As in statsd_exporter, the samples of a family may have different
 * labels.
 */
export class MappedMetrics {
  readonly #options: MappedMetricsOptions;
  readonly #labels: Readonly<Record<string, string>>;
  /** By name and labels. */
  readonly #observers = new Map<string, MappedObserver>();
  /** Target of each counter of a series, or null if it is dropped. Found when the counter is first used. */
  readonly #counters = new WeakMap<StatSeries, (Target | null | undefined)[]>();

  constructor(options: MappedMetricsOptions) {
    this.#options = options;
    this.#labels = Object.fromEntries(
      options.labels.map(([name, value]) => [escapeMetricName(name), value] as const),
    );
    options.stats.followDurations((durations) => {
      const mapped = options.mapper.map(durations.name, 'observer');
      if (mapped === undefined) return;
      const observer = this.#observer(mapped);
      const { scale } = mapped;
      durations.addListener({ observe: (millis) => observer.observe(millis * scale) });
    });
  }

  families(): readonly Family[] {
    const families = new Map<string, MappedFamily>();
    // The first type that uses a name keeps it, as in statsd_exporter.
    const familyOf = (head: FamilyHead): MappedFamily | undefined => {
      const family = families.get(head.name) ?? new MappedFamily(head);
      families.set(head.name, family);
      return family.type === head.type ? family : undefined;
    };
    for (const observer of this.#observers.values()) {
      if (!observer.of.isEmpty) familyOf(observer.head)?.observers.push(observer);
    }
    for (const series of this.#options.stats.series()) {
      for (let at = 0; at < series.values.length; at++) {
        const value = series.values[at] as number;
        const target = value === 0 ? null : this.#counter(series, at);
        if (target === null) continue;
        const values = familyOf(target.head)?.values;
        values?.set(target.series, (values.get(target.series) ?? 0) + value * target.scale);
      }
    }
    for (const [name, value] of this.#options.stats.gauges()) {
      const target = this.#target(name, 'gauge');
      if (target !== null) familyOf(target.head)?.values.set(target.series, value * target.scale);
    }
    return [...families.values()];
  }

  #counter(series: StatSeries, at: number): Target | null {
    let targets = this.#counters.get(series);
    if (targets === undefined) {
      targets = new Array<Target | null | undefined>(series.values.length).fill(undefined);
      this.#counters.set(series, targets);
    }
    let target = targets[at];
    if (target === undefined) {
      target = this.#target(series.nameAt(at), 'counter');
      targets[at] = target;
    }
    return target;
  }

  #target(name: string, type: 'counter' | 'gauge'): Target | null {
    const mapped = this.#options.mapper.map(name, type);
    // A counter must not decrease.
    if (mapped === undefined || (type === 'counter' && mapped.scale < 0)) return null;
    const series = seriesText(mapped.name, { ...this.#labels, ...mapped.labels });
    return { head: headOf(mapped, type), series, scale: mapped.scale };
  }

  #observer(mapped: MappedStat): Observer {
    const labels = { ...this.#labels, ...mapped.labels };
    const key = seriesText(mapped.name, labels);
    let observer = this.#observers.get(key);
    if (observer === undefined) {
      const { quantiles, now } = this.#options;
      const of = createObserver(mapped.observer, quantiles, now);
      observer = { head: headOf(mapped, mapped.observer.kind), labels, of };
      this.#observers.set(key, observer);
    }
    return observer.of;
  }
}

function headOf({ name, help }: MappedStat, type: string): FamilyHead {
  return { name, type, help: help === '' ? HELP : help, aggregator: 'sum' };
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
