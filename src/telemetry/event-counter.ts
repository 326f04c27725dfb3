import { type Family, type FamilyHead, type Labels, seriesText, type TakeSample } from './family.js';

/**
 * Counts events whose labels have a few known values. BoundedCounters counts those with values that callers choose.
 * Without labels the counter starts at 0; with labels it has no series before the first event.
 */
export class EventCounter<Label extends string = never> implements Family {
  readonly name: string;
  readonly help: string;
  readonly type = 'counter';
  readonly aggregator = 'sum';
  /** Counts by the text of the series. */
  readonly #counts = new Map<string, number>();

  constructor({ name, help }: Pick<FamilyHead, 'name' | 'help'>, hasLabels: boolean) {
    this.name = name;
    this.help = help;
    if (!hasLabels) this.#counts.set(name, 0);
  }

  /** Adds `by`; 0 creates the series. `labels` must have the order of the labels in families.ts. */
  inc(labels: Labels<Label>, by = 1): void {
    const series = seriesText(this.name, labels);
    this.#counts.set(series, (this.#counts.get(series) ?? 0) + by);
  }

  eachSample(take: TakeSample): void {
    for (const [series, count] of this.#counts) take(series, count);
  }
}
