import { TurnScheduler } from '../runtime/turns.js';

/** A connection that can resume reading. */
export interface Reader {
  resumeReading(): void;
}

/** Bytes that Node.js reads from a socket at once. After a full read, more data is available. */
export const FULL_READ_BYTES = 64 * 1024;
/** Maximum number of waiting connections that resume in one turn of the event loop. */
const READERS_PER_TURN = 8;
/** Time in milliseconds that parsers and handlers of short requests may take together in one turn. */
export const READING_MS = 1;

/**
 * Shares the event loop among the connections of an HTTP port. Otherwise, Node.js reads up to 2 MiB from one socket
 * before the next, and answers consecutive short requests without interruption. Here, a socket with a full read, or
 * with data after the turn's time is used up, waits for a later turn, behind the sockets that already wait.
 */
export class HttpReadScheduler {
  readonly #turns: TurnScheduler<Reader>;
  readonly #now: () => number;
  /** When this turn's time is used up. Undefined before the first call in a turn. */
  #until: number | undefined;

  /** `now` returns monotonic milliseconds. Default: performance.now. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#turns = new TurnScheduler({
      budget: READERS_PER_TURN,
      onTurn: () => {
        this.#until = undefined;
        if (this.#turns.size > 0) this.hasTime();
      },
      serve: (reader) => {
        reader.resumeReading();
        this.#turns.spend(this.hasTime() ? 1 : this.#turns.remaining);
      },
    });
  }

  /** Returns whether a parser may process another piece in this turn of the event loop. */
  hasTime(): boolean {
    const now = this.#now();
    if (this.#until !== undefined) return now < this.#until;
    this.#until = now + READING_MS;
    this.#turns.schedule();
    return true;
  }

  /** Schedules `reader` to resume in a later turn. Its socket is not read until then. */
  wait(reader: Reader): void {
    this.#turns.wait(reader);
  }

  /** Removes a reader whose connection has closed. */
  cancel(reader: Reader): void {
    this.#turns.cancel(reader);
  }
}
