import type { StoreFailurePolicy } from './failure-policy.js';
import type { Rate } from './rate.js';
import type { TakeOutcome } from './take-outcome.js';

export type { TakeOutcome } from './take-outcome.js';

/**
 * How a bucket that does not fit weighs in the request:
 * - `enforce`: the request is denied;
 * - `observe`: never denies (monitoring, grace period, shadow mode);
 * - `quota`: the request is denied only if every `quota` bucket of it does not fit;
 * - `candidate`: never denies, and is decided as if it were a request of its own: what is denied beside it counts, too.
 */
export type Enforcement = 'enforce' | 'observe' | 'quota' | 'candidate';

/** One bucket of a request, and what is asked of it. */
export interface TakeItem {
  /** Unambiguous name of the bucket, without hash tag and store prefix; see policy/names/bucket-key.ts. */
  readonly key: string;
  /** How many characters of `key` name domain and first entry: what all buckets of one tenant share. */
  readonly tagLength: number;
  readonly rate: Rate;
  /** Whole number from 0 (a peek) to 2^53-1; larger requests are saturated before. */
  readonly hits: number;
  /** Gives `hits` back instead (`is_negative_hits`). Never limited. */
  readonly refund: boolean;
  /**
   * Of a refund that undoes a take: the `TakeOutcome.undoMark` of that take, so that it never gives back more than the
   * take has cost by then, however late it comes. A window that began later is left as it is. A token bucket gets back
   * what would not have been spilled without the take: less what refills after it would have been full. With debt that
   * is less all that refilled since the take. Nothing goes back to a bucket whose debt met its bound with the take or
   * since, as nobody knows what others were forgiven then, nor to one that a smaller limit has cut off.
   */
  readonly undoMark?: number;
  /**
   * Allows a refund without `undoMark` to raise a token bucket above its capacity, or a window below 0 hits. The
   * surplus is used first and does not refill. It expires one day after the latest such refund
   * (`SURPLUS_LIFETIME_MICROS`), or when the window ends, and is at most `maxSurplus` of the rate. The outcome reports
   * what the bucket then holds. Even with a surplus, no request may take more than the limit (`isBeyondLimit`). Other
   * refunds do not change a bucket that has a surplus, unless they undo a take.
   */
  readonly allowSurplus?: boolean;
  readonly enforcement: Enforcement;
}

/**
 * `full`: the store works, and other requests had the room or the time; `broken`: its state here is not as it must be,
 * a mistake of ours; the others are about Redis.
 */
export type StorageFailure =
  | 'timeout'
  | 'disconnected'
  | 'overloaded'
  | 'breaker_open'
  | 'rejected'
  | 'full'
  | 'broken';

/** A take of a rule that answers `local`, and the share that it says. */
export interface LocalTake extends TakeItem {
  readonly onStoreFailure: StoreFailurePolicy;
}

/** Why a store could not decide. Expected, so stores return it; the message goes to the log, never to the wire. */
export class StorageError extends Error {
  override readonly name = 'StorageError';
  /** Short and bounded, fit for a metric label. */
  readonly reason: StorageFailure;
  /** Whether it is certain that nothing was sent to the store. */
  readonly unsent: boolean;

  constructor(
    reason: StorageFailure,
    message: string,
    options?: ErrorOptions & { readonly unsent?: boolean },
  ) {
    super(message, options);
    this.reason = reason;
    this.unsent = options?.unsent === true;
  }
}

/** Outcomes of one request, one for each item in their order, or the reason why there are none. */
export type TakeResult = readonly TakeOutcome[] | StorageError;

/**
 * Keeps buckets and decides on them. Everything one request asks is decided in one atomic step:
 * - items apply in order on the running state, so the same bucket twice must hold the sum;
 * - a request that is denied (an `enforce` item is limited, or all `quota` items are) takes nothing from any token
 *   bucket and gives nothing back; windows count its hits all the same unless `countDeniedHits` is false. Its other
 *   token bucket items report the untouched bucket;
 * - a limited item itself takes nothing from its token bucket, denied request or not;
 * - a charge ({@link isCharge}) is never limited: its bucket goes into debt, down to `max_debt`. Rates with debt, and
 *   windows of a list of limits, count no denied hits;
 * - `candidate` items keep what they took or counted even if the request is denied.
 */
export interface BucketStore {
  /**
   * Decides `items`, at least one. Synchronous stores return the result itself; a remote store returns a promise that
   * never rejects and is settled by `deadlineMicros` (monotonic clock). `connection` stands for what the request came
   * by: where requests have to wait for each other, connections take turns. Without `mayWait` (default true), as there
   * is no room for more that wait, what cannot be answered at once is refused, as `full` where the store works.
   */
  take(
    items: readonly TakeItem[],
    deadlineMicros: number,
    connection?: unknown,
    mayWait?: boolean,
  ): TakeResult | Promise<TakeResult>;
  /** Stops timers and connections. Running takes are settled first. */
  close(): Promise<void>;
}

/** Decides at once, in this process, while a {@link BucketStore} cannot. */
export interface LocalStore {
  /** Outcomes of one request, at least one item, by the rules of {@link BucketStore}. */
  take(items: readonly LocalTake[]): readonly TakeOutcome[];
}
