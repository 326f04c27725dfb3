import type { MetLimit } from './verdict.js';

/** A take whose time may be the same as that of later ones. */
export interface RecentTake {
  readonly limit: MetLimit;
  readonly endMicros: number;
  /** Whether the hits were taken from the bucket. */
  readonly isTaken: boolean;
  /** Whether the hits were taken, or the real bucket may have had more and lost them. */
  mayBeTaken: boolean;
  /** The fewest tokens or hits that the bucket may have held before the take. */
  least: number;
}

/**
 * Takes of one bucket that are too many to compare each of them with later takes, although the order is unknown. They
 * are compared together: if a later take may change the verdict of one of them, all of them are open.
 */
export class UncomparedTakes {
  /** Hits that were taken from the bucket, and hits that were not. */
  takenHits = 0;
  otherHits = 0;
  /** The most hits of a take. */
  largestHits = 0;
  /** When the last of them has certainly happened. */
  #endMicros = 0;
  #nowMicros = 0;
  /** Takes that were allowed, and the fewest tokens or hits that one of them may have left. */
  #allowed: RecentTake[] = [];
  #left = Number.POSITIVE_INFINITY;

  add(takes: readonly RecentTake[]): void {
    for (const take of takes) {
      const { hits } = take.limit.take;
      if (take.mayBeTaken) this.takenHits += hits;
      if (!take.isTaken) this.otherHits += hits;
      this.largestHits = Math.max(this.largestHits, hits);
      this.#endMicros = Math.max(this.#endMicros, take.endMicros);
      if (take.limit.outcome.limited) continue;
      this.#allowed.push(take);
      this.#left = Math.min(this.#left, take.least - take.limit.wantedHits);
    }
  }

  /** Returns whether all of them have happened before `nowMicros`. */
  haveEnded(nowMicros: number): boolean {
    this.#nowMicros = nowMicros;
    return this.#endMicros <= nowMicros;
  }

  /** Records a later take, which may have happened before these. */
  addLater(hits: number): void {
    this.#left -= hits;
    if (this.#left >= 0) return;
    for (const { limit, endMicros } of this.#allowed) if (endMicros > this.#nowMicros) limit.markOpen();
    this.#allowed = [];
    this.#left = Number.POSITIVE_INFINITY;
  }
}
