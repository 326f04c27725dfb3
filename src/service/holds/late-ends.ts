import { StorageError, type TakeResult } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import { heldCount } from '../../limiter/holds/hold.js';
import { BackOff } from '../../runtime/back-off.js';
import { IdleWait } from '../../runtime/idle-wait.js';
import type { HoldEnd } from './settle.js';

/** Maximum number of ends that are sent or wait. Further ones are lost, and their holds expire. */
const MAX_ENDS = 10_000;
/** Maximum number of them that were deferred and wait, so that one caller leaves room for the ends of others. */
const MAX_DEFERRED = MAX_ENDS / 2;
/**
 * Maximum work of the ends of a queue that are sent after a pause, see {@link heldCount}. A single end may be more
 * work.
 */
const MAX_WORK_AFTER_PAUSE = 256;
/** Pauses between deferred ends, and between ends that failed, in milliseconds. */
const DEFERRED_PAUSE_MS = 10;
const FAILED_PAUSES = { initialMs: 100, maxMs: 5000 };

/**
 * Returns whether an end that failed may be sent again. The end of the oldest hold may not if the store possibly
 * executed it, because it would settle another hold.
 */
export function mayRepeat({ hold }: HoldEnd, { unsent }: StorageError): boolean {
  return hold !== undefined || unsent;
}

/**
 * Receives the result of an end, or undefined if it was given up. `mayHaveRun`: the store may have executed an earlier
 * attempt that it did not answer. Then it finds no hold.
 */
export type Noted = (result: TakeResult | undefined, mayHaveRun: boolean) => void;

interface LateEnd {
  readonly end: HoldEnd;
  /** Time at which its hold has expired at the latest, in microseconds of the monotonic clock. */
  readonly untilMicros: number;
  readonly noted: Noted | undefined;
  mayHaveRun: boolean;
}

/** Ends that wait, in the order in which they are sent. */
class LateQueue {
  readonly ends = new Set<LateEnd>();
  /** Returns the milliseconds until the next ends are sent. */
  readonly pause: () => number;
  timer: NodeJS.Timeout | undefined;
  /** Milliseconds of the latest pause. */
  pauseMs = 0;

  constructor(pause: () => number) {
    this.pause = pause;
  }
}

/**
 * Ends of holds that no caller waits for: settlements that could not reach the store, and holds of requests whose
 * callers are gone. Each is sent at once, and repeated until the store answers or the hold expires. Repeating one that
 * names its hold is harmless, because a hold ends only once. A server that hangs delays no ends for other servers.
 */
export class LateEnds {
  readonly #clock: Clock;
  readonly #send: (end: HoldEnd) => TakeResult | Promise<TakeResult>;
  readonly #pauses = new BackOff(FAILED_PAUSES);
  readonly #failed = new LateQueue(() => this.#pauses.next());
  readonly #deferred = new LateQueue(() => DEFERRED_PAUSE_MS);
  readonly #idle = new IdleWait(() => this.#count === 0);
  #sent = 0;

  /** `send` sends an end to its store. */
  constructor(clock: Clock, send: (end: HoldEnd) => TakeResult | Promise<TakeResult>) {
    this.#clock = clock;
    this.#send = send;
  }

  /** Sends an end, and repeats it if it fails. `failure`: the error of an earlier attempt. */
  add(end: HoldEnd, noted?: Noted, failure?: StorageError): void {
    const late = this.#lateEndOf(end, noted);
    if (late === undefined) return;
    late.mayHaveRun = failure?.unsent === false;
    void this.#try(late);
  }

  /** Like {@link add}, but sends the end after those that were deferred before, so slowly that they delay no caller. */
  defer(end: HoldEnd, noted?: Noted): void {
    const late = this.#lateEndOf(end, noted, this.#deferred.ends.size < MAX_DEFERRED);
    if (late !== undefined) this.#wait(this.#deferred, late);
  }

  /**
   * Waits until no ends are left, for at most `graceMs`. Further ones are lost. Returns the number of lost ends. Call
   * it once, when no more ends follow.
   */
  async drain(graceMs: number): Promise<number> {
    this.#endLongPause();
    await this.#idle.wait(graceMs);
    const lost = this.#count;
    for (const { ends } of [this.#failed, this.#deferred]) {
      for (const { noted, mayHaveRun } of ends) noted?.(undefined, mayHaveRun);
      ends.clear();
    }
    return lost;
  }

  /** Number of ends that are sent or wait. */
  get #count(): number {
    return this.#sent + this.#failed.ends.size + this.#deferred.ends.size;
  }

  /** Returns undefined if there are too many ends. */
  #lateEndOf(end: HoldEnd, noted: Noted | undefined, hasRoom = true): LateEnd | undefined {
    if (!hasRoom || this.#count >= MAX_ENDS) {
      noted?.(undefined, false);
      return undefined;
    }
    const lifetimeMillis = end.hold?.lifetimeMillis ?? end.held.rule.hold?.expiresAfterMillis ?? 0;
    const untilMicros = this.#clock.monotonicMicros() + lifetimeMillis * 1000;
    return { end, untilMicros, noted, mayHaveRun: false };
  }

  async #try(late: LateEnd): Promise<void> {
    this.#sent++;
    const result = await this.#send(late.end);
    this.#sent--;
    if (result instanceof StorageError && mayRepeat(late.end, result)) {
      late.mayHaveRun ||= !result.unsent;
      this.#wait(this.#failed, late);
      return;
    }
    const { noted, mayHaveRun } = late;
    if (result instanceof StorageError) noted?.(undefined, mayHaveRun);
    else {
      this.#endLongPause();
      noted?.(result, mayHaveRun);
    }
    this.#idle.check();
  }

  #wait(queue: LateQueue, late: LateEnd): void {
    queue.ends.add(late);
    this.#sendAfterPause(queue);
  }

  #sendAfterPause(queue: LateQueue): void {
    if (queue.ends.size === 0 || queue.timer !== undefined) return;
    queue.pauseMs = queue.pause();
    queue.timer = setTimeout(() => {
      queue.timer = undefined;
      this.#sendFrom(queue.ends);
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

  #sendFrom(ends: Set<LateEnd>): void {
    const nowMicros = this.#clock.monotonicMicros();
    let work = 0;
    for (const late of ends) {
      const isExpired = late.untilMicros <= nowMicros;
      if (!isExpired && work >= MAX_WORK_AFTER_PAUSE) break;
      ends.delete(late);
      if (isExpired) late.noted?.(undefined, late.mayHaveRun);
      else {
        work += heldCount(late.end.item);
        void this.#try(late);
      }
    }
    this.#idle.check();
  }
}
