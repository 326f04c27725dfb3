import { type Metric, type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client';
import { type Family, familiesText, readFamily } from './family.js';
import type { LabelMeanings, MetricDescription } from './label-meanings.js';

/** Reading takes steps: between them others have their turn. A promise is to be waited for. */
export type ReadSteps<Result> = Generator<'' | Promise<unknown>, Result>;

type AnyMetric = Metric<string>;

/**
 * A registry that also holds metrics that are not prom-client's: those that count on the hot path, those of many
 * series, and those whose names are not known before. prom-client's own are read at once: they are to have a handful of
 * series.
 */
export class FamilyRegistry extends Registry {
  readonly #inOrder: (AnyMetric | Family)[] = [];
  readonly #sources: (() => ReadSteps<readonly Family[]>)[] = [];
  /** Of prom-client's metrics. */
  readonly #labels = new Map<string, LabelMeanings>();

  addFamily(family: Family): void {
    this.#inOrder.push(family);
  }

  /** Says what the labels of a metric of prom-client's mean. Returns their names, for its constructor. */
  labels<Label extends string>(metric: string, meanings: LabelMeanings<Label>): Label[] {
    this.#labels.set(metric, meanings);
    return Object.keys(meanings) as Label[];
  }

  /** What each metric is, but for those of sources. */
  describe(): readonly MetricDescription[] {
    return this.#inOrder.map((one) => {
      const { name, type, help } = one as unknown as Omit<MetricDescription, 'labels'>;
      const labels = 'samples' in one ? one.labels : this.#labels.get(name);
      return { name, type, help, labels: labels ?? {} };
    });
  }

  /** `families` is asked whenever metrics are, once at a time. One whose name is taken is left out. */
  addSource(families: () => ReadSteps<readonly Family[]>): void {
    this.#sources.push(families);
  }

  /** Called by every metric of prom-client's. */
  override registerMetric<T extends string>(metric: Metric<T>): void {
    super.registerMetric(metric);
    const own = metric as unknown as AnyMetric;
    if (!this.#inOrder.includes(own)) this.#inOrder.push(own);
  }

  override removeSingleMetric(name: string): void {
    super.removeSingleMetric(name);
    const at = this.#inOrder.findIndex((one) => nameOf(one) === name);
    if (at !== -1) this.#inOrder.splice(at, 1);
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
    for (const one of [...this.#inOrder]) {
      if ('samples' in one) add(one);
      else yield readMetric(one).then((read) => add(readFamily(read)));
    }
    for (const source of this.#sources) for (const family of yield* source()) add(family);
    return families;
  }

  /** All of it in Prometheus' text format, in pieces; '' and promises as in {@link ReadSteps}. */
  *text(): Generator<string | Promise<unknown>, void> {
    yield* familiesText(yield* this.read());
  }

  /** {@link text} as a whole. */
  override async metrics(): Promise<string> {
    let all = '';
    for (const piece of this.text()) {
      if (typeof piece === 'string') all += piece;
      else await piece;
    }
    return all;
  }
}

function nameOf(metric: AnyMetric | Family): string {
  return (metric as unknown as { readonly name: string }).name;
}

async function readMetric(metric: AnyMetric): Promise<MetricObjectWithValues<MetricValue<string>>> {
  // The text form of a histogram shares its labels, which is less work.
  const forText = metric as unknown as { getForPromString?: () => Promise<unknown> };
  const read = await (forText.getForPromString === undefined ? metric.get() : forText.getForPromString());
  return read as MetricObjectWithValues<MetricValue<string>>;
}
