import type { StoreFailurePolicy } from './failure-policy.js';
import type { NewHold, SettledHold } from './holds/hold.js';
import type { Rate } from './rate.js';
import type { Enforcement, TakeOutcome } from './rate-algorithm.js';

export type { Enforcement, TakeOutcome } from './rate-algorithm.js';

/** One bucket of a request, and the operation to apply to it. */
export interface Take {
  /** Unique name of the bucket, without hash tag and store prefix; see policy/names/bucket-key.ts. */
  readonly key: string;
  /**
   * Number of leading characters of `key` that name the domain and the first entry. All buckets of one tenant share
   * these characters, and therefore a slot.
   */
  readonly hashTagLength: number;
  readonly rate: Rate;
  /** Integer from 0 (a peek) to 2^53-1. Callers saturate larger values first. */
  readonly hits: number;
  /**
   * Number of equal requests that the item represents, at least 2. The request has no other items, and only stores in
   * Redis support it. The outcome is that of the last request, with a `grant`.
   */
  readonly count?: number;
  /** Gives `hits` back instead of taking them (`is_negative_hits`). A refund is never limited. */
  readonly refund: boolean;
  /**
   * For a refund that undoes a take: the `TakeOutcome.undoAtMicros` of that take. The refund then never gives back more
   * than the take still costs other callers, however late it arrives.
   *
   * A window that started after the take stays unchanged. A token bucket gets back the tokens that would not have
   * overflowed without the take: the hits minus what refills after the bucket would have been full. With debt,
   * everything that refilled since the take is subtracted. Nothing is given back to a bucket that has reached its
   * maximum debt since the take, because other charges may have been forgiven.
   */
  readonly undoAtMicros?: number;
  readonly enforcement: Enforcement;
  /**
   * Makes the store place a hold for the item. Every deduction from a concurrency limit is a hold. All items of a rule
   * with holds have this field, including peeks, so that caches do not keep their denials.
   */
  readonly holds?: NewHold | undefined;
  /** Makes a refund or a charge the settlement of a hold. A request settles each hold at most once. */
  readonly settles?: SettledHold | undefined;
}

/**
 * Why a store could not decide. `full`: the store works, but other requests use its capacity or time. `broken`: the
 * state in this process violates an invariant, which is a bug in weir. All other values concern Redis.
 */
export type StorageFailure =
  | 'timeout'
  | 'disconnected'
  | 'overloaded'
  | 'breaker_open'
  | 'rejected'
  | 'full'
  | 'broken';

/** A take of a rule with `on_store_failure: local`, with the share that the rule configures. */
export interface LocalTake extends Take {
  readonly onStoreFailure: StoreFailurePolicy;
}

/**
 * The reason why a store could not decide. Stores return it instead of throwing it, because it is expected. It is not
 * an Error, whose stack trace would cost more than the rest of a request that a store refuses. The message is logged
 * and never sent to clients.
 */
export class StorageError {
  readonly name = 'StorageError';
  /** Short value from a fixed set, suitable as a metric label. */
  readonly reason: StorageFailure;
  readonly message: string;
  /** The error that caused it, if there is one. */
  readonly cause: unknown;
  /** Whether it is certain that no command was sent to the store. */
  readonly unsent: boolean;
  /**
   * For a request that was divided between servers: an outcome for each item, of which only abandoned holds count
   * (`HoldEffect`). Undefined if no server has placed a hold, or if the request was not divided.
   */
  readonly abandoned: readonly TakeOutcome[] | undefined;

  constructor(
    reason: StorageFailure,
    message: string,
    options?: ErrorOptions & { readonly unsent?: boolean; readonly abandoned?: readonly TakeOutcome[] },
  ) {
    this.reason = reason;
    this.message = message;
    this.cause = options?.cause;
    this.unsent = options?.unsent === true;
    this.abandoned = options?.abandoned;
  }
}

/** One outcome for each item of the request, in the same order, or the reason why the store could not decide. */
export type TakeResult = readonly TakeOutcome[] | StorageError;

/**
 * Keeps buckets, and decides requests on them. All items of one request are decided in one atomic step:
 * - Items apply in order to the running state, so a bucket that is named twice must hold the sum.
 * - A denied request (an `enforce` item is limited, or all `quota` items are) does not change token buckets. Windows
 *   still count its hits unless `countDeniedHits` is false. Its other token bucket items report the unchanged bucket.
 * - A limited item does not change its token bucket, even if the request is allowed.
 * - A charge ({@link isCharge}) is never limited: its bucket goes into debt, down to `max_debt`. Rates with debt, and
 *   windows in a list of limits, never count denied hits.
 * - A skipped item does not change its bucket, and is not limited. The items of a chain of `spill` have no holds.
 * - A take with `holds` places a hold if the request is allowed and the item is not limited. A limited item places a
 *   hold only in a limit on concurrent requests.
 * - If a request is divided between servers and is not allowed, the caller ends its abandoned holds (`HoldEffect`).
 * - An item with `settles` ends a hold. It has no effect if the hold was settled before, has expired, or never existed.
 *   A request that settles holds does nothing else.
 */
export interface BucketStore {
  /**
   * Decides `items`, which must not be empty. Synchronous stores return the result. Remote stores return a promise that
   * never rejects and settles by `deadlineMicros` (monotonic clock). If `mayWait` is false (the default is true), a
   * request that cannot be decided immediately is rejected, with reason `full` if the store works.
   */
  take(takes: readonly Take[], deadlineMicros: number, mayWait?: boolean): TakeResult | Promise<TakeResult>;
  /** Returns what identifies the server of an item's bucket. Absent if the store has no servers. */
  serverOf?(take: Take): unknown;
  /** Stops timers and closes connections. Running takes are settled first. */
  close(): Promise<void>;
}

/** Decides requests immediately in this process while a {@link BucketStore} is unavailable. */
export interface LocalStore {
  /** Returns one outcome for each item of the request, by the rules of {@link BucketStore}. `items` is not empty. */
  take(items: readonly LocalTake[]): readonly TakeOutcome[];
}
