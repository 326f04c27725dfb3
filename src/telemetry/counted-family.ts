import type { BoundedCounters } from './bounded-counters.js';
import { escapeLabel, type Family, type Sample } from './family.js';
import type { LabelMeanings } from './label-meanings.js';

/** So many series that show nothing are looked at in one go. */
const SLICE = 64;

export interface CountedFamilyOptions {
  readonly name: string;
  readonly help: string;
  /**
   * Names of the labels that the first and the second name of a series stand under; one alone where there is no second.
   */
  readonly labels: readonly [string] | readonly [string, string];
  /** What these labels, and those that {@link numbers} adds, say. */
  readonly meanings: LabelMeanings;
  readonly counts: BoundedCounters;
  /** What is shown of the values of a series: further labels as they are written, or '', and a number. */
  numbers(values: readonly number[]): Iterable<readonly [labels: string, value: number]>;
}

/**
 * A counter whose numbers live in {@link BoundedCounters}, which are read one series after the other when somebody
 * asks.
 */
export function countedFamily(options: CountedFamilyOptions): Family {
  const { name, help, counts, numbers, meanings } = options;
  const [first, second] = options.labels;
  return {
    name,
    help,
    type: 'counter',
    aggregator: 'sum',
    labels: meanings,
    *samples(): Generator<Sample | ''> {
      let looked = 0;
      for (const [one, other, values] of counts.entries()) {
        let series = `${name}{${first}="${escapeLabel(one)}"`;
        if (second !== undefined) series += `,${second}="${escapeLabel(other)}"`;
        for (const [labels, value] of numbers(values)) {
          yield [labels === '' ? `${series}}` : `${series},${labels}}`, value];
        }
        if (++looked % SLICE === 0) yield '';
      }
    },
  };
}
