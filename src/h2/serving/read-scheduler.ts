import { type NextTurn, TurnScheduler } from '../../runtime/turns.js';
import { ReadQuantum } from '../frame-reader.js';

/** Maximum time that one connection is read in a turn, in milliseconds. */
export const SLICE_MS = 1;
/**
 * Maximum time that all connections together are read in a turn, in milliseconds. A slice that has started may exceed
 * it.
 */
export const TURN_MS = 3;
/**
 * Maximum bytes of one connection that are read in a turn. Copying a large message takes little time for each frame, so
 * a time limit alone is not enough.
 */
export const SLICE_BYTES = 65_536;
/**
 * A connection whose recent reading time exceeds this is heavy, and waits behind light connections. Milliseconds,
 * halved each turn.
 */
const LIGHT_MS = 0.25;
/**
 * Slice of a light connection that had to wait, in milliseconds. It is long enough to recognize a heavy connection:
 * many connections that start a flood at the same time are soon distinguished from normal callers.
 */
const LIGHT_SLICE_MS = 0.3;
/** Number of turns after which the recent reading time of a connection is reset to 0. */
const HISTORY_TURNS = 16;
/** Half-life, in turns, of the reading time that determines the order of heavy connections. */
const SHARE_TURNS = 16;
/** Maximum number of heavy connections that are compared, oldest first, to find the one with the lowest rank. */
const MAX_RANKED = 64;

/** Scheduling state of one connection. */
export class ReaderState {
  /** Reads pending data for one slice. Returns false if no data is pending afterwards. */
  readonly resumeReading: () => boolean;
  /** The turn that {@link usedMs} and {@link bytes} belong to. */
  turn = 0;
  usedMs = 0;
  bytes = 0;
  /** Recent reading time in milliseconds, halved each turn. */
  recentMs = 0;
  /** Reading time in milliseconds over many turns, halved every {@link SHARE_TURNS} turns. */
  shareMs = 0;
  /** {@link shareMs} of a waiting connection, scaled so that ranks of different turns are comparable. */
  rank = 0;

  constructor(readOn: () => boolean) {
    this.resumeReading = readOn;
  }
}

/**
 * Shares the event loop among the connections of a process. In each turn, a connection is read for at most one slice,
 * and all connections together for a few milliseconds. Further data waits, with its socket paused, and is read in later
 * turns, in order of arrival. Connections with little recent reading time come first, so that a normal caller never
 * waits for the backlog of a flood.
 *
 * Without this, libuv reads up to 2 MiB from one socket before it continues with the next.
 */
export class ReadScheduler {
  /** The slice that is in progress. */
  readonly readQuantum: ReadQuantum;
  readonly #nowMs: () => number;
  /** The budget of a turn is in milliseconds. */
  readonly #turns: TurnScheduler<never>;
  /** Waiting connections, oldest first. */
  readonly #light = new Set<ReaderState>();
  readonly #heavy = new Set<ReaderState>();
  #turn = HISTORY_TURNS;
  #beganMs = 0;

  /** `nowMs`: clock in milliseconds that never goes back. */
  constructor(nowMs: () => number, nextTurn?: NextTurn) {
    this.#nowMs = nowMs;
    this.#turns = new TurnScheduler({ budget: TURN_MS, onTurn: () => this.#next(), nextTurn });
    this.readQuantum = new ReadQuantum(nowMs);
  }

  /** Number of connections that wait for a turn. */
  get waiting(): number {
    return this.#light.size + this.#heavy.size;
  }

  /**
   * Called when data has arrived. Returns true if the connection may read it now, until {@link readQuantum} is over; it
   * must then call {@link finish}. Returns false if the connection must {@link wait}.
   */
  tryStart(reader: ReaderState): boolean {
    if (reader.turn !== this.#turn) this.#startTurn(reader);
    if (
      this.#turns.remaining <= 0 ||
      this.#light.size > 0 ||
      reader.usedMs >= SLICE_MS ||
      reader.bytes >= SLICE_BYTES
    ) {
      return false;
    }
    if (this.#heavy.size > 0 && reader.recentMs > LIGHT_MS) return false;
    this.#begin(SLICE_MS - reader.usedMs);
    return true;
  }

  /**
   * Called after the connection has read `bytes`. Returns true if the slice is used up; the connection must then
   * {@link wait} even if it has no pending data.
   */
  finish(reader: ReaderState, bytes: number): boolean {
    const tookMs = this.#nowMs() - this.#beganMs;
    this.#turns.spend(tookMs);
    reader.usedMs += tookMs;
    reader.recentMs += tookMs;
    reader.shareMs += tookMs;
    reader.bytes += bytes;
    return reader.bytes >= SLICE_BYTES;
  }

  /** Schedules {@link ReaderState.resumeReading} for one of the next turns. */
  wait(reader: ReaderState): void {
    if (this.#light.has(reader) || this.#heavy.has(reader)) return;
    if (reader.recentMs <= LIGHT_MS) this.#light.add(reader);
    else {
      // The weight of past reading time halves at a constant rate, so its logarithm decreases by a constant each turn.
      reader.rank = Math.log2(reader.shareMs) + this.#turn / SHARE_TURNS;
      this.#heavy.add(reader);
    }
    this.#turns.schedule();
  }

  /** Removes a connection that has closed. */
  remove(reader: ReaderState): void {
    this.#light.delete(reader);
    this.#heavy.delete(reader);
  }

  #startTurn(reader: ReaderState): void {
    const turns = this.#turn - reader.turn;
    reader.recentMs = turns >= HISTORY_TURNS ? 0 : reader.recentMs / 2 ** turns;
    reader.shareMs *= 2 ** (-turns / SHARE_TURNS);
    reader.turn = this.#turn;
    reader.usedMs = 0;
    reader.bytes = 0;
  }

  #begin(spanMs: number): void {
    this.#beganMs = this.#nowMs();
    this.readQuantum.begin(this.#beganMs, spanMs);
  }

  /** Called at the start of a turn: serves the waiting connections. */
  #next(): void {
    this.#turn++;
    this.#serve(this.#light, LIGHT_SLICE_MS, () => first(this.#light));
    this.#serve(this.#heavy, SLICE_MS, () => this.#smallest());
    if (this.waiting > 0) this.#turns.schedule();
  }

  /** Returns the heavy connection with the lowest rank that was not read in this turn. */
  #smallest(): ReaderState | undefined {
    let smallest: ReaderState | undefined;
    let compared = 0;
    for (const reader of this.#heavy) {
      if (compared++ === MAX_RANKED) break;
      if (reader.turn !== this.#turn && (smallest === undefined || reader.rank < smallest.rank))
        smallest = reader;
    }
    return smallest;
  }

  #serve(readers: Set<ReaderState>, spanMs: number, next: () => ReaderState | undefined): void {
    // A connection that waits again must not be served in the same turn, but iterating over a Set includes elements
    // that are added meanwhile.
    for (let rest = readers.size; rest > 0 && this.#turns.remaining > 0; rest--) {
      const reader = next();
      if (reader === undefined) return;
      readers.delete(reader);
      // The connection was already read in this turn, possibly from the other queue.
      if (reader.turn === this.#turn) {
        this.wait(reader);
        continue;
      }
      this.#startTurn(reader);
      this.#begin(spanMs);
      if (reader.resumeReading()) this.wait(reader);
    }
  }
}

function first(readers: Set<ReaderState>): ReaderState | undefined {
  for (const reader of readers) return reader;
  return undefined;
}
