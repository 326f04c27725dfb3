import { CHART_SPAN } from './chart-shape.js';

/** Maximum pause without denials within a run of denials, in seconds. */
const GAP = 60;

/** The start of a run of denials. */
export interface DeniedSince {
  /** Start of the first step, in seconds since the epoch. */
  readonly at: number;
  /** Whether the run may have started before the recorded hour. */
  readonly orBefore: boolean;
}

/**
 * Returns the start of the current run of denials, which has no pause of more than a minute. Returns undefined if the
 * rule has not denied a request in the last minute.
 *
 * @param denied denials of each step, oldest first
 * @param step length of a step, in seconds
 * @param ends end of the last step, in seconds since the epoch
 */
export function deniedSince(denied: readonly number[], step: number, ends: number): DeniedSince | undefined {
  const gap = Math.max(1, Math.round(GAP / step));
  let first = denied.length;
  for (let at = denied.length - 1; at >= 0 && first - at <= gap; at--) {
    if ((denied[at] as number) > 0) first = at;
  }
  if (first === denied.length) return undefined;
  const isWhole = (denied.length + 1) * step >= CHART_SPAN;
  return { at: ends - (denied.length - first) * step, orBefore: isWhole && first < gap };
}
