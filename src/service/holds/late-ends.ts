import { StorageError, type TakeResult } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import { BackOff } from '../../runtime/back-off.js';
import { type HoldEnd, workOf } from './settle.js';

/** Maximum number of ends that are sent or wait. Further ones are lost, and their holds expire. */
const MAX_ENDS = 10_000;
/** Maximum number of them that were deferred and wait, so that one caller leaves room for the ends of others. */
const MAX_DEFERRED = MAX_ENDS / 2;
/**
 * Maximum work of the ends of a queue that are sent after a pause, see {@link workOf}, and the pause before the next
 * ones, in milliseconds. A single end may be more work.
 */
const MAX_WORK_AFTER_PAUSE = 256;
const PAUSE_MS = 10;

/**
 * Returns whether an end that failed may be sent again. The end of the oldest hold may not if the store possibly
 * executed it, because it would settle another hold.
 */
export function mayRepeat({ hold }: HoldEnd, { unsent }: StorageError): boolean {
  return hold !== undefined || unsent;
}

/** Receives the result of an end, or undefined if it was given up. */
type Noted = (result: TakeResult | undefined) => void;

interface LateEnd {
  readonly end: HoldEnd;
  /** Time at which its hold has expired at the latest, in microseconds of the monotonic clock. */
  readonly untilMicros: number;
  readonly noted: Noted | undefined;
}

/**
 * Ends of holds that no caller waits for: settlements that could not reach the store, and holds of requests whose
 * callers are gone. Each is sent at once, and repeated until the store answers or the hold expires. Repeating one that
 * names its hold is harmless, because a hold ends only once. A server that hangs delays no ends for other servers.
 */
export class LateEnds {
  readonly #clock: Clock;
  readonly #send: (end: HoldEnd) => TakeResult | Promise<TakeResult>;
  /** Ends that failed, and ends that were deferred, each in the order in which they are sent. */
  readonly #failed = new Set<LateEnd>();
  readonly #deferred = new Set<LateEnd>();
  readonly #pauses = new BackOff({ initialMs: 100, maxMs: 5000 });
  #sent = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `send` sends an end to its store. */
  constructor(clock: Clock, send: (end: HoldEnd) => TakeResult | Promise<TakeResult>) {
    this.#clock = clock;
    this.#send = send;
  }

  /** Sends an end, and repeats it if it fails. */
  add(end: HoldEnd, noted?: Noted): void {
    const late = this.#lateEndOf(end, noted);
    if (late !== undefined) void this.#try(late);
  }

  /** Like {@link add}, but sends the end after those that were deferred before, so slowly that they delay no caller. */
  defer(end: HoldEnd, noted?: Noted): void {
    const late = this.#lateEndOf(end, noted, this.#deferred.size < MAX_DEFERRED);
    if (late === undefined) return;
    this.#deferred.add(late);
    this.#timer ??= this.#timerOf(PAUSE_MS);
  }

  get #waiting(): number {
    return this.#failed.size + this.#deferred.size;
  }

  /** Returns undefined if there are too many ends. */
  #lateEndOf(end: HoldEnd, noted: Noted | undefined, hasRoom = true): LateEnd | undefined {
    if (!hasRoom || this.#sent + this.#waiting >= MAX_ENDS) {
      noted?.(undefined);
      return undefined;
    }
    const lifetimeMillis = end.hold?.lifetimeMillis ?? end.held.rule.hold?.expiresAfterMillis ?? 0;
    return { end, untilMicros: this.#clock.monotonicMicros() + lifetimeMillis * 1000, noted };
  }

  #timerOf(pauseMs: number): NodeJS.Timeout {
    return setTimeout(() => this.#sendWaiting(), pauseMs).unref();
  }

  async #try(late: LateEnd): Promise<void> {
    this.#sent++;
    const result = await this.#send(late.end);
    this.#sent--;
    if (result instanceof StorageError && !mayRepeat(late.end, result)) {
      late.noted?.(undefined);
      return;
    }
    if (result instanceof StorageError) {
      this.#failed.add(late);
      this.#timer ??= this.#timerOf(this.#pauses.next());
      return;
    }
    this.#pauses.reset();
    late.noted?.(result);
  }

  #sendWaiting(): void {
    this.#timer = undefined;
    this.#sendFrom(this.#failed);
    this.#sendFrom(this.#deferred);
    if (this.#waiting > 0) this.#timer = this.#timerOf(PAUSE_MS);
  }

  #sendFrom(queue: Set<LateEnd>): void {
    const nowMicros = this.#clock.monotonicMicros();
    let work = 0;
    for (const late of queue) {
      const isExpired = late.untilMicros <= nowMicros;
      if (!isExpired && work >= MAX_WORK_AFTER_PAUSE) break;
      queue.delete(late);
      if (isExpired) late.noted?.(undefined);
      else {
        work += workOf(late.end);
        void this.#try(late);
      }
    }
  }
}
