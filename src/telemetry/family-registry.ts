import type { Registry } from '@prometheus-io/client';
import { EventCounter } from './event-counter.js';
import { type Family, type FamilyHead, familiesText, type Labels, readFamily, seriesText } from './family.js';
import type { LabelMeanings, MetricDescription } from './label-meanings.js';

/** A metric that stores no values itself. `aggregator`: see {@link FamilyHead}; default: `sum`. */
type MetricOptions<Label extends string> = Pick<FamilyHead, 'name' | 'help'> &
  Partial<Pick<FamilyHead, 'aggregator'>> & { readonly labels?: LabelMeanings<Label> };
/** The value of a metric, or one value per series. */
type MetricValues<Label extends string> = number | Iterable<readonly [labels: Labels<Label>, value: number]>;

/** A metric of the Prometheus client. */
interface ClientMetric extends Pick<FamilyHead, 'name' | 'help' | 'type'> {
  get(): Promise<Family>;
}

/** All metrics of `/metrics`. */
export class FamilyRegistry {
  /** Metrics in the order in which they were added. */
  readonly #metrics: (ClientMetric | Family)[] = [];
  readonly #sources: (() => readonly Family[])[] = [];

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
      eachSample(take) {
        const read = values();
        if (typeof read === 'number') take(name, read);
        else for (const [labels, value] of read) take(seriesText(name, labels), value);
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

  /** Adds a source of families. Each read calls `families`. A family whose name exists already is left out. */
  addSource(families: () => readonly Family[]): void {
    this.#sources.push(families);
  }

  /** Reads all families. Their samples are current when they are taken. */
  async read(): Promise<readonly Family[]> {
    const metrics = await Promise.all(this.#metrics.map((one) => ('eachSample' in one ? one : one.get())));
    const families = new Map<string, Family>();
    for (const family of [...metrics, ...this.#sources.flatMap((source) => source())]) {
      if (!families.has(family.name)) families.set(family.name, family);
    }
    return [...families.values()];
  }

  /** Returns all metrics in Prometheus' text format. */
  async text(): Promise<Buffer> {
    return familiesText(await this.read());
  }
}

/** Returns the properties of `numbers` as series. The label `label` has the name of the property. */
export function byName<Label extends string>(
  label: Label,
  numbers: object,
): readonly (readonly [Record<Label, string>, number])[] {
  return Object.entries(numbers).map(([name, number]) => [
    { [label]: name } as Record<Label, string>,
    number as number,
  ]);
}
