import { StorageError, type TakeResult } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import { BackOff } from '../../runtime/back-off.js';
import type { HoldEnd } from './settle.js';

/** Maximum number of ends that wait. Further ones are lost, and their holds expire. */
const MAX_WAITING = 10_000;
/** Maximum number of ends that are sent at once. */
const MAX_SENT_AT_ONCE = 256;

/** Receives the result of an end, or undefined if it was given up. */
type Noted = (result: TakeResult | undefined) => void;

interface WaitingEnd {
  readonly end: HoldEnd;
  /** Time at which its hold has expired at the latest, in microseconds of the monotonic clock. */
  readonly untilMicros: number;
  readonly noted: Noted | undefined;
}

/**
 * Ends of holds that no caller waits for: settlements that could not reach the store, and holds of requests whose
 * callers are gone. They are sent until the store answers, or until the hold expires. Repeating one is harmless,
 * because a hold ends only once.
 */
export class LateEnds {
  readonly #clock: Clock;
  readonly #send: (end: HoldEnd) => TakeResult | Promise<TakeResult>;
  readonly #waiting = new Set<WaitingEnd>();
  readonly #pauses = new BackOff({ initialMs: 100, maxMs: 5000 });
  #isSending = false;
  #timer: NodeJS.Timeout | undefined;

  /** `send` sends an end to its store. */
  constructor(clock: Clock, send: (end: HoldEnd) => TakeResult | Promise<TakeResult>) {
    this.#clock = clock;
    this.#send = send;
  }

  /** Adds an end, and sends it soon. */
  add(end: HoldEnd, noted?: Noted): void {
    if (this.#waiting.size >= MAX_WAITING) {
      noted?.(undefined);
      return;
    }
    const untilMicros = this.#clock.monotonicMicros() + end.hold.lifetimeMillis * 1000;
    this.#waiting.add({ end, untilMicros, noted });
    if (!this.#isSending && this.#timer === undefined) void this.#run();
  }

  async #run(): Promise<void> {
    this.#timer = undefined;
    this.#isSending = true;
    let failed = false;
    const running: Promise<void>[] = [];
    for (const one of [...this.#waiting].slice(0, MAX_SENT_AT_ONCE)) {
      if (one.untilMicros <= this.#clock.monotonicMicros()) {
        this.#drop(one, undefined);
        continue;
      }
      running.push(
        Promise.resolve(this.#send(one.end)).then((result) => {
          if (!(result instanceof StorageError)) {
            this.#drop(one, result);
            return;
          }
          failed = true;
          // Others are tried first next time.
          this.#waiting.delete(one);
          this.#waiting.add(one);
        }),
      );
    }
    await Promise.all(running);
    this.#isSending = false;
    if (!failed) this.#pauses.reset();
    if (this.#waiting.size === 0) return;
    this.#timer = setTimeout(() => void this.#run(), failed ? this.#pauses.next() : 0).unref();
  }

  #drop(one: WaitingEnd, result: TakeResult | undefined): void {
    this.#waiting.delete(one);
    one.noted?.(result);
  }
}
