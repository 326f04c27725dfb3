import type { MetricObjectWithValues, MetricValueWithName } from '@prometheus-io/client';

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
export type Labels<Label extends string = string> = Readonly<Record<Label, string | number>>;

const ESCAPED = /[\\\n"]/;

/** Escapes a label value for the text format. */
export function escapeLabel(value: string): string {
  if (!ESCAPED.test(value)) return value;
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

/** Returns `name{label="value",…}`. */
export function seriesText(name: string, labels: Labels): string {
  let text = '';
  for (const [label, value] of Object.entries(labels)) text += `,${label}="${escapeLabel(String(value))}"`;
  return text === '' ? name : `${name}{${text.slice(1)}}`;
}

/** Formats a value like the Prometheus client. */
export function valueText(value: number): string {
  if (Number.isNaN(value)) return 'Nan';
  if (Number.isFinite(value)) return String(value);
  return value < 0 ? '-Inf' : '+Inf';
}

function escapeText(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

/** Returns families in Prometheus' text format. The bytes are the same as those of the Prometheus client. */
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

/** Returns the family of a metric that was read from the Prometheus client. */
export function readFamily(read: MetricObjectWithValues<MetricValueWithName<string>>): Family {
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

  /** Returns the whole text. */
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
