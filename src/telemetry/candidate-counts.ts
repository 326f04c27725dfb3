import type { SeriesBudget } from './bounded-counters.js';
import { countedByRule } from './counted-family.js';
import type { FamilyRegistry } from './family-registry.js';
import { CODES as CODE_MEANINGS } from './label-meanings.js';

const CODES = ['OK', 'OVER_LIMIT'] as const;

/**
 * Counts combinations of the actual code and the code of a `candidate`, as four numbers per rule:
 * `weir_candidate_decisions_total`. `live` and `candidate` tell whether each of them denies the descriptor.
 */
export function candidateCounter(
  limit: SeriesBudget,
  registry: FamilyRegistry,
): (domain: string, rule: string, live: boolean, candidate: boolean) => void {
  const count = countedByRule(registry, limit, CODES.length ** 2, {
    name: 'weir_candidate_decisions_total',
    help: 'Descriptors that a candidate evaluated, by domain, rule, actual code and candidate code.',
    meanings: {
      live: { meaning: "The descriptor's code.", values: CODE_MEANINGS },
      candidate: {
        meaning: "The candidate's code.",
        values: {
          OK: 'the candidate would have allowed the descriptor',
          OVER_LIMIT: 'the candidate would have denied the descriptor',
        },
      },
    },
    *numbers(values) {
      for (let slot = 0; slot < values.length; slot++) {
        const answered = `live="${CODES[slot >> 1]}",candidate="${CODES[slot & 1]}"`;
        yield [answered, values[slot] as number];
      }
    },
  });
  return (domain, rule, live, candidate) => count(domain, rule, (live ? 2 : 0) + (candidate ? 1 : 0));
}
