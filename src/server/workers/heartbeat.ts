/** Milliseconds between two pings. */
export const HEARTBEAT_INTERVAL_MS = 500;
/** Milliseconds without a message after which a worker is silent. */
export const SILENT_AFTER_MS = 1500;

/**
 * Tracks whether a worker answers. Silence is measured in ticks of the primary process, which reads the messages of
 * workers between two ticks. A pause of the primary process therefore does not count as silence of its workers.
 */
export class Heartbeat {
  readonly #send: () => void;
  #isPinged = false;
  #ticks = 0;

  /** `send` sends a ping. Its answer is passed to {@link onMessage}. */
  constructor(send: () => void) {
    this.#send = send;
  }

  /** Milliseconds, in whole ticks, since the last message. */
  get silentMs(): number {
    return this.#ticks * HEARTBEAT_INTERVAL_MS;
  }

  get silent(): boolean {
    return this.silentMs >= SILENT_AFTER_MS;
  }

  /** Sends a ping unless one is pending, so that the channel of a worker that hangs contains at most one. */
  ping(): void {
    if (this.#isPinged) return;
    this.#isPinged = true;
    this.#send();
  }

  /** Notes a message of the worker. `answer`: the message answers the ping. */
  onMessage(answer: boolean): void {
    this.#ticks = 0;
    if (answer) this.#isPinged = false;
  }

  /** To be called every {@link HEARTBEAT_INTERVAL_MS}. */
  tick(): void {
    if (this.#isPinged) this.#ticks++;
    else this.ping();
  }
}
