import { type Metric, type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client';

/** A metric as prom-client shows it and adds it up over processes. Its values may differ in the names of their labels. */
export type FamilyValues = MetricObjectWithValues<MetricValue<string>>;

/** A metric that keeps its own numbers. */
export interface Family {
  readonly name: string;
  get(): FamilyValues;
}

/** A registry that also holds metrics that are not prom-client's: those that count on the hot path, and those whose names are not known before. */
export class FamilyRegistry extends Registry {
  readonly #families: Family[] = [];
  readonly #sources: (() => readonly Family[])[] = [];

  addFamily(family: Family): void {
    this.#families.push(family);
  }

  /** `families` is asked whenever metrics are. One whose name is taken is left out. */
  addSource(families: () => readonly Family[]): void {
    this.#sources.push(families);
  }

  /** Called by everything that shows metrics. */
  override getMetricsAsArray(): ReturnType<Registry['getMetricsAsArray']> {
    const known: { readonly name: string }[] = [...super.getMetricsAsArray(), ...this.#families] as {
      readonly name: string;
    }[];
    const names = new Set(known.map(({ name }) => name));
    for (const source of this.#sources) {
      for (const family of source()) {
        if (names.has(family.name)) continue;
        names.add(family.name);
        known.push(family);
      }
    }
    // prom-client only calls `get` and reads `name` of what stands here.
    return known as unknown as Metric<string>[] as unknown as ReturnType<Registry['getMetricsAsArray']>;
  }
}
