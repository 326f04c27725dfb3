import type { Bucket } from './buckets.js';

/** A call that took, or may have taken, a token. Times are in milliseconds of the test's clock. */
interface Take {
  readonly sentMs: number;
  readonly endMs: number;
}

/** Tokens that Redis lost, or may have lost. Callers can take these tokens again. */
interface Loss {
  readonly fromMs: number;
  readonly toMs: number;
  readonly tokens: number;
}

/** Number of tokens that a bucket lacks at a time. */
interface MissingTokens {
  readonly tokens: number;
  readonly atMs: number;
}

const NONE_MISSING: MissingTokens = { tokens: 0, atMs: 0 };
/** Maximum number of recorded takes. Older takes do not affect a bucket that fills within seconds. */
const MAX_TAKES = 400;
/** Time during which an unanswered call may still take its token, because a paused Redis may have received it. */
const UNCERTAIN_MS = 10_000;
/** Time during which weir may repeat cached denials of a lost bucket: slightly more than DENY_CACHE_MAX_AGE. */
const CACHED_DENIALS_MS = 2_000;
/** Rounding error, in tokens. */
const EPSILON = 0.001;

/**
 * Checks, from the answers, that a bucket allowed no more than its capacity, its refills, and the tokens that Redis
 * lost. The exact time of a take is unknown, so an interval counts only takes that began and ended within the interval.
 */
export class Ledger {
  readonly bucket: Bucket;
  /** Tokens allowed beyond capacity, refills and earlier losses since {@link startWindow}. */
  excessTokens = 0;
  private takes: Take[] = [];
  private uncertainTakes: Take[] = [];
  private losses: Loss[] = [];
  /** Time since when Redis may have lost the bucket; undefined if its content is known. */
  private lossStartMs: number | undefined;
  private windowMs = 0;
  private promotion: { readonly missing: number; readonly fromMs: number; readonly toMs: number } | undefined;
  private callsInProgress = 0;
  /** Number of calls for the bucket so far. */
  private startedCalls = 0;
  /** Missing tokens, according to the acknowledged takes. */
  private minMissing: MissingTokens = NONE_MISSING;
  /** Missing tokens, if unanswered calls took their tokens as late as possible. */
  private maxMissing: MissingTokens = NONE_MISSING;

  constructor(bucket: Bucket) {
    this.bucket = bucket;
  }

  /** Records a call that Redis allowed. Returns the number of excess tokens; 0 if the answer is correct. */
  recordAllowed(sentMs: number, endMs: number): number {
    this.takes.push({ sentMs, endMs });
    if (this.takes.length > MAX_TAKES) this.takes.splice(0, MAX_TAKES / 2);
    this.minMissing = { tokens: this.missingAt(this.minMissing, endMs) + 1, atMs: endMs };
    this.expireUncertainTakes(endMs);
    this.takeFromMaxMissing(endMs);
    const { maxTokens, perMs } = this.bucket;
    let count = 0;
    let maxExcess = 0;
    for (const { sentMs: fromMs } of [...this.takes].sort((one, other) => other.sentMs - one.sentMs)) {
      count++;
      const excess = count - maxTokens - perMs * (endMs - fromMs) - EPSILON;
      if (excess <= 0) continue;
      this.excessTokens = Math.max(this.excessTokens, excess - this.lostBefore(fromMs));
      maxExcess = Math.max(maxExcess, excess - this.lostBetween(fromMs, endMs));
    }
    return maxExcess;
  }

  /** Records the start of a call for the bucket. */
  callStarted(): void {
    this.callsInProgress++;
    this.startedCalls++;
  }

  /** Records the end of a call. */
  callEnded(): void {
    this.callsInProgress--;
  }

  /** Records a call that may have taken a token without an answer. */
  recordUncertain(sentMs: number, endMs: number): void {
    this.expireUncertainTakes(endMs);
    this.uncertainTakes.push({ sentMs, endMs });
  }

  /** Returns whether the bucket may have had too few tokens for a call that was sent at `nowMs`. */
  mayDeny(nowMs: number): boolean {
    if (this.lossStartMs !== undefined || this.losses.some(({ toMs }) => nowMs - toMs < CACHED_DENIALS_MS))
      return true;
    this.expireUncertainTakes(nowMs);
    const uncertain = this.uncertainTakes.length + this.callsInProgress + 2;
    return this.missingAt(this.maxMissing, nowMs) + uncertain > this.bucket.maxTokens;
  }

  /**
   * Call this at the start of a check of Redis, and the returned function at its end. The function returns the maximum
   * number of calls that were in progress. Such a call may have taken a token from a partition and give it back later.
   */
  countCallsInProgress(): () => number {
    const { callsInProgress, startedCalls } = this;
    return () => callsInProgress + this.startedCalls - startedCalls;
  }

  /** Marks the bucket as possibly lost until {@link recordLoss}. */
  markPossiblyLost(nowMs: number): void {
    this.lossStartMs ??= nowMs;
  }

  /** Whether Redis may have lost the bucket. */
  get isPossiblyLost(): boolean {
    return this.lossStartMs !== undefined;
  }

  /** Records the missing tokens that a check of Redis found. Returns how many tokens Redis lost. */
  recordLoss(missing: number, nowMs: number): number {
    const fromMs = this.lossStartMs ?? nowMs;
    const level = this.missingAt(this.minMissing, nowMs);
    const tokens = Math.max(0, level - missing);
    // Calls in progress may also have taken from the lost buckets.
    const maxLost = Math.max(0, level + this.callsInProgress - missing);
    this.losses = this.losses.filter(({ toMs }) => nowMs - toMs < 600_000);
    this.losses.push({ fromMs, toMs: nowMs, tokens: maxLost });
    this.lossStartMs = undefined;
    this.minMissing = { tokens: missing, atMs: nowMs };
    this.maxMissing = this.minMissing;
    return tokens;
  }

  /**
   * Records the tokens that the bucket lacks in a promoted Redis, as found between two times. {@link
   * excessAfterPromotion} checks later answers against this number.
   */
  recordPromotion(missing: number, fromMs: number, toMs: number): void {
    this.promotion = { missing, fromMs, toMs };
  }

  /**
   * Returns how many tokens the promoted Redis allowed beyond its tokens at the promotion and later refills; 0 if all
   * answers were correct. Forgets the promotion.
   */
  excessAfterPromotion(): number {
    const { promotion } = this;
    this.promotion = undefined;
    if (promotion === undefined) return 0;
    const { maxTokens, perMs } = this.bucket;
    const laterTakes = this.takes.filter(({ sentMs }) => sentMs >= promotion.toMs);
    let maxExcess = 0;
    for (const [at, { endMs }] of laterTakes.entries()) {
      const available = maxTokens - promotion.missing + perMs * (endMs - promotion.fromMs) + EPSILON;
      maxExcess = Math.max(maxExcess, at + 1 - available);
    }
    return maxExcess;
  }

  /** Resets {@link excessTokens} at the start of a fault. */
  startWindow(): void {
    this.promotion = undefined;
    this.excessTokens = 0;
    this.windowMs = performance.now();
  }

  /** Returns the tokens lost after `fromMs` and before the window began. */
  private lostBefore(fromMs: number): number {
    return this.losses.reduce(
      (sum, { toMs, tokens }) => (toMs >= fromMs && toMs < this.windowMs ? sum + tokens : sum),
      0,
    );
  }

  private missingAt({ tokens, atMs }: MissingTokens, nowMs: number): number {
    return Math.max(0, tokens - this.bucket.perMs * Math.max(0, nowMs - atMs));
  }

  private takeFromMaxMissing(atMs: number): void {
    const tokens = Math.min(this.bucket.maxTokens, this.missingAt(this.maxMissing, atMs) + 1);
    this.maxMissing = { tokens, atMs: Math.max(atMs, this.maxMissing.atMs) };
  }

  /** Moves uncertain takes to {@link maxMissing} when their tokens must have been taken. */
  private expireUncertainTakes(nowMs: number): void {
    const isOver = ({ endMs }: Take): boolean => endMs + UNCERTAIN_MS <= nowMs;
    while (this.uncertainTakes[0] !== undefined && isOver(this.uncertainTakes[0])) {
      this.takeFromMaxMissing((this.uncertainTakes.shift() as Take).endMs + UNCERTAIN_MS);
    }
  }

  private lostBetween(fromMs: number, toMs: number): number {
    const { maxTokens, perMs } = this.bucket;
    let lost = this.losses.reduce(
      (sum, loss) => (loss.fromMs <= toMs && loss.toMs >= fromMs ? sum + loss.tokens : sum),
      0,
    );
    // Until the next check, Redis may have lost a full bucket and its refills.
    if (this.lossStartMs !== undefined) lost += maxTokens + perMs * (toMs - this.lossStartMs);
    return lost;
  }
}
