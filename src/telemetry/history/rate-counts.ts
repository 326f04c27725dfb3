import type { BoundedCounters } from '../bounded-counters.js';

/** What became of descriptors of a rule since it was asked last. */
export interface RateCounts {
  readonly domain: string;
  /** `Rule.path`, or `override`, `block`, `allow`, or `other`. */
  readonly rule: string;
  /** Let through, those of {@link would} included. */
  readonly ok: number;
  readonly denied: number;
  /** Let through though they did not fit. */
  readonly would: number;
}

/** Where the numbers of a series stand, and where {@link newCounts} keeps what it has told of each. */
export interface CountedSlots {
  readonly ok: number;
  readonly denied: number;
  readonly would: number;
  readonly told: number;
}

/** Series that are looked at between two pauses. */
const STRETCH = 256;

/**
 * What `counts` have counted since this was asked last, series without news left out. In pieces; '' is a pause. What is
 * told is told once, so one asker at a time.
 */
export function* newCounts(counts: BoundedCounters, slots: CountedSlots): Generator<RateCounts | ''> {
  const { told } = slots;
  let seen = 0;
  for (const [domain, rule, values] of counts.kept()) {
    if (++seen % STRETCH === 0) yield '';
    const ok = news(values, slots.ok, told);
    const denied = news(values, slots.denied, told + 1);
    const would = news(values, slots.would, told + 2);
    if (ok + denied > 0) yield { domain, rule, ok, denied, would };
  }
}

/** By how much a number has grown since it was told, which it is now. */
function news(values: number[], at: number, told: number): number {
  const value = values[at] as number;
  const before = values[told] as number;
  values[told] = value;
  return value - before;
}
