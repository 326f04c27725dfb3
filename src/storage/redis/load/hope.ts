import { PatientTimer } from '../connection/patient-timer.js';

/** Whether a Redis may be up in a moment, for as long as calls are let wait for that. */
export class Hope {
  readonly #onTimeout: () => void;
  readonly #waiting: (() => void)[] = [];
  #timer: PatientTimer | undefined;
  #isAlive = false;

  /** `onTimeout` is to call {@link end}. */
  constructor(onTimeout: () => void) {
    this.#onTimeout = onTimeout;
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Begins, or begins anew, for so many milliseconds. */
  begin(forMs: number): void {
    this.#timer?.stop();
    this.#isAlive = true;
    this.#timer = new PatientTimer(forMs, this.#onTimeout);
  }

  /** Returns whether there was any. */
  end(): boolean {
    const wasAlive = this.#isAlive;
    this.#timer?.stop();
    this.#isAlive = false;
    for (const resolve of this.#waiting.splice(0)) resolve();
    return wasAlive;
  }

  /** Resolves once there is none, at once where that is so. */
  async ended(): Promise<void> {
    if (this.#isAlive) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}
