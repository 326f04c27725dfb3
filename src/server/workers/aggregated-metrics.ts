import type { ViewSlices } from '../../http/views/view-slices.js';
import type { Family, FamilyHead, Sample } from '../../telemetry/family.js';
import type { ReadSteps } from '../../telemetry/family-registry.js';

/** Number of samples that are added up in one slice. */
const SLICE = 64;

/** Returns the metrics that must not decrease when a process exits. Gauges describe a running process only. */
function counting(metrics: readonly Family[]): readonly Family[] {
  return metrics.filter(({ type }) => type === 'counter' || type === 'histogram');
}

/** Adds up the metrics of several processes, including those that have exited. */
export class AggregatedMetrics {
  readonly #slices: ViewSlices;
  #ended: readonly Family[] = [];
  /**
   * Metrics of exited processes that are not in the sum yet. Several processes may exit at once, and adding up takes
   * several turns of the event loop.
   */
  #ending: (readonly Family[])[] = [];
  #adding: Promise<void> | undefined;

  constructor(slices: ViewSlices) {
    this.#slices = slices;
  }

  /** Keeps the last known counters of a process that has exited. */
  keep(last: readonly Family[]): Promise<void> {
    this.#ending.push(counting(last));
    this.#adding ??= this.#add().finally(() => {
      this.#adding = undefined;
    });
    return this.#adding;
  }

  /** Returns the sum. Names and help texts are taken from the first of `processes`. */
  sum(processes: readonly (readonly Family[])[]): ReadSteps<readonly Family[]> {
    return sumOf([...processes, this.#ended, ...this.#ending]);
  }

  async #add(): Promise<void> {
    while (this.#ending.length > 0) {
      const added = [...this.#ending];
      const ended = await this.#slices.run(sumOf([this.#ended, ...added]));
      this.#ended = ended;
      this.#ending = this.#ending.slice(added.length);
    }
  }
}

/** A metric family of several processes. */
class SumFamily implements Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly aggregator: string;
  /** Sum, and number of processes that have the series, by the text of the series. */
  readonly #sums = new Map<string, { value: number; count: number }>();

  constructor({ name, help, type, aggregator }: FamilyHead) {
    this.name = name;
    this.help = help;
    this.type = type;
    this.aggregator = aggregator;
  }

  add([series, value]: Sample): void {
    const sum = this.#sums.get(series);
    if (sum === undefined) {
      this.#sums.set(series, { value, count: 1 });
      return;
    }
    sum.count++;
    if (this.aggregator === 'sum' || this.aggregator === 'average') sum.value += value;
    else if (this.aggregator === 'min') sum.value = Math.min(sum.value, value);
    else if (this.aggregator === 'max') sum.value = Math.max(sum.value, value);
  }

  *samples(): Generator<Sample> {
    const averages = this.aggregator === 'average';
    for (const [series, { value, count }] of this.#sums) yield [series, averages ? value / count : value];
  }
}

function* sumOf(processes: readonly (readonly Family[])[]): ReadSteps<readonly SumFamily[]> {
  const families = new Map<string, SumFamily>();
  let added = 0;
  for (const metrics of processes) {
    for (const one of metrics) {
      if (one.aggregator === 'omit') continue;
      let family = families.get(one.name);
      if (family === undefined) {
        family = new SumFamily(one);
        families.set(one.name, family);
      }
      for (const sample of one.samples()) {
        if (sample === '') {
          yield '';
          continue;
        }
        family.add(sample);
        if (++added % SLICE === 0) yield '';
      }
    }
  }
  return [...families.values()];
}
