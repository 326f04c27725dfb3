import { type Family, type Labels, seriesText, type TakeSample } from './family.js';
import type { LabelMeanings } from './label-meanings.js';

/**
 * Counts events whose labels have a few known values. BoundedCounters counts those with values that callers choose.
 * Without labels the counter starts at 0; with labels it has no series before the first event.
 */
export class EventCounter<Label extends string = never> implements Family {
  readonly name: string;
  readonly help: string;
  readonly type = 'counter';
  readonly aggregator = 'sum';
  readonly labels: LabelMeanings<Label>;
  /** Counts by the text of the series. */
  readonly #counts = new Map<string, number>();

  constructor(name: string, labels: LabelMeanings<Label>, help: string) {
    this.name = name;
    this.help = help;
    this.labels = labels;
    if (Object.keys(labels).length === 0) this.#counts.set(name, 0);
  }

  /** Adds `by`; 0 creates the series. `labels` must have the order of the constructor's labels. */
  inc(labels: Labels<Label>, by = 1): void {
    const series = seriesText(this.name, labels);
    this.#counts.set(series, (this.#counts.get(series) ?? 0) + by);
  }

  eachSample(take: TakeSample): void {
    for (const [series, count] of this.#counts) take(series, count);
  }
}
