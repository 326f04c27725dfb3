import { withTimeout } from './turns.js';

/** Waits until no work is in progress, for example before closing. */
export class IdleWait {
  readonly #isIdle: () => boolean;
  #end: (() => void) | undefined;

  constructor(isIdle: () => boolean) {
    this.#isIdle = isIdle;
  }

  /** Checks whether all work has ended. Call it whenever some work ends. */
  check(): void {
    if (this.#end !== undefined && this.#isIdle()) this.#end();
  }

  /** Resolves once no work is in progress, or after `ms` milliseconds. Call it only once. */
  async wait(ms: number): Promise<void> {
    if (this.#isIdle()) return;
    const idle = new Promise<void>((resolve) => {
      this.#end = resolve;
    });
    await withTimeout(ms, idle, () => {});
  }
}
