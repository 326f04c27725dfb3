import type { Rate } from '../../limiter/rate.js';
import { OpenVerdicts } from './open-verdicts.js';
import { type RecentTake, UncomparedTakes } from './uncompared-takes.js';
import type { LimitBucket, LimitingRule, MetLimit } from './verdict.js';

/** Maximum number of takes of one bucket that are compared one by one because their order is unknown. */
const MAX_COMPARED = 256;

const NO_TAKES: readonly RecentTake[] = [];
const NO_REFILL = { less: 0, more: 0, least: Number.NEGATIVE_INFINITY };

/**
 * The uncertainty of one bucket, because the times in the log are not exact, and the use that its callers would have
 * had without a limit.
 *
 * The store decides each request at its earliest time. A token bucket then differs from the real one by the refill in
 * the time that is unknown, and by the takes whose order is unknown. If this changes a verdict, the real bucket holds
 * less than the hits of that request afterwards, in either case. So the difference ({@link #more}, {@link #fewer})
 * stays below those hits, until the bucket is full again.
 */
export class TrackedBucket implements LimitBucket {
  readonly rule: LimitingRule;
  readonly rate: Rate;
  /** The highest number of tokens or hits that requests wanted at once, without a limit. */
  peakUse = 0;
  wasDenied = false;
  deniedSinceMicros: number | undefined;
  #use = 0;
  #usedAtMicros = 0;
  #more = 0;
  #fewer = 0;
  /** When the bucket of the store is full, or its window ends. */
  #settledAtMicros = 0;
  /** Hits counted in a window that may belong to the next one. */
  #nearEnd = 0;
  /** Takes that may have happened after the next one. */
  #recent: RecentTake[] | undefined;
  /** Takes before {@link #recent} that may have happened after the next one, too. */
  #uncompared: UncomparedTakes | undefined;
  /** The verdicts that are open since the real bucket was known last. */
  #open: OpenVerdicts | undefined;
  /** Hits of all takes since the real bucket was certainly full. */
  #takenSinceFull = 0;
  #hits: number | undefined;
  /** Whether takes had different hits. The number of denials then depends on their order. */
  #hasMixedHits = false;

  constructor(rule: LimitingRule, rate: Rate) {
    this.rule = rule;
    this.rate = rate;
  }

  record(limit: MetLimit, isAllowed: boolean, startMicros: number, endMicros: number): void {
    const { outcome } = limit;
    const { rate, refund, hits } = limit.take;
    if (refund) return;
    this.forgetBefore(startMicros);
    this.#hits ??= hits;
    if (hits !== this.#hits && !this.#hasMixedHits) {
      this.#hasMixedHits = true;
      this.#open?.widen(Number.POSITIVE_INFINITY);
    }
    const isTaken = isAllowed && !outcome.limited;
    if (rate.kind === 'token_bucket')
      this.#recordTokens(limit, isTaken, rate.p / rate.q, startMicros, endMicros);
    else if (rate.kind === 'window') this.#recordWindow(limit, isTaken, startMicros, endMicros);
    else this.#judge(limit, isTaken, endMicros, rate.max - outcome.used + (isTaken ? hits : 0));
    this.wasDenied ||= limit.denied;
    limit.wantedCapacity = this.#use;
    if (this.#use > this.peakUse) this.peakUse = this.#use;
  }

  openVerdicts(): OpenVerdicts {
    if (this.#open === undefined) {
      this.#open = new OpenVerdicts();
      if (this.#hasMixedHits) this.#open.widen(Number.POSITIVE_INFINITY);
    }
    return this.#open;
  }

  /** Says that no verdict will be added to the open ones. */
  closeVerdicts(): void {
    this.#open?.close();
    this.#open = undefined;
  }

  disturb({ take, outcome, request }: MetLimit): void {
    const { hits } = take;
    this.openVerdicts().widen(Number.POSITIVE_INFINITY);
    if (request?.denied === true || outcome.limited) this.#fewer += hits;
    else this.#more += hits;
  }

  #recordTokens(
    limit: MetLimit,
    isTaken: boolean,
    tokenMicros: number,
    startMicros: number,
    endMicros: number,
  ): void {
    const { hits, rate } = limit.take;
    const { limited, remaining, waitMicros } = limit.outcome;
    this.#use = Math.max(0, this.#use - (startMicros - this.#usedAtMicros) / tokenMicros) + hits;
    this.#usedAtMicros = startMicros;
    const capacity = rate.reportedLimit;
    if (hits > capacity) return;
    // A bucket that was full for some time is full, even if earlier takes happened later.
    const refilled = Math.max(0, startMicros - this.#settledAtMicros) / tokenMicros;
    const unknown = (endMicros - startMicros) / tokenMicros;
    // First, it makes up for what other orders have taken, then for the unknown time.
    const less = Math.max(0, unknown - Math.max(0, refilled - this.#fewer));
    this.#fewer = Math.max(0, this.#fewer - refilled);
    // The time until the hits or the next token fit gives the fraction of a token.
    const next = limited ? hits : remaining + 1;
    const left = waitMicros === 0 ? remaining : next - waitMicros / tokenMicros;
    this.#settledAtMicros = startMicros + (capacity - left) * tokenMicros;
    const before = isTaken ? left + hits : left;
    this.#more = Math.min(this.#more, Math.max(0, capacity - before));
    // When both buckets are full, their difference is lost, and later verdicts may differ again.
    if (before >= capacity) this.#open?.widenBy(1);
    if (less === 0 && this.#fewer === 0) this.#takenSinceFull = 0;
    // The real bucket holds at least what the takes have left of the capacity since it was full.
    const least = capacity - this.#takenSinceFull;
    this.#takenSinceFull += hits;
    this.#judge(limit, isTaken, endMicros, before, { less, more: unknown, least });
  }

  #recordWindow(limit: MetLimit, isTaken: boolean, startMicros: number, endMicros: number): void {
    const { outcome } = limit;
    const { hits, rate } = limit.take;
    if (startMicros >= this.#settledAtMicros) {
      this.#use = 0;
      this.#more = 0;
      this.#fewer = this.#nearEnd;
      this.#nearEnd = 0;
      this.#settledAtMicros = startMicros + outcome.waitMicros;
    }
    this.#use += hits;
    const isCounted = isTaken || rate.countsDenied(true);
    const before = rate.reportedLimit - outcome.used + (isCounted ? hits : 0);
    this.#judge(limit, isCounted, endMicros, before);
    if (endMicros <= this.#settledAtMicros) return;
    this.#nearEnd += hits;
    if (outcome.limited) limit.markOpen();
    this.#open?.widen(Number.POSITIVE_INFINITY);
  }

  /**
   * Compares what a bucket held before a take with its hits. `refill`: how much less or more may have
   * refilled, and the least that it held in any case.
   */
  #judge(limit: MetLimit, isTaken: boolean, endMicros: number, before: number, refill = NO_REFILL): void {
    const { outcome } = limit;
    const { hits, rate } = limit.take;
    let least = before - this.#fewer - refill.less;
    let most = before + this.#more + refill.more;
    const byTime = outcome.limited ? most >= hits : Math.max(least, refill.least) < hits;
    const others = this.#recent ?? NO_TAKES;
    const uncompared = this.#uncompared;
    if (uncompared !== undefined) {
      most += uncompared.takenHits;
      least -= uncompared.otherHits;
    }
    for (const recent of others) {
      if (recent.isTaken) most += recent.limit.take.hits;
      else least -= recent.limit.take.hits;
    }
    least = Math.max(least, refill.least);
    const isOpen = outcome.limited ? most >= hits : least < hits;
    if (this.#more === 0 && this.#fewer === 0 && others.length === 0) this.closeVerdicts();
    if (isOpen) limit.markOpen();
    if (byTime) this.openVerdicts().widen(1 + Math.floor(Math.max(refill.less, refill.more) / hits));
    const after = isTaken ? before - hits : before;
    // Takes of the same size leave the same in each order.
    let largest = byTime ? hits : 0;
    for (const recent of others) {
      recent.least -= hits;
      if (!recent.limit.outcome.limited && recent.least < recent.limit.take.hits) recent.limit.markOpen();
      else if (!isOpen) continue;
      if (recent.limit.take.hits !== hits) largest = Math.max(largest, hits, recent.limit.take.hits);
    }
    if (uncompared !== undefined) {
      uncompared.addLater(hits);
      if (this.#hasMixedHits) largest = Math.max(largest, hits, uncompared.largestHits);
    }
    this.#recent ??= [];
    this.#recent.push({ limit, endMicros, isTaken, least });
    if (largest === 0 || rate.countsDenied(true)) return;
    this.#more = Math.max(this.#more, largest - after);
    this.#fewer = Math.max(this.#fewer, after);
  }

  forgetBefore(startMicros: number): void {
    const recent = this.#recent;
    if (this.#uncompared?.haveEnded(startMicros) === true) this.#uncompared = undefined;
    if (recent === undefined) return;
    if ((recent.at(-1) as RecentTake).endMicros <= startMicros) {
      this.#recent = undefined;
      return;
    }
    const takes = recent.filter(({ endMicros }) => endMicros > startMicros);
    const more = takes.length - MAX_COMPARED;
    if (more > 0) {
      this.#uncompared ??= new UncomparedTakes();
      this.#uncompared.add(takes.splice(0, more));
    }
    this.#recent = takes;
  }
}
