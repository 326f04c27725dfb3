import { TurnScheduler } from '../runtime/turns.js';

/** Maximum bytes of texts that are being sent together. A single text may be longer. */
export const MAX_HELD_BYTES = 32 * 1024 * 1024;

/**
 * The long texts that are being sent. Readers of the same text share it. If slow readers keep several texts, the
 * readers of the oldest text are disconnected before the total exceeds the limit.
 */
export class OutgoingTexts {
  readonly #maxBytes: number;
  /** Oldest first. */
  readonly #readers = new Map<Buffer, Set<() => void>>();
  #bytes = 0;
  readonly #turns: TurnScheduler<() => void> = new TurnScheduler({
    budget: 1,
    serve: (goOn) => {
      this.#turns.spend(1);
      goOn();
    },
  });

  constructor(maxBytes = MAX_HELD_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Tracks a reader of `text`. `cut` disconnects the reader if necessary. Call the returned function when the reader
   * has received everything or is gone.
   */
  hold(text: Buffer, cut: () => void): () => void {
    let readers = this.#readers.get(text);
    if (readers === undefined) {
      readers = new Set();
      this.#readers.set(text, readers);
      this.#bytes += text.length;
    }
    readers.add(cut);
    this.#cutOldest(text);
    return () => this.#release(text, cut);
  }

  /** Resolves when a piece of a text may be sent: one piece in a turn of the event loop, for any number of readers. */
  turn(): Promise<void> {
    return new Promise((goOn) => this.#turns.wait(goOn));
  }

  #cutOldest(newest: Buffer): void {
    for (const [text, readers] of this.#readers) {
      if (this.#bytes <= this.#maxBytes) return;
      if (text === newest) continue;
      this.#remove(text);
      for (const cut of readers) cut();
    }
  }

  #release(text: Buffer, cut: () => void): void {
    const readers = this.#readers.get(text);
    if (readers?.delete(cut) === true && readers.size === 0) this.#remove(text);
  }

  #remove(text: Buffer): void {
    this.#readers.delete(text);
    this.#bytes -= text.length;
  }
}
