import type { Bucket } from './buckets.js';

/** A call that took, or may have taken, a token. Times are in milliseconds of the harness's clock. */
interface Take {
  readonly sentMs: number;
  readonly endMs: number;
}

/** Tokens that were, or may have been, refilled because buckets were lost. */
interface Gift {
  readonly fromMs: number;
  readonly toMs: number;
  readonly tokens: number;
}

/** Missing tokens at a time. */
interface Level {
  readonly tokens: number;
  readonly atMs: number;
}

const EMPTY: Level = { tokens: 0, atMs: 0 };
/** Maximum number of recorded takes. Older ones do not affect a bucket that fills within seconds. */
const REMEMBERED = 400;
/** Time in which an unanswered call may still take its token, because a stopped Redis may have received it. */
const UNCERTAIN_MS = 10_000;
/**
 * Time in which denials may be repeated from the cache after buckets were lost: slightly more than DENY_CACHE_MAX_AGE.
 */
const REPEATED_MS = 2_000;
/** Rounding error, in tokens. */
const EPSILON = 0.001;

/**
 * Checks from the answers that a bucket gave no more than its capacity, its refills, and the tokens lost with the state
 * of Redis. The exact time of a take is unknown, so an interval counts only takes that lie completely within it.
 */
export class Ledger {
  readonly bucket: Bucket;
  /** Maximum of tokens allowed beyond capacity and refills since {@link startWindow}. */
  beyondPlain = 0;
  private takes: Take[] = [];
  private maybes: Take[] = [];
  private gifts: Gift[] = [];
  private openGiftMs: number | undefined;
  private windowMs = 0;
  private promotion: { readonly missing: number; readonly fromMs: number; readonly toMs: number } | undefined;
  private inFlight = 0;
  /** Number of calls for the bucket so far. */
  private calls = 0;
  /** Missing tokens, according to the acknowledged takes. */
  private least: Level = EMPTY;
  /** Missing tokens, if unanswered calls took theirs as late as possible. */
  private most: Level = EMPTY;

  constructor(bucket: Bucket) {
    this.bucket = bucket;
  }

  /** Records a call that Redis allowed. Returns the number of excess tokens, 0 if it is correct. */
  admit(sentMs: number, endMs: number): number {
    this.takes.push({ sentMs, endMs });
    if (this.takes.length > REMEMBERED) this.takes.splice(0, REMEMBERED / 2);
    this.least = { tokens: this.tokensAt(this.least, endMs) + 1, atMs: endMs };
    this.expireMaybes(endMs);
    this.takeFromMost(endMs);
    const { maxTokens, perMs } = this.bucket;
    let count = 0;
    let worst = 0;
    for (const { sentMs: fromMs } of [...this.takes].sort((one, other) => other.sentMs - one.sentMs)) {
      count++;
      const beyond = count - maxTokens - perMs * (endMs - fromMs) - EPSILON;
      if (beyond <= 0) continue;
      this.beyondPlain = Math.max(this.beyondPlain, beyond - this.givenBefore(fromMs));
      worst = Math.max(worst, beyond - this.givenBetween(fromMs, endMs));
    }
    return worst;
  }

  /** Records the start of a call for the bucket. */
  asked(): void {
    this.inFlight++;
    this.calls++;
  }

  /** Records the end of a call. */
  answered(): void {
    this.inFlight--;
  }

  /** Records a call that may have taken a token without an answer. */
  maybe(sentMs: number, endMs: number): void {
    this.expireMaybes(endMs);
    this.maybes.push({ sentMs, endMs });
  }

  /** Returns whether the denial of a call sent at that time may be correct: the bucket may have had too few tokens. */
  mayDeny(nowMs: number): boolean {
    if (this.openGiftMs !== undefined || this.gifts.some(({ toMs }) => nowMs - toMs < REPEATED_MS))
      return true;
    this.expireMaybes(nowMs);
    return this.tokensAt(this.most, nowMs) + this.maybes.length + this.inFlight + 2 > this.bucket.maxTokens;
  }

  /**
   * Starts a check of Redis. The result returns, afterwards, how many calls may have been in progress during the check.
   * Requests on several partitions may have taken a token that they give back.
   */
  underWaySince(): () => number {
    const { inFlight, calls } = this;
    return () => inFlight + this.calls - calls;
  }

  /** Marks buckets as possibly lost until {@link found}. */
  lose(nowMs: number): void {
    this.openGiftMs ??= nowMs;
  }

  /** Whether buckets may be lost now. */
  get isOpen(): boolean {
    return this.openGiftMs !== undefined;
  }

  /** Records the missing tokens that a check of Redis found. Returns how many tokens were given back. */
  found(missing: number, nowMs: number): number {
    const fromMs = this.openGiftMs ?? nowMs;
    const level = this.tokensAt(this.least, nowMs);
    const tokens = Math.max(0, level - missing);
    // Calls in progress may also have taken from the lost buckets.
    const most = Math.max(0, level + this.inFlight - missing);
    this.gifts = this.gifts.filter(({ toMs }) => nowMs - toMs < 600_000);
    this.gifts.push({ fromMs, toMs: nowMs, tokens: most });
    this.openGiftMs = undefined;
    this.least = { tokens: missing, atMs: nowMs };
    this.most = this.least;
    return tokens;
  }

  /**
   * Records a promoted Redis with its missing tokens, observed between two times. It may decide from now on: see {@link
   * confirm}.
   */
  promoted(missing: number, fromMs: number, toMs: number): void {
    this.promotion = { missing, fromMs, toMs };
  }

  /**
   * Confirms the promotion. Returns how many tokens the promoted Redis allowed beyond its contents for calls sent since
   * then; 0 if it is correct.
   */
  confirm(): number {
    const { promotion } = this;
    this.promotion = undefined;
    if (promotion === undefined) return 0;
    const { maxTokens, perMs } = this.bucket;
    const since = this.takes.filter(({ sentMs }) => sentMs >= promotion.toMs);
    let worst = 0;
    for (const [at, { endMs }] of since.entries()) {
      const most = maxTokens - promotion.missing + perMs * (endMs - promotion.fromMs) + EPSILON;
      worst = Math.max(worst, at + 1 - most);
    }
    return worst;
  }

  startWindow(): void {
    this.promotion = undefined;
    this.beyondPlain = 0;
    this.windowMs = performance.now();
  }

  /** Returns the tokens refilled after `fromMs` and before the window began. */
  private givenBefore(fromMs: number): number {
    return this.gifts.reduce(
      (sum, { toMs, tokens }) => (toMs >= fromMs && toMs < this.windowMs ? sum + tokens : sum),
      0,
    );
  }

  private tokensAt({ tokens, atMs }: Level, nowMs: number): number {
    return Math.max(0, tokens - this.bucket.perMs * Math.max(0, nowMs - atMs));
  }

  private takeFromMost(atMs: number): void {
    const tokens = Math.min(this.bucket.maxTokens, this.tokensAt(this.most, atMs) + 1);
    this.most = { tokens, atMs: Math.max(atMs, this.most.atMs) };
  }

  /** Records unanswered calls as possible takes, for a bucket that never fills. */
  private expireMaybes(nowMs: number): void {
    const isOver = ({ endMs }: Take): boolean => endMs + UNCERTAIN_MS <= nowMs;
    while (this.maybes[0] !== undefined && isOver(this.maybes[0])) {
      this.takeFromMost((this.maybes.shift() as Take).endMs + UNCERTAIN_MS);
    }
  }

  private givenBetween(fromMs: number, toMs: number): number {
    const { maxTokens, perMs } = this.bucket;
    let given = this.gifts.reduce(
      (sum, gift) => (gift.fromMs <= toMs && gift.toMs >= fromMs ? sum + gift.tokens : sum),
      0,
    );
    // Until the next check, the loss is at most one more full bucket and its refills.
    if (this.openGiftMs !== undefined) given += maxTokens + perMs * (toMs - this.openGiftMs);
    return given;
  }
}
