import { StorageError, type TakeResult } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import { BackOff } from '../../runtime/back-off.js';
import type { HoldEnd } from './settle.js';

/** Maximum number of ends that are sent or wait. Further ones are lost, and their holds expire. */
const MAX_ENDS = 10_000;
/** Maximum number of ends that are repeated at once, and the pause before the next ones, in milliseconds. */
const MAX_REPEATED = 256;
const REPEAT_PAUSE_MS = 10;

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
 * callers are gone. Each is sent at once, and repeated until the store answers or the hold expires. Repeating one is
 * harmless, because a hold ends only once. A server that hangs delays no ends for other servers.
 */
export class LateEnds {
  readonly #clock: Clock;
  readonly #send: (end: HoldEnd) => TakeResult | Promise<TakeResult>;
  /** Ends that failed, in the order in which they are repeated. */
  readonly #failed = new Set<LateEnd>();
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
    if (this.#sent + this.#failed.size >= MAX_ENDS) {
      noted?.(undefined);
      return;
    }
    const untilMicros = this.#clock.monotonicMicros() + end.hold.lifetimeMillis * 1000;
    void this.#try({ end, untilMicros, noted });
  }

  async #try(late: LateEnd): Promise<void> {
    this.#sent++;
    const result = await this.#send(late.end);
    this.#sent--;
    if (result instanceof StorageError) {
      this.#failed.add(late);
      this.#timer ??= setTimeout(() => this.#repeat(), this.#pauses.next()).unref();
      return;
    }
    this.#pauses.reset();
    late.noted?.(result);
  }

  #repeat(): void {
    this.#timer = undefined;
    const nowMicros = this.#clock.monotonicMicros();
    let repeated = 0;
    for (const late of [...this.#failed]) {
      if (late.untilMicros > nowMicros && repeated++ >= MAX_REPEATED) break;
      this.#failed.delete(late);
      if (late.untilMicros > nowMicros) void this.#try(late);
      else late.noted?.(undefined);
    }
    if (this.#failed.size > 0) this.#timer = setTimeout(() => this.#repeat(), REPEAT_PAUSE_MS).unref();
  }
}
