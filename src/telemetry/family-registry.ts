import type { Registry } from '@prometheus-io/client';
import { EventCounter } from './event-counter.js';
import { type Family, type FamilyHead, familiesText, type Labels, readFamily, seriesText } from './family.js';
import type { LabelMeanings, MetricDescription } from './label-meanings.js';

/** Reading takes steps: between them others have their turn. A promise is to be waited for. */
export type ReadSteps<Result> = Generator<'' | Promise<unknown>, Result>;

/** A metric without a memory of its own. `aggregator`: see {@link FamilyHead}; `sum` where it is absent. */
type ShownMetric<Label extends string> = Pick<FamilyHead, 'name' | 'help'> &
  Partial<Pick<FamilyHead, 'aggregator'>> & { readonly labels?: LabelMeanings<Label> };
/** The number of a metric, or one for each of its series. */
type ShownValues<Label extends string> = number | Iterable<readonly [labels: Labels<Label>, value: number]>;

/** A metric of the Prometheus client, which is read in one go: it has only a handful of series. */
interface ClientMetric extends Pick<FamilyHead, 'name' | 'help' | 'type'> {
  get(): Promise<Family>;
}

/** Everything that `/metrics` shows. */
export class FamilyRegistry {
  /** In the order in which they were added. */
  readonly #metrics: (ClientMetric | Family)[] = [];
  readonly #sources: (() => ReadSteps<readonly Family[]>)[] = [];

  addFamily(family: Family): void {
    this.#metrics.push(family);
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

  /** Shows the events that the result counts. */
  events<Label extends string>(
    name: string,
    labels: LabelMeanings<Label>,
    help: string,
  ): EventCounter<Label> {
    const counter = new EventCounter(name, labels, help);
    this.addFamily(counter);
    return counter;
  }

  /** Adds what is registered at the Prometheus client now. */
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

  /** What each metric is, but for those of sources. */
  describe(): readonly MetricDescription[] {
    return this.#metrics.map((one) => {
      const { name, type, help } = one;
      return { name, type, help, labels: ('labels' in one ? one.labels : undefined) ?? {} };
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
    for (const one of [...this.#metrics]) {
      if ('samples' in one) add(one);
      else yield one.get().then(add);
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
}

/** Numbers by their names, as series whose `label` is the name. */
export function* byName<Label extends string>(
  label: Label,
  numbers: object,
): Generator<readonly [Record<Label, string>, number]> {
  for (const [name, number] of Object.entries(numbers)) {
    yield [{ [label]: name } as Record<Label, string>, number as number];
  }
}
