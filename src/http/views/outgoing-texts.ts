import type { TextPages } from './text-view.js';

/** Bytes of texts that are being sent, together; a single one may be longer. */
export const MAX_HELD_BYTES = 32 * 1024 * 1024;

/**
 * The texts that somebody still reads. Readers of one text share it; where there are several, as somebody reads slowly,
 * those who read the oldest are cut off before all of them together become too much.
 */
export class OutgoingTexts {
  readonly #maxBytes: number;
  /** Oldest first. */
  readonly #readers = new Map<TextPages, Set<() => void>>();
  #bytes = 0;

  constructor(maxBytes = MAX_HELD_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** `cut` ends the reading if need be. To be called back once the reader has all of it, or is gone. */
  hold(text: TextPages, cut: () => void): () => void {
    let readers = this.#readers.get(text);
    if (readers === undefined) {
      readers = new Set();
      this.#readers.set(text, readers);
      this.#bytes += text.bytes;
    }
    readers.add(cut);
    this.#cutOldest(text);
    return () => this.#release(text, cut);
  }

  #cutOldest(newest: TextPages): void {
    for (const [text, readers] of this.#readers) {
      if (this.#bytes <= this.#maxBytes) return;
      if (text === newest) continue;
      this.#forget(text);
      for (const cut of readers) cut();
    }
  }

  #release(text: TextPages, cut: () => void): void {
    const readers = this.#readers.get(text);
    if (readers?.delete(cut) === true && readers.size === 0) this.#forget(text);
  }

  #forget(text: TextPages): void {
    this.#readers.delete(text);
    this.#bytes -= text.bytes;
  }
}
