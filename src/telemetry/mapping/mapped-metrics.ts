import type { Family, FamilyValues } from '../family-registry.js';
import type { ReferenceStats } from '../reference/reference-stats.js';
import type { StatSeries } from '../reference/stat-series.js';
import { escapeMetricName, type MappedStat, type Mapper } from './mapper.js';
import { createObserver, type Observer } from './observers.js';

const HELP = 'A statistic of envoyproxy/ratelimit; see the mapping.';

type FamilyType = 'counter' | 'gauge' | 'histogram' | 'summary';

/** One set of labels of a family. */
interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  value: number;
  /** The reading that `value` belongs to. */
  reading: number;
}

/** What a statistic adds to, and its factor; null where it is left out. */
type Target = { readonly sample: Sample; readonly scale: number } | null;

class MappedFamily implements Family {
  readonly name: string;
  readonly type: FamilyType;
  readonly samples = new Map<string, Sample>();
  readonly observers = new Map<
    string,
    { readonly labels: Readonly<Record<string, string>>; readonly of: Observer }
  >();
  readonly #help: string;

  constructor(name: string, type: FamilyType, help: string) {
    this.name = name;
    this.type = type;
    this.#help = help;
  }

  get isEmpty(): boolean {
    for (const { of } of this.observers.values()) if (!of.isEmpty) return false;
    return this.samples.size === 0;
  }

  /** Forgets what no statistic adds to any more. */
  endReading(reading: number): void {
    for (const [key, sample] of this.samples) if (sample.reading !== reading) this.samples.delete(key);
  }

  get(): FamilyValues {
    const values: unknown[] = [];
    for (const { labels, value } of this.samples.values()) values.push({ labels, value });
    for (const { labels, of } of this.observers.values()) {
      if (!of.isEmpty) values.push(...of.values(this.name, labels));
    }
    // prom-client's type is an enum that it does not give away; its values are these words.
    return { name: this.name, help: this.#help, type: this.type, aggregator: 'sum', values } as never;
  }
}

export interface MappedMetricsOptions {
  readonly stats: ReferenceStats;
  readonly mapper: Mapper;
  /** Labels of every metric: EXTRA_TAGS. */
  readonly labels: readonly (readonly [string, string])[];
  /** Whether summaries show quantiles. */
  readonly quantiles: boolean;
  /** Milliseconds that only go forward. */
  readonly now: () => number;
}

/** The reference's statistics as metrics for Prometheus. Families may hold samples with different labels, as statsd_exporter's do. */
export class MappedMetrics {
  readonly #options: MappedMetricsOptions;
  readonly #labels: Readonly<Record<string, string>>;
  readonly #families = new Map<string, MappedFamily>();
  /** What each counter of a series adds to, found when it first counts. */
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

  /** Every family that has something to show, with the numbers of now. */
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
      // A counter cannot go down.
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
    const labels = { ...this.#labels, ...mapped.labels };
    const key = labelsKey(labels);
    let sample = family.samples.get(key);
    if (sample === undefined) {
      sample = { labels, value: 0, reading: 0 };
      family.samples.set(key, sample);
    }
    return { sample, scale: mapped.scale };
  }

  #observer(mapped: MappedStat): Observer | undefined {
    const family = this.#family(mapped, mapped.observer.kind);
    if (family === undefined) return undefined;
    const labels = { ...this.#labels, ...mapped.labels };
    const key = labelsKey(labels);
    let observer = family.observers.get(key);
    if (observer === undefined) {
      const { quantiles, now } = this.#options;
      observer = { labels, of: createObserver(mapped.observer, quantiles, now) };
      family.observers.set(key, observer);
    }
    return observer.of;
  }

  /** Undefined where the name belongs to another type already: the first one has it, as there. */
  #family({ name, help }: MappedStat, type: FamilyType): MappedFamily | undefined {
    let family = this.#families.get(name);
    if (family === undefined) {
      family = new MappedFamily(name, type, help === '' ? HELP : help);
      this.#families.set(name, family);
    }
    return family.type === type ? family : undefined;
  }
}

/** The same for the same labels, in whatever order rules of a mapping name them. */
function labelsKey(labels: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(labels).sort(([one], [other]) => (one < other ? -1 : 1)));
}
