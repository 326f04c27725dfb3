/** The side that ended a stream with RST_STREAM. `none`: neither, or it is no longer remembered. */
export type ResetBy = 'us' | 'peer' | 'none';

/**
 * Remembers the streams that were reset last. Frames that the peer sent before it saw our RST_STREAM must be ignored;
 * frames that it sends after its own RST_STREAM are an error (RFC 9113 section 5.1, closed). The number is limited, and
 * the oldest streams are forgotten first.
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
