/** When a request was sent, and when its effect was seen. It was decided in between. Milliseconds of one clock. */
export interface Decided {
  readonly sentMs: number;
  readonly arrivedMs: number;
}

/** A request that the upstream has seen, with the same times by the wall clock. */
export interface SeenRequest extends Decided {
  readonly sentWallMs: number;
  readonly arrivedWallMs: number;
}

/**
 * Returns the largest number of requests that were certainly decided in one interval, minus what refills in the
 * interval.
 */
export function largestBurst(allowed: readonly Decided[], perSecond: number): number {
  const byArrival = allowed.toSorted((a, b) => a.arrivedMs - b.arrivedMs);
  let most = 0;
  for (const { sentMs: from } of byArrival) {
    let count = 0;
    for (const { sentMs, arrivedMs } of byArrival) {
      if (sentMs < from) continue;
      count++;
      const burst = count - ((arrivedMs - from) * perSecond) / 1000;
      // Jest looks up globals, such as Math, so slowly that a minute of requests would take a minute.
      if (burst > most) most = burst;
    }
  }
  return most;
}

/** Returns the largest number of requests that were certainly decided in one second of the wall clock. */
export function mostInSecond(allowed: readonly SeenRequest[]): number {
  const counts = new Map<number, number>();
  for (const { sentWallMs, arrivedWallMs } of allowed) {
    const second = Math.floor(sentWallMs / 1000);
    if (Math.floor(arrivedWallMs / 1000) === second) counts.set(second, (counts.get(second) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}
