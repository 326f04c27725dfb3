/** A worker is asked this often whether it is there, milliseconds. */
export const ASKED_EVERY_MS = 500;
/** A worker that has not answered for this long is silent, milliseconds. */
export const SILENT_MS = 1500;
/** A worker that answers later than this is busy, or hangs: others come first, milliseconds. */
export const LATE_MS = 100;

export interface PulseOptions {
  /** Sends the question; {@link Pulse.heard} is told of the answer. */
  send(): void;
  /** Monotonic, milliseconds; performance.now when absent. */
  readonly now?: () => number;
}

/**
 * Whether a worker process answers. Its silence is counted in ticks of the primary process, between which that has read
 * what workers say: while the primary is paused itself, nobody's silence grows.
 */
export class Pulse {
  readonly #options: Required<PulseOptions>;
  /** When the question was sent that waits for its answer. */
  #askedMs: number | undefined;
  #ticks = 0;
  #heardMs = Number.NEGATIVE_INFINITY;

  constructor(options: PulseOptions) {
    this.#options = { now: () => performance.now(), ...options };
  }

  /** How long it has not answered, milliseconds, in whole ticks. */
  get silentMs(): number {
    return this.#ticks * ASKED_EVERY_MS;
  }

  get silent(): boolean {
    return this.silentMs >= SILENT_MS;
  }

  /** Whether it could have answered by now and has not. */
  get late(): boolean {
    return this.#askedMs !== undefined && this.#options.now() - this.#askedMs >= LATE_MS;
  }

  /** Whether anything was heard of it since then; `atMs` is monotonic. */
  heardSince(atMs: number): boolean {
    return this.#heardMs >= atMs;
  }

  /** Asks whether it is there, unless the answer to that is awaited: one that hangs gets one question only. */
  ask(): void {
    if (this.#askedMs !== undefined) return;
    this.#askedMs = this.#options.now();
    this.#options.send();
  }

  /** It said something; `answer` when that was the answer to the question. */
  heard(answer: boolean): void {
    this.#heardMs = this.#options.now();
    this.#ticks = 0;
    if (answer) this.#askedMs = undefined;
  }

  /** Every {@link ASKED_EVERY_MS}. */
  tick(): void {
    if (this.#askedMs === undefined) this.ask();
    else this.#ticks++;
  }
}
