import type { Bucket } from './buckets.js';

/** A call that took a token, or may have. Milliseconds of the harness's clock. */
interface Take {
  readonly sentMs: number;
  readonly endMs: number;
}

/** Tokens that came back, or may have: buckets that were lost. */
interface Gift {
  readonly fromMs: number;
  readonly toMs: number;
  readonly tokens: number;
}

/** Tokens that are missing at a time. */
interface Level {
  readonly tokens: number;
  readonly atMs: number;
}

const EMPTY: Level = { tokens: 0, atMs: 0 };
/** Takes that are remembered: older ones cannot matter to a bucket that fills within seconds. */
const REMEMBERED = 400;
/** How long a call without an answer may still take its token: Redis may be stopped with it in its hands. */
const UNCERTAIN_MS = 10_000;
/** How long denials may be repeated without asking after buckets were lost: DENY_CACHE_MAX_AGE, and some. */
const REPEATED_MS = 2_000;
/** Rounding of a token. */
const EPSILON = 0.001;

/**
 * What a bucket may have given, from the answers seen: no more than its capacity, what filled since, and what was lost
 * with the state of Redis. Whenever a token was taken within an interval, it is not known when exactly, so that only
 * takes count that lie in it wholly.
 */
export class Ledger {
  readonly bucket: Bucket;
  /** The most that was admitted beyond capacity and filling alone, since {@link startWindow}. */
  beyondPlain = 0;
  private takes: Take[] = [];
  private maybes: Take[] = [];
  private gifts: Gift[] = [];
  private openGiftMs: number | undefined;
  private windowMs = 0;
  private promotion: { readonly missing: number; readonly fromMs: number; readonly toMs: number } | undefined;
  private inFlight = 0;
  /** Calls so far that asked for the bucket. */
  private calls = 0;
  /** Tokens missing, by the takes that were acknowledged. */
  private least: Level = EMPTY;
  /** Tokens missing, if calls without an answer took theirs, as late as they could: those that took them by now. */
  private most: Level = EMPTY;

  constructor(bucket: Bucket) {
    this.bucket = bucket;
  }

  /** Admitted by Redis. Returns how many tokens that is too many, 0 when it is right. */
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

  /** A call asks for the bucket, and has no answer yet. */
  asked(): void {
    this.inFlight++;
    this.calls++;
  }

  /** It has. */
  answered(): void {
    this.inFlight--;
  }

  /** A call that may have taken a token, though nobody was told. */
  maybe(sentMs: number, endMs: number): void {
    this.expireMaybes(endMs);
    this.maybes.push({ sentMs, endMs });
  }

  /** Whether the denial of a call that was sent then may be right: too few tokens could have been left. */
  mayDeny(nowMs: number): boolean {
    if (this.openGiftMs !== undefined || this.gifts.some(({ toMs }) => nowMs - toMs < REPEATED_MS))
      return true;
    this.expireMaybes(nowMs);
    return this.tokensAt(this.most, nowMs) + this.maybes.length + this.inFlight + 2 > this.bucket.maxTokens;
  }

  /**
   * Called before Redis is looked at. What it gives says, afterwards, how many calls may have been under way meanwhile:
   * where buckets of a request are taken in parts, each may have had a token that it gives back.
   */
  underWaySince(): () => number {
    const { inFlight, calls } = this;
    return () => inFlight + this.calls - calls;
  }

  /** From now on buckets may be lost, until {@link found}. */
  lose(nowMs: number): void {
    this.openGiftMs ??= nowMs;
  }

  /** Whether buckets may be lost right now. */
  get isOpen(): boolean {
    return this.openGiftMs !== undefined;
  }

  /** Redis was looked at: so many tokens are missing there. Returns how many were given back. */
  found(missing: number, nowMs: number): number {
    const fromMs = this.openGiftMs ?? nowMs;
    const level = this.tokensAt(this.least, nowMs);
    const tokens = Math.max(0, level - missing);
    // What is under way may have been taken from the buckets that were lost, too.
    const most = Math.max(0, level + this.inFlight - missing);
    this.gifts = this.gifts.filter(({ toMs }) => nowMs - toMs < 600_000);
    this.gifts.push({ fromMs, toMs: nowMs, tokens: most });
    this.openGiftMs = undefined;
    this.least = { tokens: missing, atMs: nowMs };
    this.most = this.least;
    return tokens;
  }

  /**
   * Redis was promoted with so many tokens missing, as was seen between two times, and may be what decides from now on:
   * see {@link confirm}.
   */
  promoted(missing: number, fromMs: number, toMs: number): void {
    this.promotion = { missing, fromMs, toMs };
  }

  /**
   * It was: returns how many tokens more it gave than it had, of calls that were sent since; 0 when it is right.
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

  /** Tokens that came back after `fromMs`, and before the window began. */
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

  /** Calls that take nothing from now on may have taken their token: a bucket that never fills keeps that in mind. */
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
    // As long as nobody has looked: a second bucket at the most, and what filled in it.
    if (this.openGiftMs !== undefined) given += maxTokens + perMs * (toMs - this.openGiftMs);
    return given;
  }
}
