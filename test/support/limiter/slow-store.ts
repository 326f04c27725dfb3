import type { BucketStore, Take, TakeOutcome, TakeResult } from '../../../src/limiter/bucket-store.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import type { FakeClock } from '../clock/fake-clock.js';
import { MEMORY } from './store-options.js';

/** A store that answers when a test calls {@link answer}, as a remote store answers later. */
export class SlowStore implements BucketStore {
  readonly asked: (readonly Take[])[] = [];
  readonly inner: MemoryStore;
  private readonly clock: FakeClock;
  private readonly answers: (() => void)[] = [];

  constructor(clock: FakeClock, countDeniedHits = true) {
    this.clock = clock;
    this.inner = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
  }

  take(takes: readonly Take[]): Promise<TakeResult> {
    this.asked.push(takes);
    const result = takes[0]?.count === undefined ? this.inner.take(takes) : this.takeSeveral(takes[0]);
    return new Promise((resolve) => this.answers.push(() => resolve(result)));
  }

  /** Answers all pending requests. */
  async answer(): Promise<void> {
    for (const one of this.answers.splice(0)) one();
    await Promise.resolve();
  }

  async close(): Promise<void> {}

  /** Takes one hit after the other, as the script for Redis does. Exact for refills of whole microseconds. */
  private takeSeveral(item: Take): TakeResult {
    const { count = 1, ...one } = item;
    const outcomes = Array.from({ length: count }, () => this.inner.take([one])[0] as TakeOutcome);
    const [first, last] = [outcomes[0] as TakeOutcome, outcomes.at(-1) as TakeOutcome];
    const granted = outcomes.filter(({ overLimit }) => !overLimit).length;
    const remainder = item.rate.kind === 'window' ? first.used - (granted > 0 ? 1 : 0) : 0;
    const nowMicros = item.rate.nowOf(this.clock.monotonicMicros(), this.clock.wallMicros());
    return [{ ...last, grant: { granted, wholeMicros: first.undoAtMicros ?? 0, remainder, nowMicros } }];
  }
}
