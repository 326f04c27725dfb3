import { type BucketStore, StorageError } from '../../../src/limiter/bucket-store.js';

/** An unavailable store, which records the deadlines of its calls. */
export class UnavailableStore implements BucketStore {
  readonly deadlines: number[] = [];

  take(_items: readonly unknown[], deadlineMicros = Number.POSITIVE_INFINITY): StorageError {
    this.deadlines.push(deadlineMicros);
    return new StorageError('disconnected', 'redis://secret@host is unavailable');
  }

  async close(): Promise<void> {}
}
