import { hash, randomBytes } from 'node:crypto';
import type { Clock } from '../../limiter/clock.js';

/** Length of a MAC: 128 bits in base64url. */
export const MAC_LENGTH = 22;
const KEY_BYTES = 32;

/**
 * Minimum time for which MACs are valid, in milliseconds. It is long enough that differences between the clocks of
 * processes affect only few tokens.
 */
const MIN_VALID_MS = 60_000;

/**
 * Signs each token with a message authentication code (MAC): a digest of a random key, the time and the text of the
 * token. Processes that share the key can therefore recognize each other's tokens. A MAC is valid for one to two
 * lifetimes of its holds, so an attacker cannot collect tokens of ended holds for longer than that. weir also accepts
 * tokens without a valid MAC, because processes that share a Redis server may have different clocks, and for a short
 * time different keys.
 */
export class TokenMac {
  readonly #clock: Pick<Clock, 'wallMicros'>;
  /** The key of new MACs. After {@link use}, also the previous key, which signed the first tokens of this process. */
  #keys: readonly string[] = [randomBytes(KEY_BYTES).toString('base64url')];

  constructor(clock: Pick<Clock, 'wallMicros'>) {
    this.#clock = clock;
  }

  /** The key of new MACs. */
  get key(): string {
    return this.#keys[0] as string;
  }

  /** Uses the key that all processes with the same Redis server share. */
  use(key: string): void {
    if (key !== this.key) this.#keys = [key, this.key];
  }

  /** Returns the MAC of a text with holds of this lifetime. */
  sign(text: string, lifetimeMillis: number): string {
    return macOf(this.key, this.#period(lifetimeMillis), text);
  }

  /** Returns whether a process with the same key created a MAC at most two lifetimes ago. */
  isAuthentic(mac: string, text: string, lifetimeMillis: number): boolean {
    const period = this.#period(lifetimeMillis);
    return [period, period - 1].some((of) => this.#keys.some((key) => mac === macOf(key, of, text)));
  }

  /** Periods are as long as the lifetime. */
  #period(lifetimeMillis: number): number {
    return Math.floor(this.#clock.wallMicros() / 1000 / Math.max(lifetimeMillis, MIN_VALID_MS));
  }
}

/** The digest is truncated, so that an attacker cannot compute the digest of a longer text from it. */
function macOf(key: string, period: number, text: string): string {
  return hash('sha256', `${key}${period} ${text}`, 'base64url').slice(0, MAC_LENGTH);
}
