import { isCharge, type Rate } from '../../limiter/rate.js';
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
 *
 * If all takes have the same hits, the difference is a whole number of takes, apart from the refill in the unknown
 * time. So the next denial tells that both buckets agree again: the real one has allowed that take if it had one more.
 */
export class TrackedBucket implements LimitBucket {
  readonly rule: LimitingRule;
  readonly rate: Rate;
  /** The highest number of tokens, hits or slots that requests wanted at once, without a limit. */
  peakUse = 0;
  /** Whether the use without a limit is known. */
  knowsUse = true;
  wasDenied = false;
  hasDiverged = false;
  deniedSinceMicros: number | undefined;
  #use = 0;
  #usedAtMicros = 0;
  #more = 0;
  #fewer = 0;
  /** Whether {@link #more} and {@link #fewer} are whole takes, apart from the refill in the unknown time. */
  #differsByTakes = true;
  /** Whether the real bucket may have been full at the latest time. */
  #mayBeFull = false;
  /** When the bucket of the store is full, or its window ends. */
  #settledAtMicros = 0;
  /** Hits of the use that were charged after the window ended. */
  #nextUse = 0;
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
    if (hits !== this.#hits) this.#mixHits();
    const isTaken = isAllowed && !outcome.limited && !limit.isSkipped;
    if (rate.kind === 'token_bucket')
      this.#recordTokens(limit, isTaken, rate.p / rate.q, startMicros, endMicros);
    else if (rate.kind === 'window') this.#recordWindow(limit, isTaken, startMicros, endMicros);
    else {
      this.#use += hits;
      this.#judge(limit, isTaken, endMicros, rate.max - outcome.used + (isTaken ? hits : 0));
    }
    this.wasDenied ||= limit.denied;
    // A charge is always allowed, and no capacity allows the requests of a blocked customer.
    if (!this.knowsUse || limit.isSkipped || limit.isBlocked || isCharge(rate, hits, refund)) return;
    // A call with 0 hits asks for one.
    limit.wantedCapacity = this.#use + (hits === 0 ? 1 : 0);
    if (limit.wantedCapacity > this.peakUse) this.peakUse = limit.wantedCapacity;
  }

  /** Changes the use without a limit at the end of a request: slots become free, or hits are charged or given back. */
  changeUse(hits: number, atMicros: number): void {
    const { rate } = this;
    if (rate.kind === 'token_bucket') this.#refillUse(rate.p / rate.q, atMicros);
    if (rate.kind === 'window' && atMicros >= this.#settledAtMicros)
      this.#nextUse = Math.max(0, this.#nextUse + hits);
    else this.#use = Math.max(0, this.#use + hits);
  }

  #refillUse(tokenMicros: number, nowMicros: number): void {
    if (nowMicros <= this.#usedAtMicros) return;
    this.#use = Math.max(0, this.#use - (nowMicros - this.#usedAtMicros) / tokenMicros);
    this.#usedAtMicros = nowMicros;
  }

  recordEnd(hits: number, isRefund: boolean, atMicros: number): void {
    this.changeUse(isRefund ? -hits : hits, atMicros);
    this.#takenSinceFull += hits;
    this.#mixHits();
  }

  #mixHits(): void {
    if (this.#hasMixedHits) return;
    this.#hasMixedHits = true;
    this.#open?.widen(Number.POSITIVE_INFINITY);
  }

  openVerdicts(): OpenVerdicts {
    if (this.#open === undefined) {
      this.#open = new OpenVerdicts();
      if (this.#hasMixedHits) this.#open.widen(Number.POSITIVE_INFINITY);
    }
    return this.#open;
  }

  /** Says that no verdict will be added to the open ones. `agrees`: see {@link OpenVerdicts.close}. */
  closeVerdicts(agrees = false): void {
    this.#open?.close(agrees);
    this.#open = undefined;
  }

  disturb(limit: MetLimit): void {
    const { outcome, request } = limit;
    const { hits, rate } = limit.take;
    if (limit.isAlwaysCounted) return;
    // Another hold changes any number of later verdicts. Another take changes one, until the bucket is full again.
    if (rate.kind === 'concurrency') this.openVerdicts().widen(Number.POSITIVE_INFINITY);
    else this.openVerdicts().widenBy(1);
    if (this.#mayBeFull) this.#differsByTakes = false;
    const isTaken = request?.denied !== true && !outcome.limited && !limit.isSkipped;
    if (isTaken || outcome.limited) this.#more += hits;
    if (!isTaken) this.#fewer += hits;
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
    this.#refillUse(tokenMicros, startMicros);
    if (!limit.isSkipped) this.#use += hits;
    const capacity = rate.reportedLimit;
    if (hits > capacity) return;
    // A bucket that was full for some time is full, even if earlier takes happened later.
    const refilled = Math.max(0, startMicros - this.#settledAtMicros) / tokenMicros;
    const unknown = (endMicros - startMicros) / tokenMicros;
    // First, it makes up for what other orders have taken, then for the unknown time.
    const less = Math.max(0, unknown - Math.max(0, refilled - this.#fewer));
    const differed = this.#more > 0 || this.#fewer > 0;
    this.#fewer = Math.max(0, this.#fewer - refilled);
    // The time until the hits or the next token fit gives the fraction of a token.
    const next = limited ? limit.wantedHits : remaining + 1;
    const left = waitMicros === 0 ? remaining : next - waitMicros / tokenMicros;
    this.#settledAtMicros = startMicros + (capacity - left) * tokenMicros;
    const before = isTaken ? left + hits : left;
    const isKnown = this.#more === 0 && this.#fewer === 0;
    const most = before + this.#more + unknown;
    // When a bucket is full, the difference of both is lost, and later verdicts may differ again.
    if (most >= capacity && (differed || unknown >= hits))
      this.#open?.widenBy(1 + Math.floor(unknown / Math.max(1, hits)));
    this.#mayBeFull = refilled > 0 || most + (this.#recent?.length ?? 0) * hits >= capacity;
    this.#differsByTakes = isKnown || (this.#differsByTakes && !this.#mayBeFull);
    this.#more = Math.min(this.#more, Math.max(0, capacity - before));
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
      this.#use = this.#nextUse;
      this.#nextUse = 0;
      this.#more = 0;
      this.#fewer = this.#nearEnd;
      this.#nearEnd = 0;
      this.#settledAtMicros = startMicros + outcome.waitMicros;
    }
    if (!limit.isSkipped) this.#use += hits;
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
    const { outcome, wantedHits: wanted } = limit;
    const { hits, rate } = limit.take;
    let least = before - this.#fewer - refill.less;
    let most = before + this.#more + refill.more;
    const byTime = outcome.limited ? most >= wanted : Math.max(least, refill.least) < wanted;
    const others = this.#recent ?? NO_TAKES;
    const uncompared = this.#uncompared;
    if (uncompared !== undefined) {
      most += uncompared.takenHits;
      least -= uncompared.otherHits;
    }
    for (const recent of others) {
      if (recent.mayBeTaken) most += recent.limit.take.hits;
      if (!recent.isTaken) least -= recent.limit.take.hits;
    }
    least = Math.max(least, refill.least);
    const isOpen = outcome.limited ? most >= wanted : least < wanted;
    if (this.#more === 0 && this.#fewer === 0 && others.length === 0) this.closeVerdicts(true);
    if (isOpen) limit.markOpen();
    if (byTime)
      this.openVerdicts().widen(1 + Math.floor(Math.max(refill.less, refill.more) / Math.max(1, hits)));
    const after = isTaken ? before - hits : before;
    // Takes of the same size leave the same in each order.
    let largest = byTime && !limit.isSkipped ? hits : 0;
    for (const recent of others) {
      recent.least -= hits;
      if (!recent.limit.outcome.limited && recent.least < recent.limit.wantedHits) recent.limit.markOpen();
      else if (!isOpen) continue;
      if (recent.limit.take.hits !== hits) largest = Math.max(largest, hits, recent.limit.take.hits);
    }
    if (uncompared !== undefined) {
      uncompared.addLater(hits);
      if (this.#hasMixedHits) largest = Math.max(largest, hits, uncompared.largestHits);
    }
    const recent: RecentTake = { limit, endMicros, isTaken, mayBeTaken: isTaken, least };
    this.#recent ??= [];
    this.#recent.push(recent);
    if (largest === 0 || rate.countsDenied(true)) return;
    if (this.#differsByTakes && !this.#hasMixedHits && rate.kind !== 'concurrency') {
      if (!limit.isSkipped && !limit.isDeniedByOthers()) this.#shift(recent, before, refill);
      return;
    }
    this.#more = Math.max(this.#more, largest - after);
    this.#fewer = Math.max(this.#fewer, after);
  }

  /** Updates by how many takes the real bucket may differ, after one that it may not have decided as the replay did. */
  #shift(recent: RecentTake, before: number, refill: typeof NO_REFILL): void {
    const { hits } = recent.limit.take;
    const mayDenyMost = before + this.#more - refill.less < hits;
    const mayAllowFewest = before - this.#fewer + refill.more >= hits;
    if (recent.limit.outcome.limited) {
      if (!mayDenyMost) {
        this.#more -= hits;
        recent.mayBeTaken = true;
      }
      if (mayAllowFewest) this.#fewer += hits;
    } else {
      if (mayDenyMost) this.#more += hits;
      if (!mayAllowFewest) this.#fewer -= hits;
    }
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
