import { type NextTurn, TurnScheduler } from '../../runtime/turns.js';
import { WorkSlice } from '../work-slice.js';

/** What one connection may take of a turn. Milliseconds. */
export const SLICE_MS = 1;
/** What all connections together may take of a turn, but for the unit that is begun. Milliseconds. */
export const TURN_MS = 3;
/** Bytes of one connection in a turn: copying a large message costs little time for each frame. */
export const SLICE_BYTES = 65_536;
/**
 * A connection that has lately taken more than this waits behind those that have not. Milliseconds, halved each turn.
 */
const LIGHT_MS = 0.25;
/**
 * What one of those takes that had to wait: enough to tell. Many that begin to flood at once are soon told from a usual
 * caller. Milliseconds.
 */
const LIGHT_SLICE_MS = 0.3;
/** Turns after which what a connection took lately is forgotten. */
const FORGET_TURNS = 16;
/** Turns in which a connection's share of the time, by which those that took much are ordered, falls to a half. */
const SHARE_TURNS = 16;
/** Of so many that took much, the oldest ones, the one with the smallest share comes first. */
const MAX_RANKED = 64;

/** A connection's place in the turns. */
export class ReaderState {
  /** Reads on, for one unit, in what waits. False when nothing waits any more. */
  readonly resumeReading: () => boolean;
  /** The turn that {@link usedMs} and {@link bytes} are of. */
  turn = 0;
  usedMs = 0;
  bytes = 0;
  /** Time taken lately, what was taken a turn ago counting half. */
  recentMs = 0;
  /** Time taken over many turns; what was taken {@link SHARE_TURNS} ago counts half. */
  shareMs = 0;
  /** {@link shareMs} of one that waits, to be compared with that of others whenever they came. */
  rank = 0;

  constructor(readOn: () => boolean) {
    this.resumeReading = readOn;
  }
}

/**
 * Shares the event loop among the connections of a process. In each of its turns a connection reads for one unit at
 * most, and all of them for a few milliseconds; what has come beyond that waits, its socket unread, and is read in the
 * order of arrival in the turns to come. Connections that have lately taken little come first, so that a usual caller
 * never waits for the backlog of those that send all they can.
 *
 * libuv alone would go on with one socket for 2 MiB, and then do the same with each of the others.
 */
export class ReadScheduler {
  /** The unit that is being worked on. */
  readonly workSlice: WorkSlice;
  readonly #nowMs: () => number;
  /** Milliseconds. */
  readonly #turns: TurnScheduler<never>;
  /** Waiting, oldest first: those that took little, and the others. */
  readonly #light = new Set<ReaderState>();
  readonly #heavy = new Set<ReaderState>();
  #turn = FORGET_TURNS;
  #beganMs = 0;

  /** `nowMs`: milliseconds on a clock that never goes back. */
  constructor(nowMs: () => number, nextTurn?: NextTurn) {
    this.#nowMs = nowMs;
    this.#turns = new TurnScheduler({ budget: TURN_MS, onTurn: () => this.#next(), nextTurn });
    this.workSlice = new WorkSlice(nowMs);
  }

  /** Connections that wait for a turn. */
  get waiting(): number {
    return this.#light.size + this.#heavy.size;
  }

  /**
   * Bytes have come. True: the connection may read them now, until {@link workSlice} is over, and then calls {@link finish}.
   * False: it has to {@link wait}.
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
   * The connection has read `bytes`. True: it has used up its unit, and should {@link wait} even if it has read all
   * there was.
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

  /** Calls {@link ReaderState.resumeReading} in one of the next turns. */
  wait(reader: ReaderState): void {
    if (this.#light.has(reader) || this.#heavy.has(reader)) return;
    if (reader.recentMs <= LIGHT_MS) this.#light.add(reader);
    else {
      // What it took is worth less with each turn: the logarithm of that falls by as much in each.
      reader.rank = Math.log2(reader.shareMs) + this.#turn / SHARE_TURNS;
      this.#heavy.add(reader);
    }
    this.#turns.schedule();
  }

  /** The connection is gone. */
  remove(reader: ReaderState): void {
    this.#light.delete(reader);
    this.#heavy.delete(reader);
  }

  #startTurn(reader: ReaderState): void {
    const turns = this.#turn - reader.turn;
    reader.recentMs = turns >= FORGET_TURNS ? 0 : reader.recentMs / 2 ** turns;
    reader.shareMs *= 2 ** (-turns / SHARE_TURNS);
    reader.turn = this.#turn;
    reader.usedMs = 0;
    reader.bytes = 0;
  }

  #begin(spanMs: number): void {
    this.#beganMs = this.#nowMs();
    this.workSlice.begin(this.#beganMs, spanMs);
  }

  /** A turn of the event loop ends, and what waits has its share of the next. */
  #next(): void {
    this.#turn++;
    this.#serve(this.#light, LIGHT_SLICE_MS, () => first(this.#light));
    this.#serve(this.#heavy, SLICE_MS, () => this.#smallest());
    if (this.waiting > 0) this.#turns.schedule();
  }

  /** Of those that took much, and have not read in this turn, the one with the smallest share. */
  #smallest(): ReaderState | undefined {
    let smallest: ReaderState | undefined;
    let looked = 0;
    for (const reader of this.#heavy) {
      if (looked++ === MAX_RANKED) break;
      if (reader.turn !== this.#turn && (smallest === undefined || reader.rank < smallest.rank))
        smallest = reader;
    }
    return smallest;
  }

  #serve(readers: Set<ReaderState>, spanMs: number, next: () => ReaderState | undefined): void {
    // Those that have to wait on stand behind the ones that were there, which a Set would go on to in the same loop.
    for (let rest = readers.size; rest > 0 && this.#turns.remaining > 0; rest--) {
      const reader = next();
      if (reader === undefined) return;
      readers.delete(reader);
      // It has read in this turn already; or it has got here from the other queue.
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
