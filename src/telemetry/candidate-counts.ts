import { Counter, type Registry } from 'prom-client';
import { BoundedCounters, type SeriesLimit } from './bounded-counters.js';

const CODES = ['OK', 'OVER_LIMIT'] as const;

/** `weir_candidate_decisions_total`: what was answered beside what a `candidate` would have answered, as four numbers a node. */
export class CandidateCounts {
  readonly #counts: BoundedCounters;

  /** @param limit the budget of series by rule */
  constructor(limit: SeriesLimit, registry: Registry) {
    const counts = new BoundedCounters(limit, CODES.length ** 2);
    this.#counts = counts;
    new Counter({
      name: 'weir_candidate_decisions_total',
      help: 'Descriptors that a candidate saw, by domain, rule, the code they were answered and the one the candidate would have given.',
      labelNames: ['domain', 'rule', 'live', 'candidate'],
      registers: [registry],
      collect() {
        this.reset();
        for (const [domain, rule, values] of counts.entries()) {
          values.forEach((value, slot) => {
            const live = CODES[slot >> 1] as string;
            const candidate = CODES[slot & 1] as string;
            this.inc({ domain, rule, live, candidate }, value);
          });
        }
      },
    });
  }

  /** Counts one descriptor: whether it was denied, and whether the candidate would have denied it. */
  decided(domain: string, rule: string, live: boolean, candidate: boolean): void {
    const values = this.#counts.series(domain, rule);
    const slot = (live ? 2 : 0) + (candidate ? 1 : 0);
    values[slot] = (values[slot] as number) + 1;
  }
}
