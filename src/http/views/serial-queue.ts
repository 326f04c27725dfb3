/** Runs work one at a time, so that the memory it needs is held only once. */
export class SerialQueue {
  readonly #maxTasks: number;
  #last: Promise<unknown> = Promise.resolve();
  #size = 0;

  /** @param most maximum number of tasks, including the running one */
  constructor(most: number) {
    this.#maxTasks = most;
  }

  /**
   * Runs `work` when its turn has come, and returns its promise. Returns undefined if the maximum number of tasks is
   * reached.
   */
  run<Result>(work: () => Promise<Result>): Promise<Result> | undefined {
    if (this.#size >= this.#maxTasks) return undefined;
    this.#size++;
    const done = this.#last.then(work).finally(() => {
      this.#size--;
    });
    // The caller of `run` handles the error.
    this.#last = done.catch(() => {});
    return done;
  }
}
