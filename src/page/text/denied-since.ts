import { CHART_SPAN } from './chart-shape.js';

/** So long nothing may be denied within one stretch of denials, seconds. */
const GAP = 60;

/** When a stretch of denials began. */
export interface DeniedSince {
  /** The begin of its first step, seconds since the epoch. */
  readonly at: number;
  /** Whether it may have begun before what is kept. */
  readonly orBefore: boolean;
}

/**
 * Since when a rule has denied without a pause of more than a minute, up to now; undefined where it has denied nothing
 * in the last minute.
 *
 * @param denied denials of each step, the oldest first
 * @param step length of a step, seconds
 * @param ends when the last step ended, seconds since the epoch
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
