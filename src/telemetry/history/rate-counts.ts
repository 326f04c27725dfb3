import type { BoundedCounters } from '../bounded-counters.js';

/** Number of descriptors of a rule by result, since the previous read. */
export interface RateCounts {
  readonly domain: string;
  /** `Rule.path`, or `override`, `block`, `allow`, or `other`. */
  readonly rule: string;
  /** Allowed, including {@link would}. */
  readonly ok: number;
  readonly denied: number;
  /** Allowed although the limit was exceeded. */
  readonly would: number;
}

/** Indexes of values in a series, and of the values that {@link newCounts} last reported. */
export interface CountedSlots {
  readonly ok: number;
  readonly denied: number;
  readonly would: number;
  readonly told: number;
}

/** Number of series that are read in one slice. */
const STRETCH = 256;

/**
 * Yields what `counts` have counted since the previous call, without unchanged series. '' is a pause. Only one reader
 * may call it, because each count is reported once.
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

/** Returns the increase of a value since it was last reported, and marks it as reported. */
function news(values: number[], at: number, told: number): number {
  const value = values[at] as number;
  const before = values[told] as number;
  values[told] = value;
  return value - before;
}
