/**
 * Sends values of which only the latest under each key matters, one message at a time: a process that does not read
 * costs one value per key.
 */
export class LatestValueSender<T> {
  readonly #send: (values: readonly T[]) => Promise<void>;
  #waiting = new Map<string, T>();
  #sending = false;

  /** `send` resolves once the message is on its way. */
  constructor(send: (values: readonly T[]) => Promise<void>) {
    this.#send = send;
  }

  /** Sends a value, in place of one under the same key that still waits. */
  put(key: string, value: T): void {
    this.#waiting.set(key, value);
    if (!this.#sending) void this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    this.#sending = true;
    while (this.#waiting.size > 0) {
      const values = [...this.#waiting.values()];
      this.#waiting = new Map();
      await this.#send(values);
    }
    this.#sending = false;
  }
}
