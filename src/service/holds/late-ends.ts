import { StorageError, type TakeResult } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import { type HoldId, heldCount } from '../../limiter/holds/hold.js';
import { BackOff } from '../../runtime/back-off.js';
import { FairCapacity } from '../../runtime/fair-capacity.js';
import { IdleWait } from '../../runtime/idle-wait.js';
import type { HoldEnd } from './settle.js';

/**
 * Maximum memory of the ends that are sent or wait, in bytes: of those whose tokens this process or a sibling has
 * made, of those of starts without an answer, and of the others. The last two have the same maximum. Further ones are
 * lost, and their holds expire. See {@link FairCapacity} about the share of one connection.
 */
export const MAX_OWN_BYTES = 16 * 1024 * 1024;
export const MAX_OTHER_BYTES = 8 * 1024 * 1024;
/** Approximate memory of an end without the name of its bucket, including a token that it refers to. */
const END_BYTES = 1536;
/**
 * Maximum work of the ends of a queue that are sent after a pause, see {@link heldCount}. A single end may be more
 * work.
 */
const MAX_WORK_AFTER_PAUSE = 256;
/** Maximum number of ends with more work than is left that others pass in one pause. */
const MAX_PASSED = 256;
/** Pauses between deferred ends, and between ends that failed, in milliseconds. */
const DEFERRED_PAUSE_MS = 10;
const FAILED_PAUSES = { initialMs: 100, maxMs: 5000 };

/**
 * Returns whether an end that failed may be sent again. The end of the oldest hold may not if the store possibly
 * executed it, because it would settle another hold.
 */
function mayRepeat({ hold }: HoldEnd, { unsent }: StorageError): boolean {
  return hold !== undefined || unsent;
}

/** Where an end comes from. */
export interface EndSource {
  /** Identifies the connection of its call. */
  readonly connection: unknown;
  /** Returns whether this process, or one with the same key, has made the token of the end. */
  isOwn(): boolean;
  /** Whether it ends the hold of a start without an answer, which may not exist. Its caller has no token for it. */
  readonly isAbandoned?: boolean;
}

/**
 * What became of an end: the store's answer, `waiting` if it is sent again later, or why it was given up. `repeated`:
 * another end of the same hold is waiting.
 */
type EndResult = TakeResult | 'waiting' | 'lost' | 'repeated';

/**
 * Receives the results of an end: at most once `waiting`, and then the last one. `hasRun`: the store may have executed
 * an earlier attempt that it did not answer. If no hold is found, that attempt has ended it. Always false for an end
 * whose token may be forged.
 */
export type Noted = (result: EndResult, hasRun: boolean) => void;

interface LateEnd {
  readonly end: HoldEnd;
  readonly source: EndSource;
  readonly noted: Noted;
  readonly bytes: number;
  /** Where {@link bytes} were acquired, and whether they count for the connection. */
  readonly room: FairCapacity;
  readonly isContended: boolean;
  readonly addedMicros: number;
  /** Whether its hold is in the list of own ends. */
  isListed: boolean;
  /** Time at which its hold has expired at the latest, in microseconds of the monotonic clock; 0 before it waits. */
  untilMicros: number;
  mayHaveRun: boolean;
}

/** Ends that wait, in the order in which they are sent. */
class LateQueue {
  readonly own = new Set<LateEnd>();
  readonly abandoned = new Set<LateEnd>();
  readonly others = new Set<LateEnd>();
  /** Returns the milliseconds until the next ends are sent. */
  readonly pause: () => number;
  timer: NodeJS.Timeout | undefined;
  /** Milliseconds of the latest pause. */
  pauseMs = 0;

  constructor(pause: () => number) {
    this.pause = pause;
  }

  get size(): number {
    return this.own.size + this.abandoned.size + this.others.size;
  }

  add(late: LateEnd): void {
    if (late.source.isOwn()) this.own.add(late);
    else if (late.source.isAbandoned === true) this.abandoned.add(late);
    else this.others.add(late);
  }

  delete(late: LateEnd): void {
    if (!this.own.delete(late) && !this.abandoned.delete(late)) this.others.delete(late);
  }

  /** Yields the ends whose tokens are not forged, those of abandoned starts, and then the others. */
  *[Symbol.iterator](): Generator<LateEnd, void> {
    yield* this.own;
    yield* this.abandoned;
    yield* this.others;
  }
}

/**
 * Ends of holds. Each is sent at once, and repeated until the store answers or the hold expires. Repeating one that
 * names its hold is harmless, because a hold ends only once. A server that hangs delays no ends for other servers.
 *
 * Anyone can invent tokens. Ends whose tokens this process or a sibling has made therefore go before all others, and
 * have memory of their own.
 */
export class LateEnds {
  readonly #clock: Clock;
  readonly #send: (end: HoldEnd) => TakeResult | Promise<TakeResult>;
  readonly #pauses = new BackOff(FAILED_PAUSES);
  readonly #failed = new LateQueue(() => this.#pauses.next());
  readonly #deferred = new LateQueue(() => DEFERRED_PAUSE_MS);
  readonly #idle = new IdleWait(() => this.#count === 0);
  readonly #ownRoom = new FairCapacity(MAX_OWN_BYTES);
  readonly #otherRoom = new FairCapacity(MAX_OTHER_BYTES);
  readonly #abandonedRoom = new FairCapacity(MAX_OTHER_BYTES);
  /** Holds with an own end that waits or has its memory in {@link #ownRoom}, so that repeated tokens need none. */
  readonly #ownIds = new Set<HoldId>();
  #sent = 0;

  /** `send` sends an end to its store. */
  constructor(clock: Clock, send: (end: HoldEnd) => TakeResult | Promise<TakeResult>) {
    this.#clock = clock;
    this.#send = send;
  }

  /**
   * Sends an end, and repeats it if it fails. Returns a promise that resolves after the first attempt; undefined if
   * nothing is awaited.
   */
  add(end: HoldEnd, source: EndSource, noted: Noted): Promise<void> | undefined {
    const late = this.#admit(end, source, noted);
    return late === undefined ? undefined : this.#try(late);
  }

  /** Like {@link add}, but sends the end after those that were deferred before, so slowly that they delay no caller. */
  defer(end: HoldEnd, source: EndSource, noted: Noted): undefined {
    const late = this.#admit(end, source, noted);
    if (late !== undefined) this.#wait(this.#deferred, late);
    return undefined;
  }

  /**
   * Waits until no ends are left, for at most `graceMs`. Further ones are lost. Returns the number of lost ends. Call
   * it once, when no more ends follow.
   */
  async drain(graceMs: number): Promise<number> {
    this.#endLongPause();
    await this.#idle.wait(graceMs);
    const lost = this.#count;
    for (const queue of [this.#failed, this.#deferred]) {
      for (const late of queue) this.#giveUp(queue, late);
    }
    return lost;
  }

  /** Number of ends that are sent or wait. */
  get #count(): number {
    return this.#sent + this.#failed.size + this.#deferred.size;
  }

  /**
   * Returns undefined if there is no room. Checks the mark of a token only while many ends wait, because the hash costs
   * as much as the rest.
   */
  #admit(end: HoldEnd, source: EndSource, noted: Noted): LateEnd | undefined {
    const bytes = END_BYTES + end.item.key.length;
    const isBusy = 2 * this.#otherRoom.used >= MAX_OTHER_BYTES;
    const ofToken = isBusy && source.isOwn() ? this.#ownRoom : this.#otherRoom;
    const room = source.isAbandoned === true ? this.#abandonedRoom : ofToken;
    if (!room.canAcquire(bytes, source.connection)) {
      noted('lost', false);
      return undefined;
    }
    const isListed = room === this.#ownRoom;
    if (isListed && !this.#list(end)) {
      noted('repeated', false);
      return undefined;
    }
    const isContended = room.acquire(bytes, source.connection);
    const addedMicros = this.#clock.monotonicMicros();
    const times = { addedMicros, untilMicros: 0 };
    return { end, source, noted, bytes, room, isContended, isListed, ...times, mayHaveRun: false };
  }

  /** Adds an own end to the list. Returns false if the list has another end of the same hold. */
  #list({ hold }: HoldEnd): boolean {
    if (hold === undefined) return true;
    if (this.#ownIds.has(hold.id)) return false;
    this.#ownIds.add(hold.id);
    return true;
  }

  /** Sends an end. Returns undefined if the store answers at once. */
  #try(late: LateEnd): Promise<void> | undefined {
    this.#sent++;
    const result = this.#send(late.end);
    if (result instanceof Promise) return result.then((answer) => this.#answered(late, answer));
    this.#answered(late, result);
    return undefined;
  }

  #answered(late: LateEnd, result: TakeResult): void {
    this.#sent--;
    if (result instanceof StorageError && mayRepeat(late.end, result)) {
      late.mayHaveRun ||= !result.unsent;
      this.#wait(this.#failed, late);
    } else if (result instanceof StorageError) {
      this.#finish(late, 'lost');
    } else {
      this.#endLongPause();
      this.#finish(late, result);
    }
    this.#idle.check();
  }

  /** Reports the last result of an end, and releases its memory. */
  #finish(late: LateEnd, result: EndResult): void {
    const { end, source, noted, bytes, room, isContended, mayHaveRun } = late;
    room.release(bytes, isContended ? [[source.connection, bytes]] : undefined);
    if (late.isListed && end.hold !== undefined) this.#ownIds.delete(end.hold.id);
    noted(result, mayHaveRun && source.isOwn());
  }

  #wait(queue: LateQueue, late: LateEnd): void {
    const { end, source, noted } = late;
    if (late.untilMicros === 0) {
      if (!late.isListed && source.isOwn()) {
        if (!this.#list(end)) {
          this.#finish(late, 'repeated');
          return;
        }
        late.isListed = true;
      }
      late.untilMicros = late.addedMicros + lifetimeOf(late) * 1000;
      noted('waiting', false);
    }
    queue.add(late);
    this.#sendAfterPause(queue);
  }

  #sendAfterPause(queue: LateQueue): void {
    if (queue.size === 0 || queue.timer !== undefined) return;
    queue.pauseMs = queue.pause();
    queue.timer = setTimeout(() => {
      queue.timer = undefined;
      this.#sendFrom(queue);
      this.#sendAfterPause(queue);
    }, queue.pauseMs).unref();
  }

  /** Shortens the pause of the ends that failed, after an end that did not. A short pause is not begun again. */
  #endLongPause(): void {
    const queue = this.#failed;
    this.#pauses.reset();
    if (queue.timer === undefined || queue.pauseMs <= FAILED_PAUSES.initialMs) return;
    clearTimeout(queue.timer);
    queue.timer = undefined;
    this.#sendAfterPause(queue);
  }

  /** Sends the next ends. Those with little work pass those with more work than is left. */
  #sendFrom(queue: LateQueue): void {
    const nowMicros = this.#clock.monotonicMicros();
    const next: LateEnd[] = [];
    let work = 0;
    let passed = 0;
    for (const late of queue) {
      const cost = heldCount(late.end.item);
      if (late.untilMicros <= nowMicros) this.#giveUp(queue, late);
      else if (work >= MAX_WORK_AFTER_PAUSE || passed >= MAX_PASSED) break;
      else if (work > 0 && work + cost > MAX_WORK_AFTER_PAUSE) passed++;
      else {
        work += cost;
        queue.delete(late);
        next.push(late);
      }
    }
    for (const late of next) void this.#try(late);
    this.#idle.check();
  }

  #giveUp(queue: LateQueue, late: LateEnd): void {
    queue.delete(late);
    this.#finish(late, 'lost');
  }
}

/** Returns the maximum lifetime of the hold of an end, in milliseconds. Nobody can invent a longer one. */
function lifetimeOf({ end: { hold, held }, source }: LateEnd): number {
  const usual = held.rule.hold?.expiresAfterMillis ?? 0;
  if (hold === undefined) return usual;
  return source.isOwn() ? hold.lifetimeMillis : Math.min(hold.lifetimeMillis, usual);
}
