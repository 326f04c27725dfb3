import { hash, randomBytes } from 'node:crypto';

/** Length of a mark: 128 bits in base64url. */
export const MARK_LENGTH = 22;
const KEY_BYTES = 32;

/**
 * Marks tokens with a digest of a random key and their text, so that the processes with this key recognize the tokens
 * that one of them has made. Nothing is refused without a mark, because the processes of one Redis may have different
 * keys for a short time.
 */
export class HoldMarks {
  #key = randomBytes(KEY_BYTES).toString('base64url');
  /** The key before {@link use}, which marked the first tokens of this process. */
  #earlierKey = this.#key;

  /** The key of new marks. */
  get key(): string {
    return this.#key;
  }

  /** Uses the key that the processes of one Redis share. */
  use(key: string): void {
    if (key === this.#key) return;
    this.#earlierKey = this.#key;
    this.#key = key;
  }

  /** Returns the mark of a text. */
  markOf(text: string): string {
    return markWith(this.#key, text);
  }

  /** Returns whether a process with the key of this one has made a mark. */
  isOwn(mark: string, text: string): boolean {
    return mark === markWith(this.#key, text) || mark === markWith(this.#earlierKey, text);
  }
}

/** The digest is cut, so that nobody can extend it to that of a longer text. */
function markWith(key: string, text: string): string {
  return hash('sha256', key + text, 'base64url').slice(0, MARK_LENGTH);
}
