/**
 * Sends the latest value of each key, one message at a time. If the receiver does not read, only one value per key is
 * kept.
 */
export class LatestValueSender<T> {
  readonly #send: (values: readonly T[]) => Promise<void>;
  #waiting = new Map<string, T>();
  #sending = false;

  /** @param send resolves once the message is sent */
  constructor(send: (values: readonly T[]) => Promise<void>) {
    this.#send = send;
  }

  /** Sends a value. It replaces a waiting value of the same key. */
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
