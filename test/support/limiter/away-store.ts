import { type BucketStore, StorageError } from '../../../src/limiter/bucket-store.js';

/** A store that cannot be asked, and notes by when it was to answer. */
export class AwayStore implements BucketStore {
  readonly deadlines: number[] = [];

  take(_items: readonly unknown[], deadlineMicros = Number.POSITIVE_INFINITY): StorageError {
    this.deadlines.push(deadlineMicros);
    return new StorageError('disconnected', 'redis://secret@host is away');
  }

  async close(): Promise<void> {}
}
