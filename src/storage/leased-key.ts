import type { Take, TakeOutcome, TakeResult } from '../limiter/bucket-store.js';
import type { TimedRate } from '../limiter/rate.js';
import { type Grant, type LeaseTerms, MIN_LEASED_HITS } from '../limiter/rate-algorithm.js';
import { TakeSnapshot } from '../limiter/running-bucket.js';
import { refillWhole, takeTokens } from '../limiter/token-bucket.js';

/** The rate of a limit that leases. */
export type LeasedRate = TimedRate & { readonly lease: LeaseTerms };

/** Tokens that may lapse for each allowed hit. Of callers with steady requests, fewer tokens lapse anyway. */
const LAPSED_SHARE = 0.05;
/** Takes are counted for this many times the life of a lease, so that chance does not decide about leases. */
const MEASURED_LEASES = 4;
/** Divisor of a lease: when this part of it is left, the process asks for the next one. */
const LOW_WATER = 4;
/**
 * Minimum number of tokens of a lease that is followed by another one so early. Smaller ones would often lapse, so a
 * take asks for them, which needs no token itself.
 */
const MIN_FOLLOWED = 8;
/** Maximum of LeasedKey.waits. If Redis is always slower than `for`, one trip in nine asks for a useless lease. */
const MAX_WAITS = 8;

/** Counts since start. */
export interface LeaseCounts {
  /** Requests that were decided with leased tokens, without the first one of each lease. */
  tripsSaved: number;
  /** Tokens that nobody had spent when their lease ended. */
  tokensLapsed: number;
  /** Takes that were denied while their bucket was not asked for a lease, see {@link LeasedKey.pause}. */
  earlyDenials: number;
}

/** A lease that was asked for. */
export interface LeaseRequest {
  /** Number of tokens. */
  readonly count: number;
  readonly sentMicros: number;
  readonly deadlineMicros: number;
  /** Callers that wait for the lease. */
  readonly waiters: {
    readonly takes: readonly Take[];
    readonly deadlineMicros: number;
    readonly resolve: (result: TakeResult | Promise<TakeResult>) => void;
  }[];
}

/** Tokens that this process has taken from a bucket, and spends alone. Times are on the monotonic clock. */
export class Lease {
  tokens: number;
  readonly granted: number;
  /**
   * Counts from the time of sending, so that the tokens are never spent later than `forMicros` after Redis took them,
   * and never after the end of their window on Redis's clock. Using a lease does not prolong it.
   */
  readonly endsMicros: number;
  /** Whether any token was spent. */
  isUsed = false;
  private readonly rate: LeasedRate;
  /** The state of the bucket without the tokens that were spent. */
  private readonly state: TakeSnapshot;
  /** Redis's time at 0 on the monotonic clock. It is fast by the time that the call took to reach Redis. */
  readonly startMicros: number;
  private readonly tellsTime: boolean;

  constructor(rate: LeasedRate, grant: Grant, sentMicros: number, tellsTime: boolean) {
    const { granted, wholeMicros, remainder, nowMicros } = grant;
    this.rate = rate;
    this.tokens = granted;
    this.granted = granted;
    this.state = new TakeSnapshot();
    this.state.wholeMicros = wholeMicros;
    this.state.remainder = remainder;
    this.startMicros = nowMicros - sentMicros;
    this.tellsTime = tellsTime;
    this.endsMicros = sentMicros + lifeOf(rate, nowMicros);
  }

  /** Spends `spent` tokens. Returns the outcome of an item with `hits`. */
  take(hits: number, spent: number, nowMicros: number): TakeOutcome {
    const { rate, state } = this;
    this.tokens -= spent;
    const redisMicros = this.startMicros + nowMicros;
    if (rate.kind === 'window') state.count += spent;
    else {
      if (state.wholeMicros < redisMicros) {
        state.wholeMicros = redisMicros;
        state.remainder = 0;
      }
      state.previousFullAtMicros = state.fullAtMicros;
      takeTokens(state, rate, spent);
    }
    const outcome = rate.outcome(hits, state, redisMicros);
    if (this.tellsTime) outcome.decidedMicros = redisMicros;
    return outcome;
  }
}

/** Returns the life of a lease that Redis grants at `redisMicros`, in microseconds. A lease ends with its window. */
function lifeOf(rate: LeasedRate, redisMicros: number): number {
  if (rate.kind !== 'window') return rate.lease.forMicros;
  return Math.min(rate.lease.forMicros, rate.endOf(rate.startOf(redisMicros)) - redisMicros);
}

/** A bucket of a limit that leases: how often this process takes from it, and what the process has leased. */
export class LeasedKey {
  readonly rate: LeasedRate;
  /** The lease that this process has asked for and not received. */
  request: LeaseRequest | undefined;
  private lease: Lease | undefined;
  /** The lease that follows, which may end before this process uses it. */
  private next: Lease | undefined;
  /** Hits since `sinceMicros`, and in the period before; undefined without such a period. */
  private count = 0;
  private countBefore: number | undefined;
  private sinceMicros: number;
  /** Redis's time at 0 on the monotonic clock, as of the last lease. */
  private startMicros: number | undefined;
  /** Tokens that may still lapse. Below 0, the process asks for no lease. */
  private mayLapse = 0;
  /** After a lease that arrived too late, the process waits this many times as long before it asks again. */
  private waits = 0;
  private askAfterMicros = Number.NEGATIVE_INFINITY;
  private pausedUntilMicros = Number.NEGATIVE_INFINITY;
  /** Number of tokens that the last pause waited for. */
  private awaited = Number.POSITIVE_INFINITY;
  /** The outcome of the lease that the store could not grant in full, and when it was asked for. */
  private denied: TakeOutcome | undefined;
  private deniedMicros = 0;
  private readonly counts: LeaseCounts;

  constructor(rate: LeasedRate, counts: LeaseCounts, nowMicros: number) {
    this.rate = rate;
    this.counts = counts;
    this.sinceMicros = nowMicros;
  }

  /** Counts a take. Peeks need no tokens, and leases are too small for takes with many hits. */
  note(hits: number, nowMicros: number): void {
    if (hits === 0 || 2 * hits > this.rate.lease.max) return;
    const periodMicros = MEASURED_LEASES * this.rate.lease.forMicros;
    const age = nowMicros - this.sinceMicros;
    if (age >= periodMicros) {
      const isNext = age < 2 * periodMicros;
      this.countBefore = isNext ? this.count : undefined;
      this.count = 0;
      this.sinceMicros = isNext ? this.sinceMicros + periodMicros : nowMicros;
    }
    this.count += hits;
  }

  /** Counts the hits of an allowed request. */
  noteAllowed(hits: number): void {
    this.mayLapse = Math.min(this.rate.lease.max, this.mayLapse + LAPSED_SHARE * hits);
  }

  /**
   * Returns the number of tokens to ask for: half of the hits during the life of a lease that is granted now, so that
   * all of them are likely to be spent. 0 if the key is not hot enough, or if too many tokens have lapsed: its callers
   * may send short bursts, or other limits of their requests may deny them.
   */
  size(nowMicros: number): number {
    const { forMicros, max } = this.rate.lease;
    const age = nowMicros - this.sinceMicros;
    const { count, countBefore } = this;
    // The counts cover this number of leases.
    const measured = countBefore === undefined ? Math.max(1, age / forMicros) : MEASURED_LEASES;
    const perLease =
      (count + (countBefore ?? 0) * Math.max(0, 1 - age / (MEASURED_LEASES * forMicros))) / measured;
    const life = this.startMicros === undefined ? forMicros : lifeOf(this.rate, this.startMicros + nowMicros);
    const hits = (perLease * life) / forMicros;
    return hits < MIN_LEASED_HITS || this.mayLapse < 0 ? 0 : Math.min(max, Math.ceil(hits / 2));
  }

  /** Returns a lease that has at least `hits` tokens, and at least one. */
  leaseFor(hits: number, nowMicros: number): Lease | undefined {
    this.dropEnded(nowMicros);
    const { lease, next } = this;
    const least = hits === 0 ? 1 : hits;
    if (lease !== undefined && lease.tokens >= least) return lease;
    return next !== undefined && next.tokens >= least && next.endsMicros > nowMicros ? next : undefined;
  }

  /** Number of tokens that are leased now. */
  tokens(nowMicros: number): number {
    this.dropEnded(nowMicros);
    return (this.lease?.tokens ?? 0) + (this.next?.tokens ?? 0);
  }

  /** Whether this process should ask for another lease: it has none, or little of it is left. */
  wantsLease(nowMicros: number): boolean {
    if (this.request !== undefined || this.next !== undefined || nowMicros < this.askAfterMicros)
      return false;
    if (this.isPaused(nowMicros)) return false;
    if (this.lease === undefined) return true;
    const { tokens, granted } = this.lease;
    return granted >= MIN_FOLLOWED && tokens > 0 && tokens * LOW_WATER <= granted;
  }

  /** Handles the outcome of a lease that was asked for. Returns false if it arrived too late, or not at all. */
  receive(request: LeaseRequest, outcome: TakeOutcome | undefined, nowMicros: number): boolean {
    const { sentMicros, count } = request;
    const isCurrent = this.request === request;
    if (isCurrent) this.request = undefined;
    const grant = outcome?.grant;
    const lease = grant && new Lease(this.rate, grant, sentMicros, outcome?.decidedMicros !== undefined);
    if (lease !== undefined) this.startMicros = lease.startMicros;
    if (outcome === undefined || lease === undefined || !isCurrent || lease.endsMicros <= nowMicros) {
      this.counts.tokensLapsed += lease?.granted ?? 0;
      this.askAfterMicros = nowMicros + this.waits * (nowMicros - sentMicros);
      this.waits = Math.min(MAX_WAITS, 2 * this.waits + 1);
      return false;
    }
    this.waits = 0;
    // An empty lease is dropped when the key is used.
    if (this.lease === undefined) this.lease = lease;
    else this.next = lease;
    if (lease.granted < count) this.pause(outcome, request, nowMicros);
    return true;
  }

  /**
   * Denies takes without a call until `count` tokens or half of the bucket have refilled, at most for half the life of
   * a lease. Otherwise, a key over its limit would ask for each token separately. After a lease without any tokens, the
   * pause waits for half as many as before, so that other processes cannot take all tokens in each pause. `denied` is
   * the store's outcome. A pause ends with the window at the latest.
   */
  private pause(denied: TakeOutcome, { count, sentMicros }: LeaseRequest, nowMicros: number): void {
    const { rate } = this;
    const most = denied.grant?.granted === 0 ? Math.ceil(this.awaited / 2) : Infinity;
    this.awaited = Math.min(count, Math.ceil(rate.reportedLimit / 2), most);
    const hasTokensMicros =
      rate.kind === 'window' ? sentMicros + denied.waitMicros : nowMicros + refillWhole(rate, this.awaited);
    this.pausedUntilMicros = Math.min(nowMicros + rate.lease.forMicros / 2, hasTokensMicros);
    this.denied = denied;
    this.deniedMicros = sentMicros;
  }

  /** Ends the pause, because tokens may have been added to the bucket. */
  resume(): void {
    this.pausedUntilMicros = Number.NEGATIVE_INFINITY;
  }

  isPaused(nowMicros: number): boolean {
    return nowMicros < this.pausedUntilMicros;
  }

  /** Returns the outcome of a take during a pause. */
  denial(hits: number, nowMicros: number): TakeOutcome {
    const { rate } = this;
    const { remaining, waitMicros, used } = this.denied as TakeOutcome;
    const more = rate.kind === 'window' ? 0 : refillWhole(rate, Math.min(hits, rate.maxTokens) - 1);
    const waited = nowMicros - this.deniedMicros;
    const wait = Math.ceil(Math.max(this.pausedUntilMicros - nowMicros, waitMicros + more - waited));
    return { overLimit: true, remaining, waitMicros: wait, used, uncollectedHits: 0, cached: true };
  }

  /** Ends all leases, also those that were asked for. */
  end(): void {
    this.counts.tokensLapsed += (this.lease?.tokens ?? 0) + (this.next?.tokens ?? 0);
    this.lease = undefined;
    this.next = undefined;
    this.request = undefined;
    this.resume();
  }

  private dropEnded(nowMicros: number): void {
    while (this.lease !== undefined && (this.lease.tokens === 0 || this.lease.endsMicros <= nowMicros)) {
      this.counts.tokensLapsed += this.lease.tokens;
      this.mayLapse -= this.lease.tokens;
      this.lease = this.next;
      this.next = undefined;
    }
  }
}
