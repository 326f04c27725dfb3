import type { ControlResult } from '../../limiter/control.js';

/** Minimum time between two calls, in milliseconds. Keys that arrive during this time share one call. */
const PAUSE_MS = 50;
/**
 * Maximum number of keys in one call, bytes of one text of keys, and number of texts. A call with more keys stands for
 * all buckets.
 */
export const MAX_TOUCHED_KEYS = 1000;
const MAX_TEXT = 16_384;
const MAX_TEXTS = 4;
/** The text that means all buckets. */
const ALL_BUCKETS = 'null';

/** Sends the names of refilled buckets to the other processes. */
export class TouchedKeys {
  readonly #send: (texts: readonly string[]) => Promise<ControlResult>;
  #keys = new Set<string>();
  #waiting: ((result: ControlResult) => void)[] = [];
  #sending = false;

  /** `send` sends JSON lists of keys to the other processes; `null` means all buckets. */
  constructor(send: (texts: readonly string[]) => Promise<ControlResult>) {
    this.#send = send;
  }

  /** Resolves once the keys were sent. Never rejects. */
  add(keys: readonly string[]): Promise<ControlResult> {
    for (const key of keys) if (this.#keys.size <= MAX_TOUCHED_KEYS) this.#keys.add(key);
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (!this.#sending) void this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    this.#sending = true;
    while (this.#waiting.length > 0) {
      const [keys, waiting] = [this.#keys, this.#waiting];
      this.#keys = new Set();
      this.#waiting = [];
      const result = await this.#send(keys.size > MAX_TOUCHED_KEYS ? [ALL_BUCKETS] : textsOf(keys));
      for (const resolve of waiting) resolve(result);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS).unref());
    }
    this.#sending = false;
  }
}

function textsOf(keys: Iterable<string>): string[] {
  const texts: string[] = [];
  let items: string[] = [];
  let bytes = 0;
  for (const key of keys) {
    const item = JSON.stringify(key);
    bytes += Buffer.byteLength(item) + 1;
    if (bytes > MAX_TEXT && items.length > 0) {
      texts.push(`[${items.join(',')}]`);
      items = [];
      bytes = Buffer.byteLength(item) + 1;
    }
    items.push(item);
  }
  texts.push(`[${items.join(',')}]`);
  return texts.length > MAX_TEXTS ? [ALL_BUCKETS] : texts;
}
