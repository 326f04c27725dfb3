import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeOutcome,
  type TakeResult,
} from '../limiter/bucket-store.js';
import { outcome } from '../limiter/outcome.js';
import { costCarry, costWhole, type TokenBucketRate } from '../limiter/rate.js';

/** Settings of {@link DenyCache}. */
export interface DenyCacheOptions {
  /** The store that knows. */
  readonly store: BucketStore;
  /** Longest that a denial is believed, microseconds (DENY_CACHE_MAX_AGE); at least 1. */
  readonly maxAgeMicros: number;
  /** Most denials kept (DENY_CACHE_MAX_ENTRIES); at least 1. */
  readonly maxEntries: number;
  /** This machine's monotonic clock, microseconds. */
  readonly monotonicMicros: () => number;
}

/** Counts since start, but for `entryCount`; names and meaning as in the reference's local cache. */
export interface LocalCacheStats {
  /** Denials kept now, some of which may be over. */
  readonly entryCount: number;
  /** Looks at one bucket that found a denial, or none. */
  readonly hitCount: number;
  readonly missCount: number;
  readonly lookupCount: number;
  /** Denials that were over before they were dropped. */
  readonly expiredCount: number;
  /** Denials dropped to make room. */
  readonly evacuateCount: number;
  /** Denials that took the place of another of the same bucket. */
  readonly overwriteCount: number;
}

/** What is known of a bucket that did not hold what was asked. Times are those of the local monotonic clock. */
interface Denial {
  /** The object, not its numbers: a reload makes new ones, so that what was learnt before it answers nothing. */
  readonly rate: TokenBucketRate;
  /** Fewest hits that are denied; a peek asks for 1. */
  readonly hits: number;
  readonly untilMicros: number;
  /** When the bucket is full: whole microseconds and carry in 1/q µs. */
  readonly fullAtMicros: number;
  readonly carry: number;
}

/**
 * Answers denials that are certain without asking the store: a token bucket that could not serve a request cannot serve it, or a larger
 * one, before the time its denial told, whatever others take meanwhile. Only what gives tokens back could: a refund, which
 * drops the entry when this process makes it, or what only the store knows (a refund elsewhere, a flush, a step of its clock), which is seen within
 * `maxAgeMicros`. After a reload call {@link clear}.
 *
 * Exact, in that it never denies what the store would let pass but for that:
 * - a denial counts from when the request was asked, on the local clock, and of the store's answer only durations are used. So clocks need not agree, and
 *   an entry ends early by the time the answer took, never late;
 * - a request is answered only if every item of it is limited by a live entry. Such a request takes nothing, whatever its items'
 *   enforcement, so nothing is missed by not asking. Windows count denied hits and refunds change buckets: requests with either are always asked.
 *
 * Entries are kept in two generations: the younger one becomes the older one, whose entries go, when it is half of `maxEntries` or `maxAgeMicros`
 * old. So the oldest go first, no timer is needed, and nothing grows.
 */
export class DenyCache implements BucketStore {
  /** Requests answered from here since start. */
  answers = 0;
  private hits = 0;
  private misses = 0;
  private expired = 0;
  private evacuated = 0;
  private overwritten = 0;
  private readonly store: BucketStore;
  private readonly maxAgeMicros: number;
  private readonly maxYoung: number;
  private readonly monotonicMicros: () => number;
  private young = new Map<string, Denial>();
  private old = new Map<string, Denial>();
  private turnAtMicros = Number.NEGATIVE_INFINITY;
  /** Entries of the request at hand, reused. */
  private readonly found: Denial[] = [];

  constructor(options: DenyCacheOptions) {
    this.store = options.store;
    this.maxAgeMicros = options.maxAgeMicros;
    this.maxYoung = Math.max(1, Math.floor(options.maxEntries / 2));
    this.monotonicMicros = options.monotonicMicros;
  }

  /** Denials kept, some of which may be over. */
  get entries(): number {
    return this.young.size + this.old.size;
  }

  /** See {@link LocalCacheStats}. */
  get stats(): LocalCacheStats {
    const { hits, misses } = this;
    return {
      entryCount: this.entries,
      hitCount: hits,
      missCount: misses,
      lookupCount: hits + misses,
      expiredCount: this.expired,
      evacuateCount: this.evacuated,
      overwriteCount: this.overwritten,
    };
  }

  take(items: readonly TakeItem[], deadlineMicros: number): TakeResult | Promise<TakeResult> {
    const askedMicros = this.monotonicMicros();
    if (this.entries > 0) {
      const known = this.answer(items, askedMicros);
      if (known !== undefined) return known;
      this.dropRefunded(items);
    }
    const result = this.store.take(items, deadlineMicros);
    if (result instanceof Promise) {
      return result.then((late) => {
        this.learn(items, late, askedMicros);
        return late;
      });
    }
    this.learn(items, result, askedMicros);
    return result;
  }

  /** Forgets everything: the policy is another one. */
  clear(): void {
    this.young = new Map();
    this.old = new Map();
  }

  close(): Promise<void> {
    this.clear();
    return this.store.close();
  }

  /** Outcomes of a request of which every item is known to be limited, or undefined. */
  private answer(items: readonly TakeItem[], nowMicros: number): readonly TakeOutcome[] | undefined {
    const { found } = this;
    for (let i = 0; i < items.length; i++) {
      const item = items[i] as TakeItem;
      const denial = item.refund ? undefined : (this.young.get(item.key) ?? this.old.get(item.key));
      if (
        denial === undefined ||
        denial.rate !== item.rate ||
        denial.untilMicros <= nowMicros ||
        Math.max(item.hits, 1) < denial.hits
      ) {
        this.misses++;
        return undefined;
      }
      this.hits++;
      found[i] = denial;
    }
    this.answers++;
    const outcomes = new Array<TakeOutcome>(items.length);
    for (let i = 0; i < items.length; i++) {
      const { fullAtMicros, carry } = found[i] as Denial;
      outcomes[i] = outcome(items[i] as TakeItem, true, fullAtMicros, carry, nowMicros, true);
    }
    return outcomes;
  }

  /** Keeps what an answer of the store tells. */
  private learn(items: readonly TakeItem[], result: TakeResult, askedMicros: number): void {
    // An answer to an earlier denial may have come between question and answer of a refund.
    if (this.entries > 0) this.dropRefunded(items);
    if (result instanceof StorageError) return;
    for (let i = 0; i < items.length; i++) {
      const item = items[i] as TakeItem;
      const { limited, remaining, waitMicros } = result[i] as TakeOutcome;
      if (!limited) {
        // It may have taken: what is known of the bucket is no more so.
        if (this.entries > 0) this.drop(item.key);
      } else if (item.rate.kind === 'token_bucket' && waitMicros > 0 && !namedBefore(items, i)) {
        this.keep(
          item.key,
          denialOf(item.rate, item.hits, remaining, waitMicros, askedMicros, this.maxAgeMicros),
        );
      }
    }
  }

  private keep(key: string, denial: Denial): void {
    const nowMicros = this.monotonicMicros();
    if (denial.untilMicros <= nowMicros) return;
    if (this.young.size >= this.maxYoung || nowMicros >= this.turnAtMicros) {
      if (nowMicros >= this.turnAtMicros) this.expired += this.old.size;
      else this.evacuated += this.old.size;
      this.old = this.young;
      this.young = new Map();
      this.turnAtMicros = nowMicros + this.maxAgeMicros;
    }
    if (this.old.delete(key) || this.young.has(key)) this.overwritten++;
    this.young.set(key, denial);
  }

  private drop(key: string): void {
    this.young.delete(key);
    this.old.delete(key);
  }

  private dropRefunded(items: readonly TakeItem[]): void {
    for (let i = 0; i < items.length; i++) {
      const { refund, key } = items[i] as TakeItem;
      if (refund) this.drop(key);
    }
  }
}

/** Whether an earlier item of the request names the same bucket: then this one found the running state, which a denied request does not leave. */
function namedBefore(items: readonly TakeItem[], index: number): boolean {
  const { key } = items[index] as TakeItem;
  for (let i = 0; i < index; i++) if ((items[i] as TakeItem).key === key) return true;
  return false;
}

/**
 * The state of the bucket that a limited item found, in local time. `waitMicros` and `remaining` tell it to less than a
 * microsecond; of what is possible it is the fullest, so that no wait is told too long.
 */
function denialOf(
  rate: TokenBucketRate,
  hits: number,
  remaining: number,
  waitMicros: number,
  askedMicros: number,
  maxAgeMicros: number,
): Denial {
  const asked = Math.min(Math.max(hits, 1), rate.maxTokens);
  // Waits are rounded up, so a whole microsecond less was not enough: room < cost(asked) - (waitMicros - 1).
  let whole = costWhole(rate, asked) - (waitMicros - 1);
  let carry = costCarry(rate, asked);
  // Nor was there one token more: room < cost(remaining + 1).
  if (remaining < rate.maxTokens) {
    const nextWhole = costWhole(rate, remaining + 1);
    const nextCarry = costCarry(rate, remaining + 1);
    if (nextWhole < whole || (nextWhole === whole && nextCarry < carry)) {
      whole = nextWhole;
      carry = nextCarry;
    }
  }
  // The largest room below that bound, and from it the time at which nothing is missing.
  carry -= 1;
  if (carry < 0) {
    carry += rate.q;
    whole -= 1;
  }
  let missingWhole = rate.fillWhole - whole;
  let missingCarry = rate.fillCarry - carry;
  if (missingCarry < 0) {
    missingCarry += rate.q;
    missingWhole -= 1;
  }
  return {
    rate,
    hits: Math.max(hits, 1),
    untilMicros: askedMicros + Math.min(waitMicros, maxAgeMicros),
    fullAtMicros: askedMicros + missingWhole,
    carry: missingCarry,
  };
}
