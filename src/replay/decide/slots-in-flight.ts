import { type Due, DueHeap } from '../../runtime/due-heap.js';
import type { TrackedBucket } from './tracked-bucket.js';
import type { MetLimit } from './verdict.js';

/** Maximum number of requests whose slots are counted at the same time. */
const MAX_IN_FLIGHT = 1_000_000;

/** A request that occupies slots of a concurrency limit until it is due. */
interface InFlight extends Due {
  readonly bucket: TrackedBucket;
  readonly slots: number;
}

/** Frees the slots that requests would occupy if no concurrency limit denied them. */
export class SlotsInFlight {
  /** Why it is unknown how many slots were occupied, as a clause; undefined if it is known. */
  unknown: string | undefined;
  readonly #requests = new DueHeap<InFlight>();

  /** Frees the slots of requests that have ended. */
  endUntil(nowMicros: number): void {
    for (;;) {
      const { first } = this.#requests;
      if (first === undefined || first.dueAt > nowMicros) return;
      this.#requests.remove(first);
      first.bucket.free(first.slots);
    }
  }

  /** Adds a request that the bucket has recorded, if it has slots. `endMicros`: when Envoy sends its hold token. */
  add(bucket: TrackedBucket, { take }: MetLimit, startMicros: number, endMicros: number): void {
    const { rate, holds, hits, refund } = take;
    if (rate.kind !== 'concurrency' || holds === undefined || refund) return;
    if (endMicros === Number.POSITIVE_INFINITY) this.unknown ??= 'no hold token ends some of the requests';
    if (this.#requests.size >= MAX_IN_FLIGHT) {
      this.unknown = 'too many requests were in flight';
      return;
    }
    const dueAt = Math.min(endMicros, startMicros + holds.lifetimeMillis * 1000);
    this.#requests.add({ bucket, slots: hits, dueAt, heapIndex: -1 });
  }
}
