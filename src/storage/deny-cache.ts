import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeOutcome,
  type TakeResult,
} from '../limiter/bucket-store.js';
import { turn } from '../runtime/turns.js';
import { deniedOutcome, isDenied, type KnownDenial, tokenDenial, windowDenial } from './denial.js';
import { DenialTable } from './denial-table.js';

/** Settings of {@link DenyCache}. */
export interface DenyCacheOptions {
  /** The store that knows. */
  readonly store: BucketStore;
  /** Longest that the denial of a token bucket is believed, microseconds (DENY_CACHE_MAX_AGE); 0: none are kept. */
  readonly maxAgeMicros: number;
  /** Whether denials of windows are kept, too, until the window ends; default false. */
  readonly windows?: boolean;
  /** Most denials kept (DENY_CACHE_MAX_ENTRIES); at least 1. */
  readonly maxEntries: number;
  /** Most bytes of denials, estimated (LOCAL_CACHE_SIZE_IN_BYTES); no bound unless told. */
  readonly maxBytes?: number;
  /** This machine's monotonic clock, microseconds. */
  readonly monotonicMicros: () => number;
}

/** Counts since start, but for `entryCount`; names and meaning as in the reference's local cache. */
export interface LocalCacheStats {
  /** Denials kept now, some of which may be over. */
  readonly entryCount: number;
  /** Looks at one bucket that found a denial of it, or none. */
  readonly hitCount: number;
  readonly missCount: number;
  readonly lookupCount: number;
  /** Denials that were over when they were dropped. */
  readonly expiredCount: number;
  /** Denials dropped to make room. */
  readonly evacuateCount: number;
  /** Denials that took the place of another of the same bucket. */
  readonly overwriteCount: number;
}

/** Keys of so many items are compared with each other: that takes a microsecond or two, and no memory. */
const MAX_COMPARED_ITEMS = 16;
/** Nothing is ever added to it. */
const NO_KEYS = new Set<string>();
/** Items whose denials are kept in one turn of the event loop: half a millisecond or so. */
const ITEMS_PER_TURN = 250;
/** Without windows that last longer, entries of token buckets are over after this long at the latest. */
const MIN_GENERATION_MICROS = 1_000_000;

/**
 * Answers denials that are certain without asking the store, also while the store is away. Certain is that
 * - a token bucket that could not serve a request cannot serve it, or a larger one, before the time its denial told,
 *   whatever others take meanwhile. Only what gives tokens back could: a refund, which drops the entry when this
 *   process makes it, or what only the store knows (a refund elsewhere, a flush, a step of its clock), which is seen
 *   within `maxAgeMicros`;
 * - a window that was over its limit stays so until it ends (`windows`). What only the store knows is not seen before;
 *   nor are the hits of such denials counted there.
 *
 * After a reload call {@link clear}.
 *
 * Exact, in that it never denies what the store would let pass but for that:
 * - a denial counts from when the request was asked, on the local clock, and of the store's answer only durations are
 *   used. So clocks need not agree, and an entry ends early by the time the answer took, never late;
 * - a request is answered only if every item of it is limited by a live entry. Such a request takes nothing, whatever
 *   its items' enforcement, so nothing is missed by not asking. Refunds change buckets: requests with one are always
 *   asked, and without `windows` those with a window.
 */
export class DenyCache implements BucketStore {
  /** Requests answered from here since start. */
  answers = 0;
  private readonly options: DenyCacheOptions;
  private readonly store: BucketStore;
  private readonly monotonicMicros: () => number;
  private readonly table: DenialTable;
  private hits = 0;
  private misses = 0;
  /** Requests with a refund, when asked and when answered. */
  private refunds = 0;
  /** Rises with each {@link clear} and {@link forget}: what was asked before is not learnt from. */
  private generation = 0;
  /** Whether denials of a request of many items are being kept. */
  private isKeepingMany = false;
  /** Entries of the request at hand, reused. */
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

  /** Denials kept, some of which may be over. */
  get entries(): number {
    return this.table.size;
  }

  /** See {@link LocalCacheStats}. */
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

  take(
    items: readonly TakeItem[],
    deadlineMicros: number,
    connection?: unknown,
    mayWait = true,
  ): TakeResult | Promise<TakeResult> {
    const askedMicros = this.monotonicMicros();
    const known = this.answer(items, askedMicros);
    if (known !== undefined) return known;
    this.refunded(items);
    const { refunds, generation } = this;
    const result = this.store.take(items, deadlineMicros, connection, mayWait);
    if (result instanceof Promise) {
      return result.then((late) => {
        this.learn(items, late, askedMicros, refunds, generation);
        return late;
      });
    }
    this.learn(items, result, askedMicros, refunds, generation);
    return result;
  }

  /**
   * Forgets what is known of buckets that the refunds among `items` give to. Those that go to the store past this cache
   * are told when they are asked, and when they are answered.
   */
  refunded(items: readonly TakeItem[]): void {
    let refunds = false;
    for (let i = 0; i < items.length; i++) {
      const { refund, key } = items[i] as TakeItem;
      if (!refund) continue;
      refunds = true;
      this.table.delete(key);
    }
    if (refunds) this.refunds++;
  }

  /** Forgets what is known of buckets that somebody else gave tokens to; what is being asked of them, too. */
  forget(keys: readonly string[]): void {
    if (keys.length === 0) return;
    this.generation++;
    for (const key of keys) this.table.delete(key);
  }

  /** Forgets everything: the policy is another one. */
  clear(): void {
    this.generation++;
    this.table.clear();
  }

  close(): Promise<void> {
    this.clear();
    return this.store.close();
  }

  /** Outcomes of a request of which every item is known to be limited, or undefined. */
  private answer(items: readonly TakeItem[], nowMicros: number): readonly TakeOutcome[] | undefined {
    const { found, table } = this;
    for (let i = 0; i < items.length; i++) {
      const item = items[i] as TakeItem;
      const denial = table.size === 0 ? undefined : table.get(item.key, nowMicros);
      if (denial === undefined || !isDenied(denial, item, nowMicros)) {
        this.misses++;
        return undefined;
      }
      this.hits++;
      found[i] = denial;
    }
    this.answers++;
    const outcomes = new Array<TakeOutcome>(items.length);
    for (let i = 0; i < items.length; i++) {
      outcomes[i] = deniedOutcome(found[i] as KnownDenial, items[i] as TakeItem, nowMicros);
    }
    return outcomes;
  }

  /** Keeps what an answer of the store tells; `refunds` and `generation` are as they were when it was asked. */
  private learn(
    items: readonly TakeItem[],
    result: TakeResult,
    askedMicros: number,
    refunds: number,
    generation: number,
  ): void {
    // Requests of several items may be answered in steps (ShardedStore), and then later than a refund that was asked
    // after them.
    const inOrder = items.length === 1 || refunds === this.refunds;
    // Whoever gave tokens that this cache was told of may have done so after the answer.
    const keeps = inOrder && generation === this.generation;
    // An answer to an earlier denial may have come between question and answer of a refund.
    this.refunded(items);
    if (result instanceof StorageError) return;
    const isFew = items.length <= MAX_COMPARED_ITEMS;
    let isLeft = false;
    /** Buckets that took, or got back: what was denied before in the same request may be no more so. */
    const changedKeys = isFew ? NO_KEYS : new Set<string>();
    for (let i = 0; i < items.length; i++) {
      const item = items[i] as TakeItem;
      const outcome = result[i] as TakeOutcome;
      // It may have taken: what is known of the bucket is no more so.
      if (!isFew && (!outcome.limited || item.refund)) changedKeys.add(item.key);
      if (!outcome.limited) this.table.delete(item.key);
      else if (keeps && this.mayKeep(item, outcome)) {
        if (!isFew) isLeft = true;
        else if (!isNamedBefore(items, i)) this.keep(item, outcome, askedMicros);
      }
    }
    if (isLeft && !this.isKeepingMany) void this.keepMany(items, result, askedMicros, changedKeys);
  }

  /**
   * Keeps the denials of a request of many items, some in each turn of the event loop, but for the keys in `named`. Of
   * such requests that are answered meanwhile none are kept.
   */
  private async keepMany(
    items: readonly TakeItem[],
    outcomes: readonly TakeOutcome[],
    askedMicros: number,
    named: Set<string>,
  ): Promise<void> {
    const { refunds, generation } = this;
    this.isKeepingMany = true;
    for (let i = 0; i < items.length; i++) {
      if (i > 0 && i % ITEMS_PER_TURN === 0) {
        await turn();
        if (refunds !== this.refunds || generation !== this.generation) break;
      }
      const item = items[i] as TakeItem;
      const outcome = outcomes[i] as TakeOutcome;
      const isFirst = named.size < named.add(item.key).size;
      if (isFirst && outcome.limited && this.mayKeep(item, outcome)) this.keep(item, outcome, askedMicros);
    }
    this.isKeepingMany = false;
  }

  /** Whether the denial of an item is one of those that are kept. */
  private mayKeep({ rate }: TakeItem, { waitMicros }: TakeOutcome): boolean {
    if (waitMicros === 0) return false;
    const { maxAgeMicros, windows = false } = this.options;
    // A window in debt is paid by the next one, in which its denial may go on: it is asked each time.
    return rate.kind === 'window' ? windows && rate.maxDebt === 0 : maxAgeMicros > 0;
  }

  private keep({ rate, hits, key }: TakeItem, outcome: TakeOutcome, askedMicros: number): void {
    const denial =
      rate.kind === 'window'
        ? windowDenial(rate, outcome, askedMicros)
        : tokenDenial(rate, hits, outcome, askedMicros, this.options.maxAgeMicros);
    this.table.set(key, denial, this.monotonicMicros());
  }
}

/**
 * Whether an earlier one of a few items names the same bucket: then this one found the running state, which a denied
 * request does not leave.
 */
function isNamedBefore(items: readonly TakeItem[], index: number): boolean {
  const { key } = items[index] as TakeItem;
  for (let i = 0; i < index; i++) if ((items[i] as TakeItem).key === key) return true;
  return false;
}
