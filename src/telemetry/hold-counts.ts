import { BoundedCounters, type SeriesBudget } from './bounded-counters.js';
import type { FamilyName } from './families.js';
import type { EventCounter, FamilyRegistry } from './family-registry.js';

/** Upper bounds of the buckets of `weir_hold_overshoot_hits`. Estimates are often thousands of LLM tokens. */
const OVERSHOOT_HITS = [10, 100, 1000, 10_000, 100_000];

const PLACED = 0;
const SETTLED_KNOWN = 1;
const SETTLED_UNKNOWN = 2;
const RELEASED = 3;
const LOST = 4;
const HITS_PLACED = 5;
const HITS_SETTLED = 6;
const HITS_RELEASED = 7;
const HITS_USED = 8;
const OVERSHOOT_SUM = 9;
/** First bucket of the overshoot. The buckets are not cumulative, and the last one has no upper bound. */
const OVERSHOOT = 10;
const SLOTS = OVERSHOOT + OVERSHOOT_HITS.length + 1;

const HITS = [
  ['placed', HITS_PLACED],
  ['settled', HITS_SETTLED],
  ['released', HITS_RELEASED],
] as const;

type Values = readonly number[];

export class HoldCounts {
  readonly #counts: BoundedCounters;
  readonly #unsettled: EventCounter<'domain' | 'kind'>;

  /** @param limit number of series by rule */
  constructor(limit: SeriesBudget, registry: FamilyRegistry) {
    const counts = new BoundedCounters(limit, SLOTS);
    this.#counts = counts;
    // Rules with holds show all of their counts, so that rates include the first event.
    const count = (name: FamilyName, slot: number): void =>
      registry.counted(name, counts, (values) => [['', values[slot] ?? 0]]);
    count('weir_holds_placed_total', PLACED);
    registry.counted('weir_holds_settled_total', counts, (values) => [
      ['use="known"', values[SETTLED_KNOWN] ?? 0],
      ['use="unknown"', values[SETTLED_UNKNOWN] ?? 0],
    ]);
    count('weir_holds_released_total', RELEASED);
    count('weir_hold_settlements_lost_total', LOST);
    registry.counted('weir_hold_hits_total', counts, (values) =>
      HITS.map(([event, slot]) => [`event="${event}"`, values[slot] ?? 0]),
    );
    count('weir_hold_used_hits_total', HITS_USED);
    registry.counted('weir_hold_overshoot_hits', counts, overshootSamples);
    this.#unsettled = registry.events('weir_hold_tokens_unmatched_total');
  }

  placed(domain: string, rule: string, hits: number): void {
    const values = this.#counts.series(domain, rule);
    add(values, PLACED, 1);
    add(values, HITS_PLACED, hits);
  }

  /** Counts a settled hold. `used` is undefined if the use is unknown. */
  settled(domain: string, rule: string, held: number, used: number | undefined): void {
    const values = this.#counts.series(domain, rule);
    add(values, used === undefined ? SETTLED_UNKNOWN : SETTLED_KNOWN, 1);
    add(values, HITS_SETTLED, held);
    if (used === undefined) return;
    add(values, HITS_USED, used);
    if (used <= held) return;
    const over = used - held;
    let bucket = 0;
    while (bucket < OVERSHOOT_HITS.length && over > (OVERSHOOT_HITS[bucket] as number)) bucket++;
    add(values, OVERSHOOT + bucket, 1);
    add(values, OVERSHOOT_SUM, over);
  }

  /** Counts a hold that weir gave back: its call was canceled or got no answer, or an operator released it. */
  released(domain: string, rule: string, hits: number): void {
    const values = this.#counts.series(domain, rule);
    add(values, RELEASED, 1);
    add(values, HITS_RELEASED, hits);
  }

  /** Counts a hold token that settled no hold. `domain` has a policy. */
  unsettled(domain: string, kind: 'unknown' | 'malformed' | 'unverified'): void {
    this.#unsettled.inc({ domain, kind });
  }

  /** Counts a settlement that was given up because the store was unavailable. */
  lost(domain: string, rule: string): void {
    add(this.#counts.series(domain, rule), LOST, 1);
  }
}

function add(values: number[], slot: number, number: number): void {
  values[slot] = (values[slot] as number) + number;
}

/** Returns the samples of a histogram, or none if no request of the rule used more than its hold. */
function overshootSamples(values: Values): readonly (readonly [string, number, string])[] {
  let below = 0;
  const samples = [...OVERSHOOT_HITS, '+Inf'].map((le, bucket) => {
    below += values[OVERSHOOT + bucket] ?? 0;
    return [`le="${le}"`, below, '_bucket'] as const;
  });
  if (below === 0) return [];
  return [...samples, ['', values[OVERSHOOT_SUM] ?? 0, '_sum'], ['', below, '_count']];
}
