import { BoundedCounters, type SeriesBudget } from './bounded-counters.js';
import { countedFamily } from './counted-family.js';
import type { FamilyRegistry } from './family-registry.js';
import { CODES as CODE_MEANINGS, DOMAIN, RULE } from './label-meanings.js';

const CODES = ['OK', 'OVER_LIMIT'] as const;

/**
 * Counts `weir_candidate_decisions_total`: combinations of the actual code and the code of a `candidate`, as four
 * numbers per rule.
 */
export class CandidateCounts {
  readonly #counts: BoundedCounters;

  /** @param limit number of series by rule */
  constructor(limit: SeriesBudget, registry: FamilyRegistry) {
    const counts = new BoundedCounters(limit, CODES.length ** 2);
    this.#counts = counts;
    registry.addFamily(
      countedFamily({
        name: 'weir_candidate_decisions_total',
        help: 'Descriptors that a candidate evaluated, by domain, rule, actual code and candidate code.',
        labels: ['domain', 'rule'],
        meanings: {
          domain: DOMAIN,
          rule: RULE,
          live: { meaning: "The descriptor's code.", values: CODE_MEANINGS },
          candidate: {
            meaning: "The candidate's code.",
            values: {
              OK: 'the candidate would have allowed the descriptor',
              OVER_LIMIT: 'the candidate would have denied the descriptor',
            },
          },
        },
        counts,
        *numbers(values) {
          for (let slot = 0; slot < values.length; slot++) {
            const answered = `live="${CODES[slot >> 1]}",candidate="${CODES[slot & 1]}"`;
            yield [answered, values[slot] as number];
          }
        },
      }),
    );
  }

  /** Counts a descriptor: whether it was denied, and whether the candidate would have denied it. */
  decided(domain: string, rule: string, live: boolean, candidate: boolean): void {
    this.#counts.increment(domain, rule, (live ? 2 : 0) + (candidate ? 1 : 0));
  }
}
