/** Work that is done one after the other, so that what it takes is held once, however many ask for it. */
export class SerialQueue {
  readonly #most: number;
  #last: Promise<unknown> = Promise.resolve();
  #size = 0;

  /** @param most how much work is there at most, that which is being done included */
  constructor(most: number) {
    this.#most = most;
  }

  /** Resolves and rejects as `work` does when its turn has come; undefined where the most is there already. */
  run<Result>(work: () => Promise<Result>): Promise<Result> | undefined {
    if (this.#size >= this.#most) return undefined;
    this.#size++;
    const done = this.#last.then(work).finally(() => {
      this.#size--;
    });
    // What fails here fails whoever asked for it.
    this.#last = done.catch(() => {});
    return done;
  }
}
