import { systemClock } from '../../../limiter/clock.js';
import type { SendCommand } from '../connection/connection-options.js';
import { RedisReplyError } from '../connection/redis-error.js';
import { redisFaultOf } from '../connection/redis-fault.js';
import type { ReplyBound } from '../connection/reply-bound.js';
import type { RedisStoreOptions } from '../redis-store-options.js';
import type { RedisTime } from '../redis-time.js';
import { CallerClock } from './caller-clock.js';

/** Reply to TIME: seconds and microseconds, as text. */
const TIME_REPLY: ReplyBound = { integers: 2, textBytes: 16 };
/**
 * Minimum interval between two requests for Redis's time, in microseconds. The next call after it sends the request.
 */
const TIME_INTERVAL_MICROS = 5_000_000;
/** Errors of Redis and services that do not support or permit TIME. */
const TIME_REFUSED = /^NOPERM|unknown|unsupported|not (?:allowed|supported)|disabled/i;

/** Supplies the time argument of the scripts for one Redis, or leaves it empty so that a script reads the time. */
export class ScriptClock {
  readonly #options: RedisStoreOptions;
  readonly #time: RedisTime;
  readonly #monotonicMicros: () => number;
  readonly #clock: CallerClock;
  #suppliesTime: boolean;
  #asking = false;
  #askedMicros = -Infinity;
  /** Whether this Redis refuses TIME. */
  #isTimeRefused = false;

  /** `time`: the time in the replies of that Redis. `monotonicMicros`: the clock of deadlines. */
  constructor(options: RedisStoreOptions, time: RedisTime, monotonicMicros: () => number) {
    this.#options = options;
    this.#time = time;
    this.#monotonicMicros = monotonicMicros;
    this.#suppliesTime = options.clockOf === 'caller';
    this.#clock = new CallerClock(monotonicMicros);
  }

  /**
   * Returns the first of ARGV, see take.lua. At intervals, requests the time from Redis with `send`, without waiting
   * for it.
   */
  argument(send: SendCommand): string {
    const { clock, clockOf } = this.#options;
    if (clock !== undefined) return `${clockOf === 'caller' ? '+' : ''}${clock()}`;
    if (!this.#suppliesTime) return '';
    const now = this.#monotonicMicros();
    if (!this.#asking && now - this.#askedMicros >= TIME_INTERVAL_MICROS) void this.#ask(send);
    // Until the first reply, the time comes from the script's replies or this machine's clock.
    if (!this.#clock.isSet) this.#clock.read(this.#time.estimatedMicros(), now, now);
    return `+${this.#clock.nowMicros()}`;
  }

  /**
   * Called for a new connection, which may lead to another Redis. If scripts get the time as an argument, requests it
   * and waits.
   */
  async begin(send: SendCommand): Promise<void> {
    if (this.#suppliesTime) await this.#ask(send);
  }

  /**
   * Returns whether `error` means that the script must not read the time, and the call can be repeated with the time as
   * an argument. Requests the time with `send`, and waits only if no time of Redis is known.
   */
  async canSupplyTimeAfter(error: unknown, send: SendCommand): Promise<boolean> {
    const { clockOf, clock } = this.#options;
    if (clockOf === 'server' || clock !== undefined || !(error instanceof RedisReplyError)) return false;
    if (redisFaultOf(error.message).reason !== 'no_time') return false;
    if (!this.#suppliesTime) {
      this.#suppliesTime = true;
      const consequence = 'weir now passes the time to scripts, as with REDIS_CLOCK=caller';
      this.#warn(`does not allow scripts to read the time; ${consequence} (${error.message})`);
    }
    if (!this.#clock.isSet && this.#time.seenMicros === 0) await this.#ask(send);
    return true;
  }

  async #ask(send: SendCommand): Promise<void> {
    const asked = this.#monotonicMicros();
    this.#asking = true;
    this.#askedMicros = asked;
    try {
      const [seconds, micros] = (await send('time', [], TIME_REPLY)) as readonly [number, number];
      this.#clock.read(seconds * 1_000_000 + micros, asked, this.#monotonicMicros());
      this.#isTimeRefused = false;
    } catch (error) {
      // The call that follows this request reports any other error.
      if (error instanceof RedisReplyError && TIME_REFUSED.test(error.message))
        this.#useMachineClock(error.message);
    } finally {
      this.#asking = false;
    }
  }

  #useMachineClock(text: string): void {
    const now = this.#monotonicMicros();
    this.#clock.read(systemClock.wallMicros(), now, now);
    if (this.#isTimeRefused) return;
    this.#isTimeRefused = true;
    const consequence =
      "weir uses this machine's clock instead; synchronize the clocks of all machines that run weir to " +
      'within one second';
    this.#warn(`does not report the time; ${consequence} (${text})`);
  }

  #warn(text: string): void {
    const { log, address } = this.#options;
    log?.('warn', `Redis ${address.redactedAddress} ${text}`);
  }
}
