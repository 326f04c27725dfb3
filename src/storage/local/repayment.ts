import type { BucketStore, TakeOutcome } from '../../limiter/bucket-store.js';
import { StorageError } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import { quantity } from '../../quantity.js';
import { BackOff } from '../../runtime/back-off.js';
import { withTimeout } from '../../runtime/turns.js';
import type { OwedCharge, OwedLedger } from './owed-ledger.js';

/**
 * Maximum number of concurrent charges. Redis needs 0.25 ms for them, the maximum time by which charges may delay a
 * decision.
 */
export const MAX_CONCURRENT_CHARGES = 32;
/** Pause after charges, as a multiple of their duration, so that charges use at most a tenth of the store's time. */
const PAUSE_FACTOR = 9;
const MIN_PAUSE_MS = 2;
const MAX_PAUSE_MS = 1000;
/** Minimum and maximum pause after charges that all failed. */
const RETRY_MS = 250;
const MAX_RETRY_MS = 8000;
/** Maximum time that `close` continues to charge, in milliseconds. */
const CLOSE_MS = 500;

/** Settings of {@link Repayment}. */
export interface RepaymentOptions {
  readonly ledger: OwedLedger;
  /** The store to charge, without a cache in front of it. */
  readonly store: BucketStore;
  /** Returns whether the store, or a part of it, is available. */
  readonly up: () => boolean;
  readonly clock: Clock;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

/**
 * Charges the store, once it is available, for hits that were allowed without it. A charge that fails, or gets no
 * reply, is repeated. If the store had applied the first attempt, the bucket is charged twice, which may deny more
 * requests but never allows more.
 */
export class Repayment {
  /** Number of buckets charged since start. */
  charged = 0;
  /** Number of charges that were sent and not answered. */
  unanswered = 0;
  readonly #options: RepaymentOptions;
  /** Identifies all charges as one connection, so that they cannot use up the capacity of other connections. */
  readonly #caller = {};
  #timer: NodeJS.Timeout | undefined;
  #running = false;
  /** The current charges, which never reject. */
  #chargesInFlight: Promise<unknown> = Promise.resolve();
  #closing = false;
  readonly #pauses = new BackOff({ initialMs: RETRY_MS, maxMs: MAX_RETRY_MS });
  /** Number of buckets charged since the ledger was empty. */
  #chargedInBatch = 0;

  constructor(options: RepaymentOptions) {
    this.#options = options;
  }

  /** Starts charging, because the store is available. */
  begin(): void {
    this.#pauses.reset();
    this.#arm(0);
  }

  /** Starts charging when new hits are owed. The store may have been available all the time, and only late. */
  expect(): void {
    if (this.#timer === undefined && !this.#running) this.#arm(MAX_PAUSE_MS);
  }

  /** Charges as much as possible within 0.5 s, and gives up the rest. */
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
      log(
        'warn',
        'weir stopped before it had charged all buckets for requests that were allowed while Redis was ' +
          `unavailable; not charged: ${quantity(left, 'bucket')}`,
      );
  }

  #arm(ms: number): void {
    if (this.#closing || this.#running) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#run();
    }, ms).unref();
  }

  /** Runs one round of charges, and sets the timer for the next one. */
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
        `charged ${quantity(this.#chargedInBatch, 'bucket')} for requests that were allowed while Redis ` +
          'was unavailable',
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
    this.#arm(Math.min(Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * tookMs), MAX_PAUSE_MS));
  }

  /** Charges the next records. Returns their number. */
  async #charge(deadlineMicros: number): Promise<number> {
    const { ledger, store } = this.#options;
    const charges = ledger.takeOut(MAX_CONCURRENT_CHARGES);
    let made = 0;
    const chargeOne = async (charge: OwedCharge): Promise<void> => {
      this.unanswered++;
      const result = await store.take([charge.item], deadlineMicros, this.#caller);
      this.unanswered--;
      if (result instanceof StorageError) {
        // A repeated refund could give back too much.
        if (!charge.item.refund || result.unsent) ledger.putBack(charge);
        return;
      }
      ledger.charged(charge, result[0] as TakeOutcome);
      made++;
      this.charged++;
    };
    // Charges of one turn share a call to Redis.
    this.#chargesInFlight = Promise.all(charges.map(chargeOne));
    await this.#chargesInFlight;
    return made;
  }
}
