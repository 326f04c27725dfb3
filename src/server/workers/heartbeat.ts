/** A worker is asked this often whether it is there, milliseconds. */
export const HEARTBEAT_INTERVAL_MS = 500;
/** A worker that has not answered for this long is silent, milliseconds. */
export const SILENT_AFTER_MS = 1500;
/** A worker that answers later than this is busy, or hangs: others come first, milliseconds. */
export const LATE_AFTER_MS = 100;

export interface PulseOptions {
  /** Sends the question; {@link Heartbeat.onMessage} is told of the answer. */
  send(): void;
  /** Monotonic, milliseconds; performance.now when absent. */
  readonly now?: () => number;
}

/**
 * Whether a worker process answers. Its silence is counted in ticks of the primary process, between which that has read
 * what workers say: while the primary is paused itself, nobody's silence grows.
 */
export class Heartbeat {
  readonly #options: Required<PulseOptions>;
  /** When the question was sent that waits for its answer. */
  #pingSentMs: number | undefined;
  #ticks = 0;
  #lastMessageMs = Number.NEGATIVE_INFINITY;

  constructor(options: PulseOptions) {
    this.#options = { now: () => performance.now(), ...options };
  }

  /** How long it has not answered, milliseconds, in whole ticks. */
  get silentMs(): number {
    return this.#ticks * HEARTBEAT_INTERVAL_MS;
  }

  get silent(): boolean {
    return this.silentMs >= SILENT_AFTER_MS;
  }

  /** Whether it could have answered by now and has not. */
  get late(): boolean {
    return this.#pingSentMs !== undefined && this.#options.now() - this.#pingSentMs >= LATE_AFTER_MS;
  }

  /** Whether anything was heard of it since then; `atMs` is monotonic. */
  hasMessageSince(atMs: number): boolean {
    return this.#lastMessageMs >= atMs;
  }

  /** Asks whether it is there, unless the answer to that is awaited: one that hangs gets one question only. */
  ping(): void {
    if (this.#pingSentMs !== undefined) return;
    this.#pingSentMs = this.#options.now();
    this.#options.send();
  }

  /** It said something; `answer` when that was the answer to the question. */
  onMessage(answer: boolean): void {
    this.#lastMessageMs = this.#options.now();
    this.#ticks = 0;
    if (answer) this.#pingSentMs = undefined;
  }

  /** Every {@link HEARTBEAT_INTERVAL_MS}. */
  tick(): void {
    if (this.#pingSentMs === undefined) this.ping();
    else this.#ticks++;
  }
}
