import type { MetricObjectWithValues, MetricValueWithName } from '@prometheus-io/client';
import type { LabelMeanings } from './label-meanings.js';

/** A sample of `/metrics`: the name with its labels in text format, and the value. */
export type Sample = readonly [series: string, value: number];

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

/** A metric that is read one sample at a time, so that a large metric does not block the event loop. */
export interface Family extends FamilyHead {
  /** Meanings of the labels; undefined for a metric without labels, or with labels that another file describes. */
  readonly labels?: LabelMeanings;
  /**
   * Yields the samples. Each value is current when it is yielded; the samples of a histogram are a consistent snapshot.
   * '' is a pause after many series without a sample.
   */
  samples(): Iterable<Sample | ''>;
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

/** Yields families in Prometheus' text format, in pieces. The bytes are the same as those of the Prometheus client. */
export function* familiesText(families: Iterable<Family>): Generator<string> {
  let first = true;
  for (const family of families) {
    const name = escapeText(family.name);
    const between = first ? '' : '\n\n';
    first = false;
    yield `${between}# HELP ${name} ${escapeText(family.help)}\n# TYPE ${name} ${family.type}`;
    for (const sample of family.samples()) {
      yield sample === '' ? '' : `\n${sample[0]} ${valueText(sample[1])}`;
    }
  }
  yield '\n';
}

/** Returns the family of a metric that was read from the Prometheus client. */
export function readFamily(read: MetricObjectWithValues<MetricValueWithName<string>>): Family {
  const { name, help, type, aggregator, values } = read;
  return {
    name,
    help,
    type,
    aggregator,
    *samples() {
      for (const { metricName = name, labels, value } of values) {
        yield [seriesText(metricName, labels as Labels), value];
      }
    },
  };
}
