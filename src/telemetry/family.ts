import type { MetricObjectWithValues, MetricValueWithName } from '@prometheus-io/client';
import type { LabelMeanings } from './label-meanings.js';

/** What an answer of `/metrics` says of one series: its name with its labels as they are written, and its number. */
export type Sample = readonly [series: string, value: number];

/** A metric, and how those of several processes become one. */
export interface FamilyHead {
  readonly name: string;
  readonly help: string;
  /** `counter`, `gauge`, `histogram` or `summary`. */
  readonly type: string;
  /**
   * A word of the Prometheus client: `sum`, `first`, `min`, `max`, `average`, or `omit` for what is nobody's but a
   * process's own.
   */
  readonly aggregator: string;
}

/** A metric that is read a sample at a time: nobody has to wait until all of it is put together. */
export interface Family extends FamilyHead {
  /** What its labels say; absent where it has none, or where others name them. */
  readonly labels?: LabelMeanings;
  /**
   * Numbers are those of the moment when each sample is taken; of one histogram all are taken at once. '' is a pause,
   * where many series were looked at that show nothing.
   */
  samples(): Iterable<Sample | ''>;
}

/** The labels of a series, in the order in which they are written. */
export type Labels<Label extends string = string> = Readonly<Record<Label, string | number>>;

const ESCAPED = /[\\\n"]/;

/** A label's value as the text format has it. */
export function escapeLabel(value: string): string {
  if (!ESCAPED.test(value)) return value;
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

/** `name{label="value",…}`. */
export function seriesText(name: string, labels: Labels): string {
  let text = '';
  for (const [label, value] of Object.entries(labels)) text += `,${label}="${escapeLabel(String(value))}"`;
  return text === '' ? name : `${name}{${text.slice(1)}}`;
}

/** A number as the Prometheus client writes it. */
export function valueText(value: number): string {
  if (Number.isNaN(value)) return 'Nan';
  if (Number.isFinite(value)) return String(value);
  return value < 0 ? '-Inf' : '+Inf';
}

function escapeText(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

/** Families in Prometheus' text format, a line or a few at a time, byte by byte as its client writes them. */
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

/** A metric of the Prometheus client as it was read. */
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
