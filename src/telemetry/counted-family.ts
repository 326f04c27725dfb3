import { BoundedCounters, type SeriesBudget } from './bounded-counters.js';
import { escapeLabel, type Family } from './family.js';
import type { FamilyRegistry } from './family-registry.js';
import { DOMAIN, type LabelMeanings, RULE } from './label-meanings.js';

export interface CountedFamilyOptions {
  readonly name: string;
  readonly help: string;
  /** Default: `counter`. */
  readonly type?: 'counter' | 'histogram';
  /** Names of the labels for the two parts of a series' name, or of one label. */
  readonly labels: readonly [string] | readonly [string, string];
  /** Meanings of these labels, and of those that {@link numbers} adds. */
  readonly meanings: LabelMeanings;
  readonly counts: BoundedCounters;
  /**
   * Returns samples from the values of a series: further labels in text format, or '', with a number. A histogram adds
   * the suffix of its name.
   */
  numbers(values: readonly number[]): Iterable<readonly [labels: string, value: number, suffix?: string]>;
}

/** Returns a counter or histogram whose values are stored in {@link BoundedCounters}. */
export function countedFamily(options: CountedFamilyOptions): Family {
  const { name, help, type = 'counter', counts, numbers, meanings } = options;
  const [first, second] = options.labels;
  return {
    name,
    help,
    type,
    aggregator: 'sum',
    labels: meanings,
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
          take(`${name}${suffix}${all}`, value);
        }
      });
    },
  };
}

/** Counts an event of a rule in one of the numbers of its series. */
export type RuleCounter = (domain: string, rule: string, slot: number) => void;

/**
 * Adds a counter by domain and rule to the registry. `meanings` are those of further labels.
 *
 * @param limit number of series by rule
 * @param slots numbers of each series
 */
export function countedByRule(
  registry: FamilyRegistry,
  limit: SeriesBudget,
  slots: number,
  {
    meanings = {},
    ...rest
  }: Pick<CountedFamilyOptions, 'name' | 'help' | 'numbers'> & {
    readonly meanings?: LabelMeanings;
  },
): RuleCounter {
  const counts = new BoundedCounters(limit, slots);
  const labels = ['domain', 'rule'] as const;
  registry.addFamily(
    countedFamily({ ...rest, labels, meanings: { domain: DOMAIN, rule: RULE, ...meanings }, counts }),
  );
  return (domain, rule, slot) => counts.increment(domain, rule, slot);
}
