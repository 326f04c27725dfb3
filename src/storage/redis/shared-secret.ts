import type { RedisBuckets } from './redis-buckets.js';
import { DEFAULT_KEY_PREFIX } from './redis-key.js';
import { scriptText } from './script-requests.js';

const DEFAULT_READ_MS = 5000;
const RETRY_MS = 1000;

/** Settings of {@link SharedSecret}. */
export interface SharedSecretOptions {
  readonly redis: Pick<RedisBuckets, 'runScript' | 'connected' | 'onUp'>;
  /** Prefix of the key; default `weir:1:`. */
  readonly keyPrefix?: string | undefined;
  /** Returns the secret of this process, which Redis stores if it has none. */
  readonly own: () => string;
  /** Receives the secret in Redis. */
  readonly onShared: (secret: string) => void;
  /**
   * Time between two reads, in milliseconds; five seconds by default. The first one follows each connection. Later ones
   * restore a secret that Redis has lost.
   */
  readonly readMs?: number;
}

/** A random text that all processes with one Redis share, until Redis loses it. */
export class SharedSecret {
  readonly #options: SharedSecretOptions;
  readonly #key: string;
  readonly #script = scriptText(['src/storage/redis/script/shared-secret.lua']);
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #isReading = false;

  constructor(options: SharedSecretOptions) {
    this.#options = options;
    this.#key = `${options.keyPrefix ?? DEFAULT_KEY_PREFIX}{secret}`;
    options.redis.onUp(() => void this.#read());
    if (options.redis.connected) void this.#read();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #read(): Promise<void> {
    if (this.#isReading || this.#isClosed) return;
    this.#isReading = true;
    clearTimeout(this.#timer);
    const { redis, own, onShared, readMs = DEFAULT_READ_MS } = this.#options;
    const args = [own()];
    const reply = redis.connected
      ? await redis.runScript({ script: this.#script, key: this.#key, args })
      : undefined;
    this.#isReading = false;
    const isShared = typeof reply === 'string' && reply !== '';
    if (isShared) onShared(reply);
    // close() may have been called in the meantime.
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => void this.#read(), isShared ? readMs : RETRY_MS).unref();
  }
}
