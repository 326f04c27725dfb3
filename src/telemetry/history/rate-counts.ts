import type { BoundedCounters } from '../bounded-counters.js';

/** Number of descriptors of a rule by result, since the previous read. */
export interface RateCounts {
  readonly domain: string;
  /** `Rule.path`, `override`, or `other`. */
  readonly rule: string;
  /** Allowed, including {@link would}. */
  readonly ok: number;
  readonly denied: number;
  /** Allowed although the limit was exceeded. */
  readonly would: number;
}

/** Indexes of values in a series, and of the values that {@link takeNewCounts} last reported. */
export interface CounterSlots {
  readonly ok: number;
  readonly denied: number;
  readonly would: number;
  readonly reported: number;
}

/**
 * Passes what `counts` have counted since the previous call to `take`, without unchanged series. Only one reader may
 * call it, because each count is reported once.
 */
export function takeNewCounts(
  counts: BoundedCounters,
  slots: CounterSlots,
  take: (counts: RateCounts) => void,
): void {
  const { reported } = slots;
  counts.forEachMutable((domain, rule, values) => {
    const ok = increase(values, slots.ok, reported);
    const denied = increase(values, slots.denied, reported + 1);
    const would = increase(values, slots.would, reported + 2);
    if (ok + denied > 0) take({ domain, rule, ok, denied, would });
  });
}

/** Returns the increase of a value since it was last reported, and marks it as reported. */
function increase(values: number[], at: number, reported: number): number {
  const value = values[at] as number;
  const before = values[reported] as number;
  values[reported] = value;
  return value - before;
}
