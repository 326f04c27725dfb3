import type { MetricObjectWithValues, MetricValueWithName, Registry } from '@prometheus-io/client';
import type { BoundedCounters } from './bounded-counters.js';
import { FAMILIES, type FamilyDescription, type FamilyName, type LabelOf } from './families.js';

/** Takes a sample of `/metrics`: the name with its labels in text format, and the value. */
export type TakeSample = (series: string, value: number) => void;

/** Properties of a metric, and how the values of several processes are aggregated. */
export interface FamilyHead {
  readonly name: string;
  readonly help: string;
  /** `counter`, `gauge`, `histogram` or `summary`. */
  readonly type: string;
  /**
   * Aggregator of the Prometheus client: `sum`, `first`, `min`, `max`, `average`, or `omit` for metrics of one process
   * only.
   */
  readonly aggregator: string;
}

export interface Family extends FamilyHead {
  /** Passes the current samples to `take`, without storing them, because a metric may have 100,000 series. */
  eachSample(take: TakeSample): void;
}

/** A metric that stores its values. */
export abstract class StoredFamily implements Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly aggregator: string;

  constructor({ name, help, type, aggregator }: FamilyHead) {
    this.name = name;
    this.help = help;
    this.type = type;
    this.aggregator = aggregator;
  }

  abstract eachSample(take: TakeSample): void;
}

/** Labels of a series, in the order of the text format. */
type Labels<Label extends string = string> = Readonly<Record<Label, string | number>>;

const ESCAPED = /[\\\n"]/;

function escapeLabel(value: string): string {
  if (!ESCAPED.test(value)) return value;
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

/** Formats a series: `name{label="value",…}`. */
export function seriesText(name: string, labels: Labels): string {
  let text = '';
  for (const [label, value] of Object.entries(labels)) text += `,${label}="${escapeLabel(String(value))}"`;
  return text === '' ? name : `${name}{${text.slice(1)}}`;
}

/** Formats a value like the Prometheus client. */
function valueText(value: number): string {
  if (Number.isNaN(value)) return 'Nan';
  if (Number.isFinite(value)) return String(value);
  return value < 0 ? '-Inf' : '+Inf';
}

function escapeText(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

/** Families in Prometheus' text format. The bytes are the same as those of the Prometheus client. */
export function familiesText(families: Iterable<Family>): Buffer {
  const text = new TextBuffer();
  let between = '';
  for (const family of families) {
    const name = escapeText(family.name);
    text.add(`${between}# HELP ${name} ${escapeText(family.help)}\n# TYPE ${name} ${family.type}`);
    between = '\n\n';
    family.eachSample((series, value) => text.add(`\n${series} ${valueText(value)}`));
  }
  text.add('\n');
  return text.end();
}

function readFamily(read: MetricObjectWithValues<MetricValueWithName<string>>): Family {
  const { name, help, type, aggregator, values } = read;
  return {
    name,
    help,
    type,
    aggregator,
    eachSample(take) {
      for (const { metricName = name, labels, value } of values) {
        take(seriesText(metricName, labels as Labels), value);
      }
    },
  };
}

/** Number of characters that are encoded together. */
const CHUNK = 4096;
/** Maximum bytes of a UTF-16 unit in UTF-8. */
const MAX_UNIT_BYTES = 3;

/**
 * A long text, encoded in UTF-8 while it grows, so that its lines are short-lived garbage. One string of the whole
 * text, or a list of its lines, takes two to three times as long, because the garbage collector copies them.
 */
class TextBuffer {
  #bytes = Buffer.allocUnsafeSlow(64 * 1024);
  #length = 0;
  #chunk = '';

  add(text: string): void {
    this.#chunk += text;
    if (this.#chunk.length >= CHUNK) this.#encode();
  }

  end(): Buffer {
    this.#encode();
    return this.#bytes.subarray(0, this.#length);
  }

  #encode(): void {
    const chunk = this.#chunk;
    const needed = this.#length + chunk.length * MAX_UNIT_BYTES;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    this.#length += this.#bytes.write(chunk, this.#length);
    this.#chunk = '';
  }
}

/** The value of a metric, or one value per series. */
type MetricValues<Label extends string> = number | Iterable<readonly [labels: Labels<Label>, value: number]>;

/**
 * Returns samples from the values of a series: further labels in text format, or '', with a number. A histogram adds
 * the suffix of its name.
 */
export type SeriesNumbers = (
  values: readonly number[],
) => Iterable<readonly [labels: string, value: number, suffix?: string]>;

/** A metric of the Prometheus client. */
interface ClientMetric extends Pick<FamilyHead, 'name' | 'help' | 'type'> {
  get(): Promise<Family>;
}

/** The properties of a metric of families.ts, whose default aggregator is `sum`. */
export function headOf(name: FamilyName): FamilyHead {
  const { type, help, aggregator = 'sum' }: FamilyDescription = FAMILIES[name];
  return { name, help, type, aggregator };
}

/** All metrics of `/metrics`. */
export class FamilyRegistry {
  /** Metrics in the order in which they were added. */
  readonly #metrics: (ClientMetric | Family)[] = [];
  readonly #sources: (() => readonly Family[])[] = [];

  addFamily(family: Family): void {
    this.#metrics.push(family);
  }

  /** Adds a gauge, or a counter that stores no count. Each scrape calls `values`. */
  show<Name extends FamilyName>(name: Name, values: () => MetricValues<LabelOf<Name>>): void {
    this.addFamily(sampledFamily(headOf(name), values));
  }

  /** Adds a counter of events and returns it. */
  events<Name extends FamilyName>(name: Name): EventCounter<LabelOf<Name>> {
    const counter = new EventCounter<LabelOf<Name>>(headOf(name), 'labels' in FAMILIES[name]);
    this.addFamily(counter);
    return counter;
  }

  /** Adds a metric whose values are stored in `counts`, with one or two labels. `numbers` may add others. */
  counted(name: FamilyName, counts: BoundedCounters, numbers: SeriesNumbers): void {
    const { labels = {} }: FamilyDescription = FAMILIES[name];
    this.addFamily(countedFamily(headOf(name), Object.keys(labels), counts, numbers));
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

  async text(): Promise<Buffer> {
    return familiesText(await this.read());
  }
}

/** Returns a metric that stores no values itself. */
export function sampledFamily<Label extends string>(
  head: FamilyHead,
  values: () => MetricValues<Label>,
): Family {
  return {
    ...head,
    eachSample(take) {
      const read = values();
      if (typeof read === 'number') take(head.name, read);
      else for (const [labels, value] of read) take(seriesText(head.name, labels), value);
    },
  };
}

/** Returns a counter or histogram whose values are stored in `counts`. Series have up to the first two labels. */
export function countedFamily(
  head: FamilyHead,
  [first = '', second]: readonly string[],
  counts: BoundedCounters,
  numbers: SeriesNumbers,
): Family {
  return {
    ...head,
    eachSample(take) {
      let known = '';
      let escaped = '';
      counts.forEach((one, other, values) => {
        // Series with the same first label follow each other.
        if (one !== known) {
          known = one;
          escaped = escapeLabel(one);
        }
        let series = `{${first}="${escaped}"`;
        if (second !== undefined) series += `,${second}="${escapeLabel(other)}"`;
        for (const [labels, value, suffix = ''] of numbers(values)) {
          const all = labels === '' ? `${series}}` : `${series},${labels}}`;
          take(`${head.name}${suffix}${all}`, value);
        }
      });
    },
  };
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

/**
 * Counts events whose labels have a few known values. BoundedCounters counts those with values that callers choose.
 * Without labels the counter starts at 0; with labels it has no series before the first event.
 */
export class EventCounter<Label extends string = never> extends StoredFamily {
  /** Counts by the text of the series. */
  readonly #counts = new Map<string, number>();

  constructor(head: FamilyHead, hasLabels: boolean) {
    super(head);
    if (!hasLabels) this.#counts.set(head.name, 0);
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

/**
 * A histogram without labels. An observation costs a short search and three additions, a hundredth of the cost of the
 * Prometheus client's.
 */
export class DurationHistogram extends StoredFamily {
  readonly #buckets: BucketCounts;

  /** @param bounds upper bounds of the buckets in seconds, ascending */
  constructor(head: FamilyHead, bounds: readonly number[]) {
    super(head);
    this.#buckets = new BucketCounts(bounds);
  }

  observe(seconds: number): void {
    this.#buckets.observe(seconds);
  }

  eachSample(take: TakeSample): void {
    this.#buckets.eachSample(this.name, {}, take);
  }
}

/** Data of a histogram: the number of values in each bucket, and their sum. */
export class BucketCounts {
  readonly #bounds: readonly number[];
  /** Number of values of each bucket, not cumulative. The last bucket has no upper bound. */
  readonly #counts: number[];
  #sum = 0;
  /** Whether no value was observed yet. */
  isEmpty = true;

  /** @param bounds upper bounds of the buckets, ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    this.isEmpty = false;
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at++;
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.#sum += value;
  }

  eachSample(name: string, labels: Readonly<Record<string, string>>, take: TakeSample): void {
    let below = 0;
    const bucket = `${name}_bucket`;
    for (const [at, le] of this.#bounds.entries()) {
      below += this.#counts[at] as number;
      take(seriesText(bucket, { le, ...labels }), below);
    }
    const count = below + (this.#counts[this.#bounds.length] as number);
    take(seriesText(bucket, { le: '+Inf', ...labels }), count);
    take(seriesText(`${name}_sum`, labels), this.#sum);
    take(seriesText(`${name}_count`, labels), count);
  }
}
