import { TurnScheduler } from '../runtime/turns.js';

/** Who is read on. */
export interface Reader {
  resumeReading(): void;
}

/** What Node.js reads of a socket at once: when it is all of that, more is there. Bytes. */
export const FULL_READ_BYTES = 64 * 1024;
/** So many connections that wait are read on in one turn of the event loop. */
const READERS_PER_TURN = 8;
/** What parsers and those who answer short requests may take of a turn, together, in milliseconds. */
export const READING_MS = 1;

/**
 * Shares the event loop among the connections of an HTTP port. Left alone, Node.js reads up to 2 MiB of each socket
 * before the next one has its turn, and short requests that follow each other are answered one after the other, without
 * an end. Here a socket that gave all that is read at once, or that brings something when the turn's time is over,
 * waits for a later turn, behind those that wait already.
 */
export class HttpReadScheduler {
  readonly #turns: TurnScheduler<Reader>;
  readonly #now: () => number;
  /** When this turn's time is over; undefined before anybody asked in it. */
  #until: number | undefined;

  /** `now` tells monotonic milliseconds; performance.now when absent. */
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

  /** Whether a parser may have another piece in this turn of the event loop. */
  hasTime(): boolean {
    const now = this.#now();
    if (this.#until !== undefined) return now < this.#until;
    this.#until = now + READING_MS;
    this.#turns.schedule();
    return true;
  }

  /** `reader` is to be read on, in a turn to come; its socket is not read until then. */
  wait(reader: Reader): void {
    this.#turns.wait(reader);
  }

  /** It is gone. */
  cancel(reader: Reader): void {
    this.#turns.cancel(reader);
  }
}
