import type { BucketStore, Take, TakeResult } from '../../../src/limiter/bucket-store.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import type { FakeClock } from '../clock/fake-clock.js';
import { MEMORY } from './store-options.js';

/** A store that answers when a test calls {@link answer}, as a remote store answers later. */
export class SlowStore implements BucketStore {
  readonly asked: (readonly Take[])[] = [];
  readonly inner: MemoryStore;
  private readonly answers: (() => void)[] = [];

  constructor(clock: FakeClock, countDeniedHits = true) {
    this.inner = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
  }

  take(takes: readonly Take[]): Promise<TakeResult> {
    this.asked.push(takes);
    const result = this.inner.take(takes);
    return new Promise((resolve) => this.answers.push(() => resolve(result)));
  }

  /** Answers all pending requests. */
  async answer(): Promise<void> {
    for (const one of this.answers.splice(0)) one();
    await Promise.resolve();
  }

  async close(): Promise<void> {}
}
