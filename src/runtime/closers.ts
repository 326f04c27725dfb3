/** Closes everything that was opened in reverse order, so that a failed start or a drain releases all resources. */
export class Closers {
  readonly #closers: (() => Promise<void>)[] = [];

  add(close: () => Promise<void>): void {
    this.#closers.unshift(close);
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0)) await close();
  }
}
