import { type Due, DueHeap } from '../../runtime/due-heap.js';
import type { LoggedDescriptor } from '../envoy/rate-limit.js';
import type { TrackedBucket } from './tracked-bucket.js';
import type { MetLimit } from './verdict.js';

/** Maximum number of changes that wait for their time. */
const MAX_CHANGES = 1_000_000;

/** A change of the use of a bucket when a request ends. */
interface UseChange extends Due {
  readonly bucket: TrackedBucket;
  readonly hits: number;
}

/** Changes the use of buckets at the end of requests as if nothing were denied. */
export class LaterUse {
  /** Why the use of some buckets is unknown, as a clause; undefined if it is known. */
  unknown: string | undefined;
  readonly #changes = new DueHeap<UseChange>();

  /** Makes the changes up to a time. */
  changeUntil(nowMicros: number): void {
    for (;;) {
      const { first } = this.#changes;
      if (first === undefined || first.dueAt > nowMicros) return;
      this.#changes.remove(first);
      first.bucket.changeUse(first.hits, first.dueAt);
    }
  }

  /** Adds a change of a bucket by some hits. */
  add(bucket: TrackedBucket, hits: number, dueAt: number): void {
    if (this.#changes.size < MAX_CHANGES) this.#changes.add({ bucket, hits, dueAt, heapIndex: -1 });
    else this.#giveUp(bucket, 'too many requests were in flight');
  }

  /** Adds the end of a hold, if the take has one: its slots become free, or its use replaces its estimate. */
  addHold(
    bucket: TrackedBucket,
    { take: { holds, refund, hits, rate, rule } }: MetLimit,
    startMicros: number,
    doneMicros: number,
    end: readonly LoggedDescriptor[],
  ): void {
    if (holds === undefined || refund || hits === 0) return;
    const expiresMicros = startMicros + holds.lifetimeMillis * 1000;
    const byToken = rule?.hold?.pair === 'token';
    const ends = end.filter(({ holdEntry }) => (holdEntry !== undefined) === byToken);
    if (ends.length === 0) {
      this.#giveUp(bucket, 'no descriptor ends some of the holds');
      return;
    }
    let use = 0;
    if (rate.kind !== 'concurrency') {
      const unknownUse = holds.freesUnknown === true ? 0 : hits;
      const reported = ends.find(({ hitsAddend }) => hitsAddend !== undefined)?.hitsAddend;
      use = doneMicros < expiresMicros ? (reported ?? unknownUse) : unknownUse;
    }
    if (use !== hits) this.add(bucket, use - hits, Math.min(doneMicros, expiresMicros));
  }

  #giveUp(bucket: TrackedBucket, reason: string): void {
    bucket.knowsUse = false;
    this.unknown = reason;
  }
}
