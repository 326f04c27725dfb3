import { type Family, type Labels, type Sample, seriesText } from './family.js';
import type { LabelMeanings } from './label-meanings.js';

/**
 * Counts events whose labels have a handful of values; those that callers choose are for BoundedCounters. Without
 * labels it shows 0 until something is counted, with labels no series.
 */
export class EventCounter<Label extends string = never> implements Family {
  readonly name: string;
  readonly help: string;
  readonly type = 'counter';
  readonly aggregator = 'sum';
  readonly labels: LabelMeanings<Label>;
  /** By the text of the series. */
  readonly #counts = new Map<string, number>();

  constructor(name: string, labels: LabelMeanings<Label>, help: string) {
    this.name = name;
    this.help = help;
    this.labels = labels;
    if (Object.keys(labels).length === 0) this.#counts.set(name, 0);
  }

  /** Adds `by`; 0 shows the series. `labels` are in the order of those that the constructor got. */
  inc(labels: Labels<Label>, by = 1): void {
    const series = seriesText(this.name, labels);
    this.#counts.set(series, (this.#counts.get(series) ?? 0) + by);
  }

  samples(): Iterable<Sample> {
    return this.#counts;
  }
}
