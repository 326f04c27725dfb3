import { systemClock } from '../../../limiter/clock.js';
import type { SendCommand } from '../connection/connection-options.js';
import { RedisReplyError } from '../connection/redis-error.js';
import { redisFaultOf } from '../connection/redis-fault.js';
import type { ReplyBound } from '../connection/reply-bound.js';
import type { RedisStoreOptions } from '../redis-store-options.js';
import type { RedisTime } from '../redis-time.js';
import { CallerClock } from './caller-clock.js';

/** What TIME answers: seconds and microseconds, as texts. */
const TIME_REPLY: ReplyBound = { integers: 2, textBytes: 16 };
/** Redis is asked for its time this long after it was asked before, by the next call. */
const TIME_INTERVAL_MICROS = 5_000_000;
/** What Redis, proxies and services say to TIME where they do not know or allow it. */
const TIME_REFUSED = /^NOPERM|unknown|unsupported|not (?:allowed|supported)|disabled/i;

/** The time that the script is given for a call to one Redis, or the word that it shall read it. */
export class ScriptClock {
  readonly #options: RedisStoreOptions;
  readonly #time: RedisTime;
  readonly #monotonicMicros: () => number;
  readonly #clock: CallerClock;
  #gives: boolean;
  #asking = false;
  #askedMicros = -Infinity;
  /** Whether this Redis does not tell the time at all. */
  #isTimeRefused = false;

  /** `time`: what is known from the replies of that Redis. `monotonicMicros`: clock of deadlines. */
  constructor(options: RedisStoreOptions, time: RedisTime, monotonicMicros: () => number) {
    this.#options = options;
    this.#time = time;
    this.#monotonicMicros = monotonicMicros;
    this.#gives = options.clockOf === 'caller';
    this.#clock = new CallerClock(monotonicMicros);
  }

  /** The first of ARGV, see take.lua. Asks Redis for the time by `send` now and then, and does not wait for that. */
  argument(send: SendCommand): string {
    const { clock, clockOf } = this.#options;
    if (clock !== undefined) return `${clockOf === 'caller' ? '+' : ''}${clock()}`;
    if (!this.#gives) return '';
    const now = this.#monotonicMicros();
    if (!this.#asking && now - this.#askedMicros >= TIME_INTERVAL_MICROS) void this.#ask(send);
    // Before the first answer, what the script itself said, or this machine's clock.
    if (!this.#clock.isSet) this.#clock.read(this.#time.estimatedMicros(), now, now);
    return `+${this.#clock.nowMicros()}`;
  }

  /** On a new connection, which may lead to another Redis: asks for its time, if that will be given, and waits. */
  async begin(send: SendCommand): Promise<void> {
    if (this.#gives) await this.#ask(send);
  }

  /**
   * Whether `error` is the script's that it may not read the time, and the same call can be sent again with the time
   * given: nothing was done. Asks for the time by `send`, and waits only where no time of Redis is known.
   */
  async canSupplyTimeAfter(error: unknown, send: SendCommand): Promise<boolean> {
    const { clockOf, clock } = this.#options;
    if (clockOf === 'server' || clock !== undefined || !(error instanceof RedisReplyError)) return false;
    if (redisFaultOf(error.message).reason !== 'no_time') return false;
    if (!this.#gives) {
      this.#gives = true;
      const means = 'weir gives them the time from now on, as with REDIS_CLOCK=caller';
      this.#warn(`does not tell scripts the time; ${means} (${error.message})`);
    }
    if (!this.#clock.isSet && this.#time.seenMicros === 0) await this.#ask(send);
    return true;
  }

  async #ask(send: SendCommand): Promise<void> {
    const asked = this.#monotonicMicros();
    this.#asking = true;
    this.#askedMicros = asked;
    if (this.#options.proxied !== undefined) {
      // Which of them it asks nobody knows, and twemproxy breaks off.
      this.#asking = false;
      this.#goByMachine('it is a proxy, with several clocks behind it');
      return;
    }
    try {
      const [seconds, micros] = (await send('time', [], TIME_REPLY)) as readonly [number, number];
      this.#clock.read(seconds * 1_000_000 + micros, asked, this.#monotonicMicros());
      this.#isTimeRefused = false;
    } catch (error) {
      // What else went wrong is seen by the call that is sent beside it.
      if (error instanceof RedisReplyError && TIME_REFUSED.test(error.message))
        this.#goByMachine(error.message);
    } finally {
      this.#asking = false;
    }
  }

  #goByMachine(text: string): void {
    const now = this.#monotonicMicros();
    this.#clock.read(systemClock.wallMicros(), now, now);
    if (this.#isTimeRefused) return;
    this.#isTimeRefused = true;
    const means =
      "weir goes by this machine's clock; keep the clocks of all machines with weir within a second of each other";
    this.#warn(`does not tell the time; ${means} (${text})`);
  }

  #warn(text: string): void {
    const { log, address } = this.#options;
    log?.('warn', `Redis ${address.redactedAddress} ${text}`);
  }
}
