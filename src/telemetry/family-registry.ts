import type { Registry } from '@prometheus-io/client';
import { EventCounter } from './event-counter.js';
import { type Family, type FamilyHead, familiesText, type Labels, readFamily, seriesText } from './family.js';
import type { LabelMeanings, MetricDescription } from './label-meanings.js';

/** Steps of reading metrics. Other work runs between two steps. The reader awaits each yielded promise. */
export type ReadSteps<Result> = Generator<'' | Promise<unknown>, Result>;

/** A metric that stores no values itself. `aggregator`: see {@link FamilyHead}; default: `sum`. */
type MetricOptions<Label extends string> = Pick<FamilyHead, 'name' | 'help'> &
  Partial<Pick<FamilyHead, 'aggregator'>> & { readonly labels?: LabelMeanings<Label> };
/** The value of a metric, or one value per series. */
type MetricValues<Label extends string> = number | Iterable<readonly [labels: Labels<Label>, value: number]>;

/** A metric of the Prometheus client. It has few series and is read at once. */
interface ClientMetric extends Pick<FamilyHead, 'name' | 'help' | 'type'> {
  get(): Promise<Family>;
}

/** All metrics of `/metrics`. */
export class FamilyRegistry {
  /** Metrics in the order in which they were added. */
  readonly #metrics: (ClientMetric | Family)[] = [];
  readonly #sources: (() => ReadSteps<readonly Family[]>)[] = [];

  addFamily(family: Family): void {
    this.#metrics.push(family);
  }

  /** Adds a gauge. Each scrape calls `values`. */
  gauge<Label extends string = never>(metric: MetricOptions<Label>, values: () => MetricValues<Label>): void {
    this.#show('gauge', metric, values);
  }

  /** Adds a counter. Each scrape calls `values` for its current count. */
  counter<Label extends string = never>(
    metric: MetricOptions<Label>,
    values: () => MetricValues<Label>,
  ): void {
    this.#show('counter', metric, values);
  }

  #show<Label extends string>(
    type: 'gauge' | 'counter',
    metric: MetricOptions<Label>,
    values: () => MetricValues<Label>,
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

  /** Adds a counter of events and returns it. */
  events<Label extends string>(
    name: string,
    labels: LabelMeanings<Label>,
    help: string,
  ): EventCounter<Label> {
    const counter = new EventCounter(name, labels, help);
    this.addFamily(counter);
    return counter;
  }

  /** Adds the metrics that are registered at the Prometheus client now. */
  addClient(client: Registry): void {
    for (const { name, help, type } of client.getMetricsAsArray()) {
      const get = async (): Promise<Family> => {
        const metric = client.getSingleMetric<string>(name);
        if (metric === undefined) throw new Error(`the metric ${name} was removed`);
        return readFamily(await metric.get());
      };
      this.#metrics.push({ name, help, type, get });
    }
  }

  /** Describes each metric, except those of sources. */
  describe(): readonly MetricDescription[] {
    return this.#metrics.map((one) => {
      const { name, type, help } = one;
      return { name, type, help, labels: ('labels' in one ? one.labels : undefined) ?? {} };
    });
  }

  /**
   * Adds a source of families. Each read calls `families`, and never two reads at the same time. A family whose name
   * exists already is left out.
   */
  addSource(families: () => ReadSteps<readonly Family[]>): void {
    this.#sources.push(families);
  }

  /** Reads all families. Only one read may run at a time, because sources have state while they are read. */
  *read(): ReadSteps<readonly Family[]> {
    const families: Family[] = [];
    const names = new Set<string>();
    const add = (family: Family): void => {
      if (names.has(family.name)) return;
      names.add(family.name);
      families.push(family);
    };
    for (const one of [...this.#metrics]) {
      if ('samples' in one) add(one);
      else yield one.get().then(add);
    }
    for (const source of this.#sources) for (const family of yield* source()) add(family);
    return families;
  }

  /** Yields all metrics in Prometheus' text format, in pieces. '' and promises as in {@link ReadSteps}. */
  *text(): Generator<string | Promise<unknown>, void> {
    yield* familiesText(yield* this.read());
  }

  /** Returns {@link text} as one string. */
  async metrics(): Promise<string> {
    let all = '';
    for (const piece of this.text()) {
      if (typeof piece === 'string') all += piece;
      else await piece;
    }
    return all;
  }
}

/** Yields the properties of `numbers` as series. The label `label` has the name of the property. */
export function* byName<Label extends string>(
  label: Label,
  numbers: object,
): Generator<readonly [Record<Label, string>, number]> {
  for (const [name, number] of Object.entries(numbers)) {
    yield [{ [label]: name } as Record<Label, string>, number as number];
  }
}
