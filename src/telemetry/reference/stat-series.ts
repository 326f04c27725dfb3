import type { Take, TakeOutcome } from '../../limiter/bucket-store.js';
import { MAX_UINT32 } from '../../limiter/rate-algorithm.js';

/** Counters wrap at this value, so that adding one always changes them. Prometheus treats that as a restart. */
const WRAP = 2 ** 53;

/** Returns `value + more`, wrapped. Both are whole numbers from 0 to below 2^53. */
export function counted(value: number, more: number): number {
  const sum = value + more;
  return sum < WRAP ? sum : sum - WRAP;
}

/** Counters with a common prefix of their names. */
export class StatSeries {
  readonly #prefix: string;
  readonly #suffixes: readonly string[];
  /** Current values, incremented in place. */
  readonly values: number[];
  /** Values that sinks last read. */
  readonly #reported: number[];

  /** @param prefix escaped, with a trailing dot */
  constructor(prefix: string, suffixes: readonly string[]) {
    this.#prefix = prefix;
    this.#suffixes = suffixes;
    this.values = suffixes.map(() => 0);
    this.#reported = suffixes.map(() => 0);
  }

  nameAt(at: number): string {
    return this.#prefix + this.#suffixes[at];
  }

  /** Calls `onDelta` for each counter that increased since the previous call, with the increase. */
  takeDeltas(onDelta: (name: string, delta: number) => void): void {
    for (let i = 0; i < this.values.length; i++) {
      const value = this.values[i] as number;
      const told = this.#reported[i] as number;
      if (value === told) continue;
      this.#reported[i] = value;
      onDelta(this.nameAt(i), value > told ? value - told : WRAP - told + value);
    }
  }
}

const IPV4 = /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/g;

/**
 * Escapes a string for the name of a statistic. As in the reference, `:` and `|`, which end a name on the wire, and the
 * dots of IPv4 addresses become `_`. So do control characters, which break lines in the reference.
 */
export function sanitiseStatName(name: string): string {
  return (
    name
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not pass
      .replaceAll(/[:|\u0000-\u001f\u007f]/g, '_')
      .replaceAll(IPV4, (address) => address.replaceAll('.', '_'))
  );
}

/** Counters of a rule in the reference with their meanings, in the order of a series' values. */
export const RULE_COUNTER_MEANINGS = {
  total_hits: 'All hits.',
  over_limit: 'Hits over the limit.',
  near_limit: 'Hits within the limit, but above NEAR_LIMIT_RATIO.',
  within_limit: 'Hits of descriptors within the limit.',
  over_limit_with_local_cache:
    'Hits that the deny cache denied without asking Redis. `over_limit` includes these hits.',
  shadow_mode:
    "Hits over the limit that were allowed because of `shadow_mode` or because the rule's phase was not yet `active`.",
  total_negative_hits: 'Refunded hits.',
} as const;

export const RULE_COUNTERS = Object.keys(
  RULE_COUNTER_MEANINGS,
) as readonly (keyof typeof RULE_COUNTER_MEANINGS)[];

const TOTAL = 0;
const OVER = 1;
const NEAR = 2;
const WITHIN = 3;
const CACHED = 4;
const SHADOW = 5;
const NEGATIVE = 6;

/** Settings that affect how hits are counted. */
export interface CountingRules {
  /** NEAR_LIMIT_RATIO. */
  readonly nearLimitRatio: number;
  /** Whether windows count the hits of denied requests (unless STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT is on). */
  readonly deniedHitsCount: boolean;
}

/**
 * Adds hits to a counter, at most 2^32−1 per request. The reference wraps, so one hits_addend of 2^64−1 would make all
 * values of a rule meaningless.
 */
function add(values: number[], at: number, hits: number): void {
  if (hits <= 0) return;
  values[at] = counted(values[at] as number, Math.min(hits, MAX_UINT32));
}

/**
 * Returns the number of hits up to which a limit is not near, in 32-bit floating-point arithmetic, as in the reference.
 */
function nearThreshold(limit: number, ratio: number): number {
  return Math.floor(Math.fround(Math.fround(limit) * Math.fround(ratio)));
}

/**
 * Counts a decided descriptor into the `values` of its rule, as the reference does for a window. For a token bucket,
 * the limit is `max_tokens` and the count is the number of missing tokens. Refunds, which this arithmetic of the
 * reference does not have, only count as `total_negative_hits`.
 */
export function countHits(
  values: number[],
  rules: CountingRules,
  take: Take,
  outcome: TakeOutcome | undefined,
  shadowed: boolean,
): void {
  const { hits } = take;
  if (take.refund) {
    add(values, NEGATIVE, hits);
    return;
  }
  add(values, TOTAL, hits);
  if (outcome === undefined) return;
  if (outcome.overLimit) {
    const over = countOver(values, rules, take, outcome);
    if (shadowed) add(values, SHADOW, over);
    return;
  }
  const near = nearThreshold(take.rate.reportedLimit, rules.nearLimitRatio);
  const after = outcome.used;
  // The count may not include the hits of a request that another descriptor denied.
  const before = Math.max(0, after - hits);
  if (after > near) add(values, NEAR, before >= near ? hits : after - near);
  add(values, WITHIN, hits);
}

/**
 * Counts the hits over the limit and returns their number. Hits that fit before the limit was reached are not included.
 */
function countOver(values: number[], rules: CountingRules, take: Take, outcome: TakeOutcome): number {
  const { hits, rate } = take;
  if (outcome.cached) {
    add(values, OVER, hits);
    add(values, CACHED, hits);
    return hits;
  }
  const limit = rate.reportedLimit;
  const isIn = rate.countsDenied(rules.deniedHitsCount);
  const before = isIn ? Math.max(0, outcome.used - hits) : outcome.used;
  const after = before + hits;
  if (before >= limit || after <= limit) {
    add(values, OVER, hits);
    return hits;
  }
  add(values, OVER, after - limit);
  add(values, NEAR, limit - Math.max(nearThreshold(limit, rules.nearLimitRatio), before));
  return after - limit;
}
