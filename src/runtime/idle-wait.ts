import { withTimeout } from './turns.js';

/** Lets one who closes wait until nothing is under way. */
export class IdleWait {
  readonly #isIdle: () => boolean;
  #end: (() => void) | undefined;

  constructor(isIdle: () => boolean) {
    this.#isIdle = isIdle;
  }

  /** Something has ended. */
  check(): void {
    if (this.#end !== undefined && this.#isIdle()) this.#end();
  }

  /** Resolves once nothing is under way, or after `ms`. Call it once. */
  async wait(ms: number): Promise<void> {
    if (this.#isIdle()) return;
    const idle = new Promise<void>((resolve) => {
      this.#end = resolve;
    });
    await withTimeout(ms, idle, () => {});
  }
}
