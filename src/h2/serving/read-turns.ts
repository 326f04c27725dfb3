import { type NextTurn, TurnScheduler } from '../../runtime/turns.js';
import { WorkUnit } from '../work-unit.js';

/** What one connection may take of a turn. Milliseconds. */
export const UNIT_MS = 1;
/** What all connections together may take of a turn, but for the unit that is begun. Milliseconds. */
export const TURN_MS = 3;
/** Bytes of one connection in a turn: copying a large message costs little time for each frame. */
export const UNIT_BYTES = 65_536;
/**
 * A connection that has lately taken more than this waits behind those that have not. Milliseconds, halved each turn.
 */
const LIGHT_MS = 0.25;
/**
 * What one of those takes that had to wait: enough to tell. Many that begin to flood at once are soon told from a usual
 * caller. Milliseconds.
 */
const LIGHT_UNIT_MS = 0.3;
/** Turns after which what a connection took lately is forgotten. */
const FORGET_TURNS = 16;
/** Turns in which a connection's share of the time, by which those that took much are ordered, falls to a half. */
const SHARE_TURNS = 16;
/** Of so many that took much, the oldest ones, the one with the smallest share comes first. */
const LOOKED_AT = 64;

/** A connection's place in the turns. */
export class Seat {
  /** Reads on, for one unit, in what waits. False when nothing waits any more. */
  readonly readOn: () => boolean;
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
    this.readOn = readOn;
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
export class ReadTurns {
  /** The unit that is being worked on. */
  readonly unit: WorkUnit;
  readonly #nowMs: () => number;
  /** Milliseconds. */
  readonly #turns: TurnScheduler<never>;
  /** Waiting, oldest first: those that took little, and the others. */
  readonly #light = new Set<Seat>();
  readonly #heavy = new Set<Seat>();
  #turn = FORGET_TURNS;
  #beganMs = 0;

  /** `nowMs`: milliseconds on a clock that never goes back. */
  constructor(nowMs: () => number, nextTurn?: NextTurn) {
    this.#nowMs = nowMs;
    this.#turns = new TurnScheduler({ budget: TURN_MS, onTurn: () => this.#next(), nextTurn });
    this.unit = new WorkUnit(nowMs);
  }

  /** Connections that wait for a turn. */
  get waiting(): number {
    return this.#light.size + this.#heavy.size;
  }

  /**
   * Bytes have come. True: the connection may read them now, until {@link unit} is over, and then calls {@link leave}.
   * False: it has to {@link wait}.
   */
  enter(seat: Seat): boolean {
    if (seat.turn !== this.#turn) this.#renew(seat);
    if (
      this.#turns.remaining <= 0 ||
      this.#light.size > 0 ||
      seat.usedMs >= UNIT_MS ||
      seat.bytes >= UNIT_BYTES
    ) {
      return false;
    }
    if (this.#heavy.size > 0 && seat.recentMs > LIGHT_MS) return false;
    this.#begin(UNIT_MS - seat.usedMs);
    return true;
  }

  /**
   * The connection has read `bytes`. True: it has used up its unit, and should {@link wait} even if it has read all
   * there was.
   */
  leave(seat: Seat, bytes: number): boolean {
    const tookMs = this.#nowMs() - this.#beganMs;
    this.#turns.spend(tookMs);
    seat.usedMs += tookMs;
    seat.recentMs += tookMs;
    seat.shareMs += tookMs;
    seat.bytes += bytes;
    return seat.bytes >= UNIT_BYTES;
  }

  /** Calls {@link Seat.readOn} in one of the next turns. */
  wait(seat: Seat): void {
    if (this.#light.has(seat) || this.#heavy.has(seat)) return;
    if (seat.recentMs <= LIGHT_MS) this.#light.add(seat);
    else {
      // What it took is worth less with each turn: the logarithm of that falls by as much in each.
      seat.rank = Math.log2(seat.shareMs) + this.#turn / SHARE_TURNS;
      this.#heavy.add(seat);
    }
    this.#turns.schedule();
  }

  /** The connection is gone. */
  remove(seat: Seat): void {
    this.#light.delete(seat);
    this.#heavy.delete(seat);
  }

  #renew(seat: Seat): void {
    const turns = this.#turn - seat.turn;
    seat.recentMs = turns >= FORGET_TURNS ? 0 : seat.recentMs / 2 ** turns;
    seat.shareMs *= 2 ** (-turns / SHARE_TURNS);
    seat.turn = this.#turn;
    seat.usedMs = 0;
    seat.bytes = 0;
  }

  #begin(spanMs: number): void {
    this.#beganMs = this.#nowMs();
    this.unit.begin(this.#beganMs, spanMs);
  }

  /** A turn of the event loop ends, and what waits has its share of the next. */
  #next(): void {
    this.#turn++;
    this.#serve(this.#light, LIGHT_UNIT_MS, () => first(this.#light));
    this.#serve(this.#heavy, UNIT_MS, () => this.#smallest());
    if (this.waiting > 0) this.#turns.schedule();
  }

  /** Of those that took much, and have not read in this turn, the one with the smallest share. */
  #smallest(): Seat | undefined {
    let smallest: Seat | undefined;
    let looked = 0;
    for (const seat of this.#heavy) {
      if (looked++ === LOOKED_AT) break;
      if (seat.turn !== this.#turn && (smallest === undefined || seat.rank < smallest.rank)) smallest = seat;
    }
    return smallest;
  }

  #serve(seats: Set<Seat>, spanMs: number, next: () => Seat | undefined): void {
    // Those that have to wait on stand behind the ones that were there, which a Set would go on to in the same loop.
    for (let rest = seats.size; rest > 0 && this.#turns.remaining > 0; rest--) {
      const seat = next();
      if (seat === undefined) return;
      seats.delete(seat);
      // It has read in this turn already; or it has got here from the other queue.
      if (seat.turn === this.#turn) {
        this.wait(seat);
        continue;
      }
      this.#renew(seat);
      this.#begin(spanMs);
      if (seat.readOn()) this.wait(seat);
    }
  }
}

function first(seats: Set<Seat>): Seat | undefined {
  for (const seat of seats) return seat;
  return undefined;
}
