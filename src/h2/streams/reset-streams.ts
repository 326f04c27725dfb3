/** Who ended a stream with RST_STREAM; `none`: nobody, or so long ago that it is forgotten. */
export type ResetBy = 'us' | 'peer' | 'none';

/**
 * The streams that were reset last. What the peer sent before it has seen our RST_STREAM must be ignored, what it sends
 * after its own is an error (RFC 9113 section 5.1, closed). The memory is bounded; the oldest are forgotten first.
 */
export class ResetStreams {
  readonly #by = new Map<number, 'us' | 'peer'>();
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  add(streamId: number, by: 'us' | 'peer'): void {
    if (this.#by.size >= this.#capacity) {
      for (const oldest of this.#by.keys()) {
        this.#by.delete(oldest);
        break;
      }
    }
    this.#by.set(streamId, by);
  }

  resetBy(streamId: number): ResetBy {
    return this.#by.get(streamId) ?? 'none';
  }
}
