import { type MetricObject, Registry } from '@prometheus-io/client';
import { type Family, type FamilyHead, familiesText, readFamily, seriesText } from './family.js';
import type { LabelMeanings, MetricDescription } from './label-meanings.js';

/** Reading takes steps: between them others have their turn. A promise is to be waited for. */
export type ReadSteps<Result> = Generator<'' | Promise<unknown>, Result>;

/** A metric without a memory of its own. `aggregator`: see {@link FamilyHead}; `sum` where it is absent. */
type ShownMetric<Label extends string> = Pick<FamilyHead, 'name' | 'help'> &
  Partial<Pick<FamilyHead, 'aggregator'>> & { readonly labels?: LabelMeanings<Label> };
/** The number of a metric, or one for each of its series. */
type ShownValues<Label extends string> =
  | number
  | Iterable<readonly [labels: Readonly<Record<Label, string>>, value: number]>;

/**
 * Everything that `/metrics` shows: the metrics of the Prometheus client, and families. Families count on the hot path,
 * have many series, or have names that are not known before. A metric of the client is read in one go, so it must have
 * only a handful of series.
 */
export class FamilyRegistry {
  /** Where metrics of the Prometheus client register. None may be removed once a family was added. */
  readonly client = new Registry();
  readonly #inOrder: (MetricObject | Family)[] = [];
  readonly #sources: (() => ReadSteps<readonly Family[]>)[] = [];
  /** The labels of the client's metrics, by the name of the metric. */
  readonly #labels = new Map<string, LabelMeanings>();

  addFamily(family: Family): void {
    this.#all().push(family);
  }

  /** Shows what `values` says whenever metrics are asked for. */
  gauge<Label extends string = never>(metric: ShownMetric<Label>, values: () => ShownValues<Label>): void {
    this.#show('gauge', metric, values);
  }

  /** Shows what `values` has counted by the time that metrics are asked for. */
  counter<Label extends string = never>(metric: ShownMetric<Label>, values: () => ShownValues<Label>): void {
    this.#show('counter', metric, values);
  }

  #show<Label extends string>(
    type: 'gauge' | 'counter',
    metric: ShownMetric<Label>,
    values: () => ShownValues<Label>,
  ): void {
    const { name } = metric;
    this.addFamily({
      aggregator: 'sum',
      ...metric,
      type,
      *samples() {
        const read = values();
        if (typeof read === 'number') yield [name, read];
        else for (const [labels, value] of read) yield [seriesText(name, labels), value];
      },
    });
  }

  /** Says what the labels of a metric of the client mean. Returns their names, for its constructor. */
  labels<Label extends string>(metric: string, meanings: LabelMeanings<Label>): Label[] {
    this.#labels.set(metric, meanings);
    return Object.keys(meanings) as Label[];
  }

  /** What each metric is, but for those of sources. */
  describe(): readonly MetricDescription[] {
    return this.#all().map((one) => {
      const { name, type, help } = one;
      const labels = 'samples' in one ? one.labels : this.#labels.get(name);
      return { name, type, help, labels: labels ?? {} };
    });
  }

  /** `families` is asked whenever metrics are, once at a time. One whose name is taken is left out. */
  addSource(families: () => ReadSteps<readonly Family[]>): void {
    this.#sources.push(families);
  }

  /** Every family there is now. Not to be begun again before it has ended: sources count while they are read. */
  *read(): ReadSteps<readonly Family[]> {
    const families: Family[] = [];
    const names = new Set<string>();
    const add = (family: Family): void => {
      if (names.has(family.name)) return;
      names.add(family.name);
      families.push(family);
    };
    for (const one of [...this.#all()]) {
      if ('samples' in one) add(one);
      else yield this.#read(one.name).then(add);
    }
    for (const source of this.#sources) for (const family of yield* source()) add(family);
    return families;
  }

  /** All of it in Prometheus' text format, in pieces; '' and promises as in {@link ReadSteps}. */
  *text(): Generator<string | Promise<unknown>, void> {
    yield* familiesText(yield* this.read());
  }

  /** {@link text} as a whole. */
  async metrics(): Promise<string> {
    let all = '';
    for (const piece of this.text()) {
      if (typeof piece === 'string') all += piece;
      else await piece;
    }
    return all;
  }

  /** The client's metrics and families, in the order in which they were added. */
  #all(): (MetricObject | Family)[] {
    for (const metric of this.client.getMetricsAsArray()) {
      if (!this.#inOrder.includes(metric)) this.#inOrder.push(metric);
    }
    return this.#inOrder;
  }

  async #read(name: string): Promise<Family> {
    const metric = this.client.getSingleMetric<string>(name);
    if (metric === undefined) throw new Error(`the metric ${name} was removed`);
    return readFamily(await metric.get());
  }
}
