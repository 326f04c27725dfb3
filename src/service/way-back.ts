/** The share of a caller's patience that is left for the way back: an answer at the deadline itself comes too late. */
const WAY_BACK_SHARE = 0.1;
const WAY_BACK_MAX_MICROS = 50_000;
/** Timers fire a millisecond or two late, and Envoy's default patience is only 20 ms. */
const WAY_BACK_LEAST_MICROS = 5000;
const WAY_BACK_LEAST_SHARE = 0.4;

/** How long before a caller's deadline, `patienceMicros` from now, the store must have answered. Microseconds. */
export function wayBackMicros(patienceMicros: number): number {
  const least = Math.min(WAY_BACK_LEAST_MICROS, patienceMicros * WAY_BACK_LEAST_SHARE);
  return Math.min(Math.max(patienceMicros * WAY_BACK_SHARE, least), WAY_BACK_MAX_MICROS);
}
