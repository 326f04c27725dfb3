import type { BucketStore, Take, TakeResult } from '../../../src/limiter/bucket-store.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import type { FakeClock } from '../clock/fake-clock.js';
import { MEMORY } from './store-options.js';

/** A remote store: its clock differs by `offset`, and each way takes `latency`. */
export class RemoteStore implements BucketStore {
  readonly buckets: MemoryStore;
  private readonly local: FakeClock;
  private readonly latency: number;

  constructor(local: FakeClock, offset: number, latency: number, countDeniedHits = true) {
    this.local = local;
    this.latency = latency;
    const clock = {
      monotonicMicros: () => local.monotonic + offset,
      wallMicros: () => local.wall + offset,
    };
    this.buckets = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
  }

  async take(takes: readonly Take[]): Promise<TakeResult> {
    this.local.advance(this.latency);
    const outcomes = this.buckets.take(takes);
    this.local.advance(this.latency);
    return outcomes;
  }

  async close(): Promise<void> {}
}
