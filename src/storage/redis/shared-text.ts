import type { StorageError } from '../../limiter/bucket-store.js';
import type { RedisBackend } from './redis-backend.js';
import { DEFAULT_KEY_PREFIX } from './redis-key.js';

// KEYS[1] is a string. ARGV[1] is a time, which these scripts do not need.
const WRITE = "redis.call('SET', KEYS[1], ARGV[2]) return ''";
/** Returns the text. If there is none, stores ARGV[2] unless it is ''. */
const READ =
  "if ARGV[2] ~= '' then redis.call('SET', KEYS[1], ARGV[2], 'NX') end " +
  "return redis.call('MGET', KEYS[1])[1] or ''";

/** Settings of {@link SharedText}. */
export interface SharedTextOptions {
  readonly redis: Pick<RedisBackend, 'runScript' | 'connected' | 'onUp'>;
  /** Name of the text, which its key contains. */
  readonly name: string;
  /** Prefix of the key; default `weir:1:`. */
  readonly keyPrefix?: string | undefined;
  /** Time between two reads, in milliseconds. Each connection to Redis is followed by another read. */
  readonly readMs: number;
  /** The text that a read stores if Redis has none; '' stores none. */
  readonly initial?: () => string;
  /** Receives the text when it changes; '' if Redis has none. Without this function, the text is never read. */
  readonly onChange?: ((text: string) => void) | undefined;
}

/** A text in one key of Redis, which all processes with this Redis read regularly. */
export class SharedText {
  readonly #options: SharedTextOptions;
  readonly #key: string;
  #text = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SharedTextOptions) {
    this.#options = options;
    this.#key = `${options.keyPrefix ?? DEFAULT_KEY_PREFIX}{${options.name}}`;
    const { redis, onChange } = options;
    if (onChange === undefined) return;
    this.#readAfter(0, onChange);
    redis.onUp(() => {
      if (this.#timer !== undefined) this.#readAfter(0, onChange);
    });
  }

  /** Replaces the text. Resolves with the error if other processes may not get it. Never rejects. */
  async write(text: string): Promise<StorageError | undefined> {
    const reply = await this.#run(WRITE, text);
    return typeof reply === 'string' ? undefined : reply;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #run(script: string, text: string): Promise<string | StorageError> {
    return this.#options.redis.runScript({ script, key: this.#key, args: [text] });
  }

  #readAfter(ms: number, onChange: (text: string) => void): void {
    clearTimeout(this.#timer);
    const timer = setTimeout(async () => {
      const { redis, readMs, initial = () => '' } = this.#options;
      const text = redis.connected ? await this.#run(READ, initial()) : undefined;
      // In the meantime, close() may have been called, or another read may have begun.
      if (this.#timer !== timer) return;
      if (typeof text === 'string' && text !== this.#text) {
        this.#text = text;
        onChange(text);
      }
      this.#readAfter(readMs, onChange);
    }, ms).unref();
    this.#timer = timer;
  }
}
