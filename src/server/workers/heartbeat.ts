/** Milliseconds between two pings. */
export const HEARTBEAT_INTERVAL_MS = 500;
/** Milliseconds without a message after which a worker is silent. */
export const SILENT_AFTER_MS = 1500;
/** Milliseconds without an answer after which a worker is busy or hangs, so that other workers are preferred. */
export const LATE_AFTER_MS = 100;

export interface PulseOptions {
  /** Sends a ping. Its answer is passed to {@link Heartbeat.onMessage}. */
  send(): void;
  /** Returns monotonic milliseconds. Default: performance.now. */
  readonly now?: () => number;
}

/**
 * Tracks whether a worker answers. Silence is measured in ticks of the primary process, which reads the messages of
 * workers between two ticks. A pause of the primary process therefore does not count as silence of its workers.
 */
export class Heartbeat {
  readonly #options: Required<PulseOptions>;
  /** Time at which the pending ping was sent. */
  #pingSentMs: number | undefined;
  #ticks = 0;
  #lastMessageMs = Number.NEGATIVE_INFINITY;

  constructor(options: PulseOptions) {
    this.#options = { now: () => performance.now(), ...options };
  }

  /** Milliseconds, in whole ticks, since the last message. */
  get silentMs(): number {
    return this.#ticks * HEARTBEAT_INTERVAL_MS;
  }

  get silent(): boolean {
    return this.silentMs >= SILENT_AFTER_MS;
  }

  /** Whether the answer to the pending ping is late. */
  get late(): boolean {
    return this.#pingSentMs !== undefined && this.#options.now() - this.#pingSentMs >= LATE_AFTER_MS;
  }

  /** Returns whether a message arrived since the monotonic time `atMs`. */
  hasMessageSince(atMs: number): boolean {
    return this.#lastMessageMs >= atMs;
  }

  /** Sends a ping unless one is pending, so that the channel of a worker that hangs contains at most one. */
  ping(): void {
    if (this.#pingSentMs !== undefined) return;
    this.#pingSentMs = this.#options.now();
    this.#options.send();
  }

  /** Notes a message of the worker. `answer`: the message answers the ping. */
  onMessage(answer: boolean): void {
    this.#lastMessageMs = this.#options.now();
    this.#ticks = 0;
    if (answer) this.#pingSentMs = undefined;
  }

  /** To be called every {@link HEARTBEAT_INTERVAL_MS}. */
  tick(): void {
    if (this.#pingSentMs === undefined) this.ping();
    else this.#ticks++;
  }
}
