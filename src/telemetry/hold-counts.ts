import { BoundedCounters, type SeriesBudget } from './bounded-counters.js';
import { countedFamily } from './counted-family.js';
import type { EventCounter } from './event-counter.js';
import type { FamilyRegistry } from './family-registry.js';
import { DOMAIN, KNOWN_DOMAIN, type LabelMeaning, RULE } from './label-meanings.js';

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

const USE: LabelMeaning = {
  meaning: 'Whether the end of the request reported its use.',
  values: {
    known: 'the use is known, as always for concurrency limits',
    unknown: 'no use was reported, so `unknown` of the rule decided',
  },
};
const EVENT: LabelMeaning = {
  meaning: 'The event.',
  values: {
    placed: 'requests placed the holds',
    settled: 'the holds were settled',
    released: 'weir or an operator gave the holds back',
  },
};
const TOKEN_KIND: LabelMeaning = {
  meaning: 'The reason.',
  values: {
    unknown:
      'the hold was settled before, has expired, or never existed; also an end with `pair: oldest` without a hold, ' +
      'and an end that the store had executed before without an answer',
    malformed: 'the entry is not a hold token of weir, or weir was too busy to decode all of a long token',
    unverified:
      'the store was unavailable, so weir gave up the end, and none of the processes that share its key made the ' +
      'token, as for an invented token or one of the first edition',
  },
};

type Values = readonly number[];

/** Counts holds, by rule. */
export class HoldCounts {
  readonly #counts: BoundedCounters;
  readonly #unsettled: EventCounter<'domain' | 'kind'>;

  /** @param limit number of series by rule */
  constructor(limit: SeriesBudget, registry: FamilyRegistry) {
    const counts = new BoundedCounters(limit, SLOTS);
    this.#counts = counts;
    const meanings = { domain: DOMAIN, rule: RULE };
    const labels = ['domain', 'rule'] as const;
    const count = (name: string, help: string, slot: number): void => {
      // Rules with holds show all of their counts, so that rates include the first event.
      const numbers = (values: Values) => [['', values[slot] ?? 0] as const];
      registry.addFamily(countedFamily({ name, help, labels, meanings, counts, numbers }));
    };
    count('weir_holds_placed_total', 'Holds that requests placed, by domain and rule.', PLACED);
    registry.addFamily(
      countedFamily({
        name: 'weir_holds_settled_total',
        help: 'Settled holds, by domain, rule and whether the use is known.',
        labels,
        meanings: { ...meanings, use: USE },
        counts,
        numbers: (values) => [
          ['use="known"', values[SETTLED_KNOWN] ?? 0],
          ['use="unknown"', values[SETTLED_UNKNOWN] ?? 0],
        ],
      }),
    );
    count(
      'weir_holds_released_total',
      'Holds that weir gave back because the call was canceled or got no answer, or because an operator ' +
        'released them, by domain and rule.',
      RELEASED,
    );
    count(
      'weir_hold_settlements_lost_total',
      'Settlements that weir gave up because the store was unavailable, by domain and rule. Their holds expire. Ends ' +
        'with a token that weir cannot verify count in weir_hold_tokens_unmatched_total.',
      LOST,
    );
    registry.addFamily(
      countedFamily({
        name: 'weir_hold_hits_total',
        help: 'Hits of the holds that were placed, settled or released, by domain, rule and event.',
        labels,
        meanings: { ...meanings, event: EVENT },
        counts,
        numbers: (values) => HITS.map(([event, slot]) => [`event="${event}"`, values[slot] ?? 0]),
      }),
    );
    count(
      'weir_hold_used_hits_total',
      'Hits that settlements reported as used, by domain and rule.',
      HITS_USED,
    );
    registry.addFamily(
      countedFamily({
        name: 'weir_hold_overshoot_hits',
        type: 'histogram',
        help: 'Hits that a request used above its hold, by domain and rule. Other settlements are not observed.',
        labels,
        meanings,
        counts,
        numbers: overshootSamples,
      }),
    );
    this.#unsettled = registry.events(
      'weir_hold_tokens_unmatched_total',
      { domain: KNOWN_DOMAIN, kind: TOKEN_KIND },
      'Ends of requests that settled no hold, by domain and reason. A hold token counts once for each of its holds.',
    );
  }

  /** Counts a hold that was placed. */
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
