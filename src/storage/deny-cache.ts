import {
  type BucketStore,
  StorageError,
  type Take,
  type TakeOutcome,
  type TakeResult,
} from '../limiter/bucket-store.js';
import {
  DenialTable,
  deniedOutcome,
  isDenied,
  type KnownDenial,
  tokenDenial,
  windowDenial,
} from './denial-table.js';

/** Settings of {@link DenyCache}. */
export interface DenyCacheOptions {
  /** The store behind the cache. */
  readonly store: BucketStore;
  /** Maximum age of a token bucket's denial, in microseconds (DENY_CACHE_MAX_AGE); 0 disables these denials. */
  readonly maxAgeMicros: number;
  /** Whether denials of windows are cached, too, until the window ends; default false. */
  readonly windows?: boolean;
  /** Maximum number of denials (DENY_CACHE_MAX_ENTRIES); at least 1. */
  readonly maxEntries: number;
  /** Maximum estimated bytes of denials (LOCAL_CACHE_SIZE_IN_BYTES); unbounded by default. */
  readonly maxBytes?: number;
  /** This machine's monotonic clock, in microseconds. */
  readonly monotonicMicros: () => number;
}

/** Counts since start, except `entryCount`. Names and meanings are those of the reference's local cache. */
export interface LocalCacheStats {
  /** Number of denials now, including expired ones. */
  readonly entryCount: number;
  /** Number of lookups of a bucket that found a denial, and that found none. */
  readonly hitCount: number;
  readonly missCount: number;
  readonly lookupCount: number;
  /** Number of denials that had expired when they were removed. */
  readonly expiredCount: number;
  /** Number of denials that were removed to free memory. */
  readonly evacuateCount: number;
  /** Number of denials that replaced another one of the same bucket. */
  readonly overwriteCount: number;
}

/** Maximum number of items whose keys are compared pairwise, which takes 1 or 2 µs and no memory. */
const MAX_COMPARED_ITEMS = 16;
/**
 * Minimum age of a generation. Denials of token buckets last no longer than this; only windows may need an older
 * generation.
 */
const MIN_GENERATION_MICROS = 1_000_000;

/**
 * Answers certain denials without asking the store, even while the store is unavailable. A denial is certain in two
 * cases:
 * - A token bucket that could not serve a request cannot serve it, or a larger one, before the reported time. Takes of
 * other requests do not change this. Only added tokens could. A refund by this process removes the entry. Changes that
 * only the store knows about, such as a refund elsewhere, a flush or a clock step, take effect within `maxAgeMicros`.
 * - A window that was over its limit stays over it until it ends (`windows`). Changes that only the store knows about
 * take effect in the next window, and the hits of such denials are not counted in the store.
 *
 * Call {@link clear} after a reload.
 *
 * Apart from these changes, the cache never denies a request that the store would allow:
 * - A denial counts from the time of the request, on the local clock, and only durations from the store's answer are
 * used. Clocks therefore need not agree. An entry expires too early by the time that the answer took, never too late.
 * - A request is denied only if every item has a live denial. In the store, such a request would not change any bucket,
 * regardless of the enforcement of its items. Refunds change buckets, so requests with a refund always reach the store.
 * Requests with a window reach it unless `windows` is set.
 */
export class DenyCache implements BucketStore {
  /** Number of requests answered from the cache since start. */
  answers = 0;
  private readonly options: DenyCacheOptions;
  private readonly store: BucketStore;
  private readonly monotonicMicros: () => number;
  private readonly table: DenialTable;
  private hits = 0;
  private misses = 0;
  /** Number of requests with a refund, counted when they are sent and when they are answered. */
  private refunds = 0;
  /** Increases with each {@link clear}, so that answers to earlier requests are not cached. */
  private generation = 0;
  /** Entries of the current request; reused. */
  private readonly found: KnownDenial[] = [];

  constructor(options: DenyCacheOptions) {
    this.options = options;
    this.store = options.store;
    this.monotonicMicros = options.monotonicMicros;
    this.table = new DenialTable({
      maxEntries: options.maxEntries,
      maxBytes: options.maxBytes ?? Infinity,
      generationMicros: options.maxAgeMicros === 0 ? MIN_GENERATION_MICROS : options.maxAgeMicros,
    });
  }

  /** Number of denials, including expired ones. */
  get entries(): number {
    return this.table.size;
  }

  /** Counts since start, see {@link LocalCacheStats}. */
  get stats(): LocalCacheStats {
    const { hits, misses, table } = this;
    return {
      entryCount: table.size,
      hitCount: hits,
      missCount: misses,
      lookupCount: hits + misses,
      expiredCount: table.expired,
      evacuateCount: table.evacuated,
      overwriteCount: table.overwritten,
    };
  }

  serverOf(take: Take): unknown {
    return this.store.serverOf?.(take);
  }

  take(takes: readonly Take[], deadlineMicros: number, mayWait = true): TakeResult | Promise<TakeResult> {
    const askedMicros = this.monotonicMicros();
    const known = this.answer(takes, askedMicros);
    if (known !== undefined) return known;
    this.refunded(takes);
    const { refunds, generation } = this;
    const result = this.store.take(takes, deadlineMicros, mayWait);
    if (result instanceof Promise) {
      // Runs before the handlers of the caller, which are added later, so that they need not wait for another promise.
      void result.then((late) => this.learn(takes, late, askedMicros, refunds, generation));
      return result;
    }
    this.learn(takes, result, askedMicros, refunds, generation);
    return result;
  }

  /**
   * Removes the denials of buckets that refunds among `items` add to. Call this when refunds that bypass this cache are
   * sent, and again when they are answered.
   */
  refunded(takes: readonly Take[]): void {
    let refunds = false;
    for (let i = 0; i < takes.length; i++) {
      const { refund, key } = takes[i] as Take;
      if (!refund) continue;
      refunds = true;
      this.table.delete(key);
    }
    if (refunds) this.refunds++;
  }

  /** Removes all denials, because the policy has changed, or because others added tokens to buckets. */
  clear(): void {
    this.generation++;
    this.table.clear();
  }

  close(): Promise<void> {
    this.clear();
    return this.store.close();
  }

  /** Returns the outcomes of a request if the cache contains a denial for every item, otherwise undefined. */
  private answer(takes: readonly Take[], nowMicros: number): readonly TakeOutcome[] | undefined {
    const { found, table } = this;
    for (let i = 0; i < takes.length; i++) {
      const take = takes[i] as Take;
      const mayBeKnown = table.size > 0 && take.holds === undefined;
      const denial = mayBeKnown ? table.get(take.key, nowMicros) : undefined;
      if (denial === undefined || !isDenied(denial, take, nowMicros)) {
        this.misses++;
        return undefined;
      }
      this.hits++;
      found[i] = denial;
    }
    this.answers++;
    const outcomes = new Array<TakeOutcome>(takes.length);
    for (let i = 0; i < takes.length; i++) {
      outcomes[i] = deniedOutcome(found[i] as KnownDenial, takes[i] as Take, nowMicros);
    }
    return outcomes;
  }

  /**
   * Stores the denials in an outcome of the store. `refunds` and `generation` are the values at the time when the
   * request was sent.
   */
  private learn(
    takes: readonly Take[],
    result: TakeResult,
    askedMicros: number,
    refunds: number,
    generation: number,
  ): void {
    // ShardedStore may decide a request with several items in two steps, and therefore after a refund that was sent
    // later.
    const inOrder = takes.length === 1 || refunds === this.refunds;
    // Other requests may have added tokens after the store decided.
    const mayCache = inOrder && generation === this.generation;
    // A denial may have arrived between a refund and its outcome.
    this.refunded(takes);
    if (result instanceof StorageError) return;
    const named = takes.length > MAX_COMPARED_ITEMS ? new Set<string>() : undefined;
    for (let i = 0; i < takes.length; i++) {
      const take = takes[i] as Take;
      const outcome = result[i] as TakeOutcome;
      // A later item with the same bucket saw an intermediate state, which a denied request does not keep.
      const isFirst = named === undefined ? !isNamedBefore(takes, i) : named.size < named.add(take.key).size;
      // The item may have taken tokens, so a known denial of the bucket is outdated.
      if (!outcome.overLimit) this.table.delete(take.key);
      else if (mayCache && isFirst && this.isCacheable(take, outcome)) this.add(take, outcome, askedMicros);
    }
  }

  private isCacheable({ rate, holds }: Take, { waitMicros, cached }: TakeOutcome): boolean {
    // The store was not asked, see LeasedKey.pause.
    if (cached) return false;
    // The end of a hold can make room at any time.
    if (holds !== undefined || rate.kind === 'concurrency') return false;
    if (waitMicros === 0) return false;
    const { maxAgeMicros, windows = false } = this.options;
    // The next window pays the debt of a window, so its denial may continue there. Each request therefore reaches the
    // store.
    return rate.kind === 'window' ? windows && rate.maxDebt === 0 : maxAgeMicros > 0;
  }

  private add({ rate, hits, key }: Take, outcome: TakeOutcome, askedMicros: number): void {
    if (rate.kind === 'concurrency') return;
    const denial =
      rate.kind === 'window'
        ? windowDenial(rate, outcome, askedMicros)
        : tokenDenial(rate, hits, outcome, askedMicros, this.options.maxAgeMicros);
    this.table.set(key, denial, this.monotonicMicros());
  }
}

/** Returns whether an earlier item of a small request has the same bucket. */
function isNamedBefore(takes: readonly Take[], index: number): boolean {
  const { key } = takes[index] as Take;
  for (let i = 0; i < index; i++) if ((takes[i] as Take).key === key) return true;
  return false;
}
