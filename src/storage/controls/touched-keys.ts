import type { ControlResult } from '../../limiter/control.js';

/** Least time from one call to the next, milliseconds: what comes meanwhile goes in one. */
const PAUSE_MS = 50;
/** Most keys of one call, bytes of one text of them, and texts; of more all buckets are named. */
export const MAX_TOUCHED_KEYS = 1000;
const MAX_TEXT = 16_384;
const MAX_TEXTS = 4;
/** The text that names all buckets. */
const ALL_BUCKETS = 'null';

/** Buckets that were given tokens, on their way to the other processes. */
export class TouchedKeys {
  readonly #send: (texts: readonly string[]) => Promise<ControlResult>;
  #keys = new Set<string>();
  #waiting: ((result: ControlResult) => void)[] = [];
  #sending = false;

  /** `send` tells others of lists of keys, as JSON: null stands for all buckets. */
  constructor(send: (texts: readonly string[]) => Promise<ControlResult>) {
    this.#send = send;
  }

  /** Resolves once others were told. Never rejects. */
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
