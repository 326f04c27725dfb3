import { hash, randomBytes } from 'node:crypto';
import type { Clock } from '../../limiter/clock.js';

/** Length of a mark: 128 bits in base64url. */
export const MARK_LENGTH = 22;
const KEY_BYTES = 32;

/**
 * Minimum time for which marks are valid, so that different clocks of processes matter only for few tokens, in
 * milliseconds.
 */
const MIN_VALID_MS = 60_000;

/**
 * Marks tokens with a digest of a random key, the time and their text, so that the processes with this key recognize
 * the tokens that one of them has made. A mark is valid for one to two lifetimes of its holds, so nobody can collect
 * tokens of ended holds for longer than that. Nothing is refused without a valid mark, because the processes of one
 * Redis may have different keys for a short time, and different clocks.
 */
export class HoldMarks {
  readonly #clock: Pick<Clock, 'wallMicros'>;
  /** The key of new marks, and after {@link use} the one before, which marked the first tokens of this process. */
  #keys: readonly string[] = [randomBytes(KEY_BYTES).toString('base64url')];

  constructor(clock: Pick<Clock, 'wallMicros'>) {
    this.#clock = clock;
  }

  /** The key of new marks. */
  get key(): string {
    return this.#keys[0] as string;
  }

  /** Uses the key that the processes of one Redis share. */
  use(key: string): void {
    if (key !== this.key) this.#keys = [key, this.key];
  }

  /** Returns the mark of a text with holds of this lifetime. */
  markOf(text: string, lifetimeMillis: number): string {
    return markWith(this.key, this.#period(lifetimeMillis), text);
  }

  /** Returns whether a process with the key of this one has made a mark, at most two lifetimes ago. */
  isOwn(mark: string, text: string, lifetimeMillis: number): boolean {
    const period = this.#period(lifetimeMillis);
    return [period, period - 1].some((of) => this.#keys.some((key) => mark === markWith(key, of, text)));
  }

  /** Returns the number of the current period. Periods are as long as the lifetime. */
  #period(lifetimeMillis: number): number {
    return Math.floor(this.#clock.wallMicros() / 1000 / Math.max(lifetimeMillis, MIN_VALID_MS));
  }
}

/** The digest is cut, so that nobody can extend it to that of a longer text. */
function markWith(key: string, period: number, text: string): string {
  return hash('sha256', `${key}${period} ${text}`, 'base64url').slice(0, MARK_LENGTH);
}
