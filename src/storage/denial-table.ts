import type { Take, TakeOutcome } from '../limiter/bucket-store.js';
import type { WindowRate } from '../limiter/fixed-window.js';
import { isCharge } from '../limiter/rate.js';
import { TakeSnapshot } from '../limiter/running-bucket.js';
import type { TokenBucketRate } from '../limiter/token-bucket.js';

/** A token bucket that did not contain the requested hits. Times are those of the local monotonic clock. */
interface TokenDenial {
  readonly kind: 'token_bucket';
  /** Compared by identity. A reload creates new rates, so earlier denials no longer apply. */
  readonly rate: TokenBucketRate;
  /** Smallest number of hits that is denied; 1 for a peek. */
  readonly hits: number;
  readonly untilMicros: number;
  /** Time at which the bucket is full: whole microseconds, and a carry in 1/q µs. */
  readonly fullAtMicros: number;
  readonly carry: number;
}

/** A window that was over its limit. Its count can only rise until it ends. */
interface WindowDenial {
  readonly kind: 'window';
  /** Length of the window, which identifies the windows of a rule even if a reload changes their limit. */
  readonly lengthMicros: number;
  readonly timeZone: string | undefined;
  /** Minimum number of counted hits. */
  readonly used: number;
  /** End of the window, on the local monotonic clock. */
  readonly untilMicros: number;
}

export type KnownDenial = TokenDenial | WindowDenial;

/** Returns whether `denial` proves that `item` is limited at `nowMicros`. */
export function isDenied(denial: KnownDenial, { rate, hits, refund }: Take, nowMicros: number): boolean {
  if (refund || denial.untilMicros <= nowMicros || isCharge(rate, hits, refund)) return false;
  if (denial.kind === 'token_bucket') return denial.rate === rate && Math.max(hits, 1) >= denial.hits;
  // A peek takes no hits from a window, so it is limited only if the count exceeds the limit.
  return (
    rate.kind === 'window' &&
    rate.lengthMicros === denial.lengthMicros &&
    rate.calendar?.timeZone === denial.timeZone &&
    denial.used + hits > rate.requestsPerUnit
  );
}

/** Reused for outcomes that did not come from the store. */
const found = new TakeSnapshot();

/** Returns the outcome of an item that {@link isDenied} found to be denied. */
export function deniedOutcome(denial: KnownDenial, take: Take, nowMicros: number): TakeOutcome {
  if (denial.kind === 'token_bucket') {
    found.overLimit = true;
    found.wholeMicros = denial.fullAtMicros;
    found.remainder = denial.carry;
    return denial.rate.outcome(take.hits, found, nowMicros, true);
  }
  const { rate } = take;
  return {
    overLimit: true,
    remaining: rate.kind === 'window' ? rate.remaining(true, denial.used) : 0,
    waitMicros: denial.untilMicros - nowMicros,
    used: denial.used,
    uncollectedHits: 0,
    cached: true,
  };
}

/** Returns the denial that a limited `outcome` of a window implies. The take was sent at `askedMicros`. */
export function windowDenial(rate: WindowRate, outcome: TakeOutcome, askedMicros: number): WindowDenial {
  return {
    kind: 'window',
    lengthMicros: rate.lengthMicros,
    timeZone: rate.calendar?.timeZone,
    used: outcome.used,
    untilMicros: askedMicros + outcome.waitMicros,
  };
}

/**
 * Returns the state of the token bucket of a limited item, in local time, to be used for `maxAgeMicros`. If several
 * states are possible, returns the fullest one, so that no reported wait is too long.
 */
export function tokenDenial(
  rate: TokenBucketRate,
  hits: number,
  outcome: TakeOutcome,
  askedMicros: number,
  maxAgeMicros: number,
): TokenDenial {
  const { wholeMicros: whole, remainder: part } = rate.minTimeToFill(hits, outcome);
  return {
    kind: 'token_bucket',
    rate,
    hits: Math.max(hits, 1),
    untilMicros: askedMicros + Math.min(outcome.waitMicros, maxAgeMicros),
    fullAtMicros: askedMicros + whole,
    carry: part,
  };
}

/** Bounds of a {@link DenialTable}. */
export interface DenialTableOptions {
  /** At least 1. */
  readonly maxEntries: number;
  /** Maximum estimated bytes of entries and their keys; Infinity for no bound. */
  readonly maxBytes: number;
  /** Maximum age of a generation, in microseconds: afterwards, expired denials are removed when new ones arrive. */
  readonly generationMicros: number;
}

/** Estimated bytes of an entry without its key, measured for a token bucket on Node 20; a window takes a fifth less. */
const ENTRY_BYTES = 175;

/**
 * Returns the estimated bytes of an entry with its key. V8 stores two bytes per character if a character is beyond
 * Latin-1; this estimate counts two bytes even if a character is only beyond ASCII.
 */
function bytesOf(key: string): number {
  const isAscii = Buffer.byteLength(key) === key.length;
  return ENTRY_BYTES + (isAscii ? 1 : 2) * key.length;
}

/**
 * Copies a key into one flat string. Otherwise, V8 would keep the parts of a concatenated key, which doubles the
 * memory.
 */
function flattened(key: string): string {
  return Buffer.from(key).toString();
}

/**
 * A bounded table of denials by bucket, in two generations. The young generation becomes the old one, whose entries are
 * removed, when it reaches half of the bounds, or when all entries of the old one have expired. A lookup moves an entry
 * to the young generation. Entries that are not looked up are therefore removed first, without a timer.
 */
export class DenialTable {
  /**
   * Number of entries that had expired when they were removed. Entries that were removed to free memory count as
   * {@link evacuated}, expired or not.
   */
  expired = 0;
  evacuated = 0;
  /** Number of entries that replaced another entry of the same bucket. */
  overwritten = 0;
  private readonly options: DenialTableOptions;
  private readonly maxYoung: number;
  private young = new Map<string, KnownDenial>();
  private old = new Map<string, KnownDenial>();
  private youngBytes = 0;
  /** Time at which the last entry of the generation expires. */
  private youngUntil = Number.NEGATIVE_INFINITY;
  private oldUntil = Number.NEGATIVE_INFINITY;
  private rotateAtMicros = Number.NEGATIVE_INFINITY;

  constructor(options: DenialTableOptions) {
    this.options = options;
    this.maxYoung = Math.max(1, Math.floor(options.maxEntries / 2));
  }

  /** Number of denials, including expired ones. */
  get size(): number {
    return this.young.size + this.old.size;
  }

  /** Returns the denial of a bucket, unless it has expired. */
  get(key: string, nowMicros: number): KnownDenial | undefined {
    const young = this.young.get(key);
    if (young !== undefined) return this.removeIfExpired(key, young, nowMicros);
    const old = this.old.get(key);
    if (old === undefined || this.removeIfExpired(key, old, nowMicros) === undefined) return undefined;
    this.old.delete(key);
    this.insert(key, old, nowMicros);
    return old;
  }

  set(key: string, denial: KnownDenial, nowMicros: number): void {
    if (denial.untilMicros <= nowMicros) return;
    if (this.old.delete(key) || this.young.has(key)) this.overwritten++;
    this.insert(key, denial, nowMicros);
  }

  delete(key: string): void {
    if (this.size === 0) return;
    if (this.young.delete(key)) this.youngBytes -= bytesOf(key);
    else this.old.delete(key);
  }

  clear(): void {
    this.young = new Map();
    this.old = new Map();
    this.youngBytes = 0;
  }

  private insert(key: string, denial: KnownDenial, nowMicros: number): void {
    const known = this.young.has(key);
    if (!known) {
      const { maxBytes } = this.options;
      const bytes = bytesOf(key);
      if (bytes > maxBytes / 2) return;
      const full = this.young.size >= this.maxYoung || this.youngBytes + bytes > maxBytes / 2;
      if (full || (nowMicros >= this.rotateAtMicros && nowMicros >= this.oldUntil)) this.rotate(nowMicros);
      this.youngBytes += bytes;
    }
    this.young.set(known ? key : flattened(key), denial);
    this.youngUntil = Math.max(this.youngUntil, denial.untilMicros);
  }

  private rotate(nowMicros: number): void {
    if (nowMicros >= this.oldUntil) this.expired += this.old.size;
    else this.evacuated += this.old.size;
    this.old = this.young;
    this.oldUntil = this.youngUntil;
    this.young = new Map();
    this.youngBytes = 0;
    this.youngUntil = Number.NEGATIVE_INFINITY;
    this.rotateAtMicros = nowMicros + this.options.generationMicros;
  }

  private removeIfExpired(key: string, denial: KnownDenial, nowMicros: number): KnownDenial | undefined {
    if (denial.untilMicros > nowMicros) return denial;
    this.delete(key);
    this.expired++;
    return undefined;
  }
}
