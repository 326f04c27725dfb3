import type { BucketStore } from '../../limiter/bucket-store.js';
import { StorageError } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import { quantity } from '../../quantity.js';
import { BackOff } from '../../runtime/back-off.js';
import { withTimeout } from '../../runtime/turns.js';
import type { OwedCharge, OwedLedger } from './owed-ledger.js';

/** Buckets charged at once: a quarter of a millisecond of Redis's time, which is all that a decision may wait for. */
export const MAX_CONCURRENT_CHARGES = 32;
/** Pauses are so many times as long as the charges before took: a tenth of what the store does is for them, at most. */
const PAUSE_FACTOR = 9;
const LEAST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 1000;
/** First and longest pause after charges none of which was made. */
const RETRY_MS = 250;
const LONGEST_RETRY_MS = 8000;
/** Longest that closing goes on charging, milliseconds. */
const CLOSE_MS = 500;

/** Settings of {@link Repayment}. */
export interface RepaymentOptions {
  readonly ledger: OwedLedger;
  /** The store that is charged, without a cache before it. */
  readonly store: BucketStore;
  /** Whether it can be asked now, or a part of it. */
  readonly up: () => boolean;
  readonly clock: Clock;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

/**
 * Charges the store for what was admitted without it, once it is up. A charge that fails is kept and made again, as is
 * one that was not answered: if the store made it all the same, its bucket is charged twice, which denies more and
 * never admits more.
 */
export class Repayment {
  /** Buckets charged since start. */
  charged = 0;
  /** Charges that were sent and are not answered. */
  unanswered = 0;
  readonly #options: RepaymentOptions;
  /** Stands for one caller that waits, so that others have room. */
  readonly #caller = {};
  #timer: NodeJS.Timeout | undefined;
  #running = false;
  /** The charges under way, which never reject. */
  #chargesInFlight: Promise<unknown> = Promise.resolve();
  #closing = false;
  readonly #pauses = new BackOff({ initialMs: RETRY_MS, maxMs: LONGEST_RETRY_MS });
  /** Buckets charged since nothing was owed. */
  #chargedInBatch = 0;

  constructor(options: RepaymentOptions) {
    this.#options = options;
  }

  /** The store is up: charges begin. */
  begin(): void {
    this.#pauses.reset();
    this.#arm(0);
  }

  /** Something is owed. The store may be up all the while, and only have been late. */
  expect(): void {
    if (this.#timer === undefined && !this.#running) this.#arm(LONGEST_PAUSE_MS);
  }

  /** Charges what it can within half a second, and gives up the rest. */
  async close(): Promise<void> {
    const { ledger, clock, up, log } = this.#options;
    this.#closing = true;
    clearTimeout(this.#timer);
    const untilMicros = clock.monotonicMicros() + CLOSE_MS * 1000;
    await withTimeout(CLOSE_MS, this.#chargesInFlight, () => {});
    while (ledger.size > 0 && up() && clock.monotonicMicros() < untilMicros) {
      const before = ledger.size;
      await this.#charge(untilMicros);
      if (ledger.size >= before) break;
    }
    const left = ledger.giveUp(this.unanswered);
    if (left > 0)
      log('warn', `never charged for what was admitted while Redis was away: ${quantity(left, 'bucket')}`);
  }

  #arm(ms: number): void {
    if (this.#closing || this.#running) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#run();
    }, ms).unref();
  }

  /** One step, and the timer of the next. */
  async #run(): Promise<void> {
    const { ledger, clock, up, log } = this.#options;
    if (ledger.size === 0 || !up()) return;
    this.#running = true;
    const beganMicros = clock.monotonicMicros();
    const owedBefore = ledger.size;
    const made = await this.#charge(Number.POSITIVE_INFINITY);
    this.#running = false;
    this.#chargedInBatch += made;
    if (ledger.size === 0 && this.#chargedInBatch > 0) {
      log(
        'info',
        `charged for what was admitted while Redis was away: ${quantity(this.#chargedInBatch, 'bucket')}`,
      );
      this.#chargedInBatch = 0;
    }
    if (ledger.size === 0) return;
    if (made === 0 && ledger.size >= owedBefore) {
      this.#arm(this.#pauses.next());
      return;
    }
    this.#pauses.reset();
    const tookMs = (clock.monotonicMicros() - beganMicros) / 1000;
    this.#arm(Math.min(Math.max(LEAST_PAUSE_MS, PAUSE_FACTOR * tookMs), LONGEST_PAUSE_MS));
  }

  /** Charges the next few. Returns how many were. */
  async #charge(deadlineMicros: number): Promise<number> {
    const { ledger, store } = this.#options;
    const charges = ledger.takeOut(MAX_CONCURRENT_CHARGES);
    let made = 0;
    const chargeOne = async (charge: OwedCharge): Promise<void> => {
      this.unanswered++;
      const result = await store.take([charge.item], deadlineMicros, this.#caller);
      this.unanswered--;
      if (result instanceof StorageError) {
        ledger.putBack(charge);
        return;
      }
      made++;
      this.charged++;
    };
    // All of one turn travel together.
    this.#chargesInFlight = Promise.all(charges.map(chargeOne));
    await this.#chargesInFlight;
    return made;
  }
}
