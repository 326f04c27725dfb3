import type { BucketStore, LocalStore, Take, TakeOutcome } from '../limiter/bucket-store.js';
import type { Clock } from '../limiter/clock.js';
import type { WindowRate } from '../limiter/fixed-window.js';
import { isCharge, type Rate } from '../limiter/rate.js';
import { MAX_FILL_MICROS, MAX_UINT32 } from '../limiter/rate-algorithm.js';
import type { TokenBucketRate } from '../limiter/token-bucket.js';
import { loweredBy } from '../policy/leases.js';
import { rateOf, rateSpecOf } from '../policy/plans/plan-rate.js';
import { isBlocked } from '../policy/plans/plan-rules.js';
import { capacityFor, classOf } from '../policy/priorities.js';
import type { Rule } from '../policy/rule.js';
import type { MatchedTake } from '../service/request-context.js';

/*
 * Finds the limits that would have denied nobody, or few requests. A store without limits takes the hits of all
 * requests of the log, also of those that the policy denies, from buckets that can never be too small. A limit of L can
 * deny a request only if more than L is used after it there: a denied request takes nothing, so a bucket of size L
 * never has more in use. Counting the requests by this use gives the share that each limit denies at most.
 */

/** Why the report names no limit for a rule. */
export type NoLimit =
  /** The log is shorter than a window of the rule. */
  | { readonly kind: 'short_log' }
  /** With debt, a window passes its excess on to the next window. */
  | { readonly kind: 'debt' }
  /** Some callers send more than the rule refills all the time, so that any bucket runs empty in a longer log. */
  | { readonly kind: 'rate'; readonly callers: number; readonly excess: number };

/** The limits that a rule would have needed: `max_tokens`, `requests_per_unit` or `max`. */
export interface NeededLimits {
  readonly requests: number;
  /** The smallest limits found for {@link SHARES}; undefined if there is none. */
  readonly limits: readonly (number | undefined)[];
  /** Why a limit is missing. */
  readonly why: NoLimit | undefined;
}

/** Shares of the requests that the reported limits deny at most. */
const SHARES = [0, 0.001, 0.01] as const;

/** Maximum number of callers whose rate is compared with that of their rule. Beyond it, a new comparison begins. */
const MAX_SENDERS = 200_000;
/** Part of a window that a log may lack so that the window counts as complete. */
const MISSING_PART = 0.01;

/** Numbers up to this are counted exactly, larger ones are rounded up by at most {@link STEP}. */
const EXACT = 1024;
const STEP = 1.005;

/** Counts numbers from 0. */
class Histogram {
  readonly #bins = new Map<number, number>();
  max = 0;
  size = 0;

  add(value: number, times = 1): void {
    const bin = value < EXACT ? value : EXACT + Math.ceil(Math.log(value / EXACT) / Math.log(STEP));
    this.#bins.set(bin, (this.#bins.get(bin) ?? 0) + times);
    if (value > this.max) this.max = value;
    this.size += times;
  }

  addAll(other: Histogram, factor = 1): void {
    for (const [bin, times] of other.#bins) this.add(Math.ceil(largestIn(bin, other.max) * factor), times);
  }

  /** Returns the smallest number that at most `share` of the numbers exceed, or a number slightly above it. */
  exceededBy(count: number): number {
    if (count < 1) return this.max;
    let left = count;
    for (const bin of [...this.#bins.keys()].sort((a, b) => b - a)) {
      left -= this.#bins.get(bin) ?? 0;
      if (left < 0) return largestIn(bin, this.max);
    }
    return 0;
  }
}

function largestIn(bin: number, max: number): number {
  return bin < EXACT ? bin : Math.min(max, Math.ceil(EXACT * STEP ** (bin - EXACT)));
}

/** Hits that one caller sent to one rule. */
class Sender {
  hits = 0;
  /** Number of different times. */
  moments = 0;
  readonly firstMicros: number;
  lastMicros = -1;
  readonly demand: BucketDemand;

  constructor(demand: BucketDemand, nowMicros: number) {
    this.demand = demand;
    this.firstMicros = nowMicros;
  }

  add(hits: number, nowMicros: number): void {
    this.hits += hits;
    if (nowMicros !== this.lastMicros) this.moments++;
    this.lastMicros = nowMicros;
  }

  /** Returns the hits above what `rate` refills in the log, as if the log was repeated; not above 0 if it keeps up. */
  excess({ refillNumerator, refillDenominator }: TokenBucketRate, spanMicros: number): number {
    // After the last request of a steady caller, the next one is as far away as the others.
    const periodMicros =
      ((this.lastMicros - this.firstMicros) * this.moments) / Math.max(1, this.moments - 1);
    return this.moments < 2
      ? 0
      : this.hits - (Math.max(spanMicros, periodMicros) * refillDenominator) / refillNumerator;
  }
}

/** What the requests of a rule used. */
abstract class Demand {
  /** Requests that the rule could deny. */
  requests = 0;

  abstract add(used: number, nowMicros: number): void;
  /** `log`: times of the first and the last request. */
  abstract needed(firstMicros: number, lastMicros: number): NeededLimits;

  protected result(limits: NeededLimits['limits'], why?: NoLimit): NeededLimits {
    return { requests: this.requests, limits, why };
  }
}

const NO_LIMITS: NeededLimits['limits'] = SHARES.map(() => undefined);

/** A limit on concurrent requests: what is used is the number of requests in flight. */
class ConcurrencyDemand extends Demand {
  readonly #used = new Histogram();

  add(used: number): void {
    this.#used.add(used);
  }

  needed(): NeededLimits {
    return this.result(SHARES.map((share) => this.#used.exceededBy(allowed(share, this.requests))));
  }
}

/** A token bucket: what is used is the number of tokens that are missing. */
class BucketDemand extends Demand {
  readonly #used = new Histogram();
  readonly #rate: TokenBucketRate;
  #callers = 0;
  #excessHits = 0;
  #excess = 0;

  constructor(rate: TokenBucketRate) {
    super();
    this.#rate = rate;
  }

  add(used: number): void {
    this.#used.add(used);
  }

  /** Compares what a caller sent in `spanMicros` with the rate. */
  judge(sender: Sender, spanMicros: number): void {
    const excess = sender.excess(this.#rate, spanMicros);
    // Sums of microseconds are not exact.
    if (excess <= sender.hits * 1e-9) return;
    this.#callers++;
    this.#excessHits += excess;
    this.#excess = Math.max(this.#excess, excess / (sender.hits - excess));
  }

  needed(): NeededLimits {
    // In a longer log, at least the excess of these callers is denied, however large their buckets are.
    const limits = SHARES.map((share) => {
      const left = allowed(share, this.requests) - this.#excessHits;
      return left < 0 ? undefined : this.#used.exceededBy(Math.floor(left));
    });
    const why = { kind: 'rate', callers: this.#callers, excess: this.#excess } as const;
    return this.result(limits, this.#callers === 0 ? undefined : why);
  }
}

/** Windows begin at the same time for all callers, so that the uses of one window are collected together. */
class WindowDemand extends Demand {
  readonly #rate: WindowRate;
  readonly #all = new Histogram();
  /** Uses in windows that the log covers. */
  readonly #whole = new Histogram();
  /** Sum of the largest uses of all windows. */
  #sum = 0;
  #current = new Histogram();
  #start = Number.NEGATIVE_INFINITY;
  readonly #firstMicros: number;

  constructor(rate: WindowRate, firstMicros: number) {
    super();
    this.#rate = rate;
    this.#firstMicros = firstMicros;
  }

  add(used: number, nowMicros: number): void {
    const start = this.#rate.startOf(nowMicros);
    if (start !== this.#start) this.#next(start, nowMicros);
    this.#current.add(used);
  }

  #next(start: number, lastMicros: number): void {
    if (this.#current.size > 0) {
      const end = this.#rate.endOf(this.#start);
      const length = end - this.#start;
      const covered = Math.min(end, lastMicros) - Math.max(this.#start, this.#firstMicros);
      this.#all.addAll(this.#current);
      if (covered >= (1 - MISSING_PART) * length) this.#whole.addAll(this.#current, length / covered);
      this.#sum += this.#current.max;
    }
    this.#current = new Histogram();
    this.#start = start;
  }

  needed(firstMicros: number, lastMicros: number): NeededLimits {
    this.#next(this.#rate.startOf(lastMicros), lastMicros);
    if (this.#whole.size === 0) {
      const length = this.#rate.endOf(this.#start) - this.#start;
      const covered = lastMicros - firstMicros;
      if (covered < (1 - MISSING_PART) * length) return this.result(NO_LIMITS, { kind: 'short_log' });
      const bound = Math.ceil(this.#sum * Math.max(1, length / covered));
      return this.result(SHARES.map(() => bound));
    }
    const limits = SHARES.map((share) => {
      const ofAll = this.#all.exceededBy(allowed(share, this.#all.size));
      return Math.max(ofAll, this.#whole.exceededBy(allowed(share, this.#whole.size)));
    });
    if (this.#rate.maxDebt === 0) return this.result(limits);
    return this.result([limits[0], undefined, undefined], { kind: 'debt' });
  }
}

function allowed(share: number, requests: number): number {
  return Math.floor(share * requests + 1e-9);
}

/** A store in this process. */
interface LocalBuckets extends BucketStore, LocalStore {
  take(takes: readonly Take[]): readonly TakeOutcome[];
}

/** A store whose limits are never exceeded. It observes what all requests of a log would use. */
export class UnlimitedStore implements LocalBuckets {
  readonly #store: LocalBuckets;
  readonly #clock: Clock;
  readonly #rates = new WeakMap<Rate, Rate>();
  /** By rule; undefined for a rule that never denies. */
  readonly #demands = new Map<Rule, Demand | undefined>();
  /** By bucket. */
  readonly #senders = new Map<string, Sender>();
  #firstMicros = Number.NaN;
  /** Time from which the hits of {@link #senders} are counted. */
  #sinceMicros = Number.NaN;

  constructor(store: LocalBuckets, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  take(takes: readonly Take[]): readonly TakeOutcome[] {
    const nowMicros = this.#clock.wallMicros();
    if (Number.isNaN(this.#firstMicros)) {
      this.#firstMicros = nowMicros;
      this.#sinceMicros = nowMicros;
    }
    const outcomes = this.#store.take(takes.map((take) => this.#unlimited(take)));
    /** Whether an earlier limit of the chain (`then`) pays, so that the item is skipped. */
    let isPaid = false;
    for (let at = 0; at < takes.length; at++) {
      const item = takes[at] as Take;
      const outcome = outcomes[at] as TakeOutcome;
      if (item.enforcement === 'spill') isPaid ||= !outcome.overLimit;
      else if (isPaid) isPaid = false;
      else this.#note(item, outcome, nowMicros);
    }
    return outcomes;
  }

  async close(): Promise<void> {}

  /** Returns the limits that rules with requests would have needed until now. Call it once. */
  needed(): ReadonlyMap<Rule, NeededLimits> {
    const lastMicros = this.#clock.wallMicros();
    for (const sender of this.#senders.values()) sender.demand.judge(sender, lastMicros - this.#sinceMicros);
    const needed = new Map<Rule, NeededLimits>();
    for (const [rule, demand] of this.#demands) {
      if (demand !== undefined && demand.requests > 0)
        needed.set(rule, demand.needed(this.#firstMicros, lastMicros));
    }
    return needed;
  }

  #unlimited(take: Take): Take {
    if (take.enforcement === 'spill') return take;
    const { key, hashTagLength, hits, refund, holds, settles } = take;
    let rate = this.#rates.get(take.rate);
    if (rate === undefined) {
      rate = unlimitedRate(take.rate);
      this.#rates.set(take.rate, rate);
    }
    return { key, hashTagLength, rate, hits, refund, enforcement: 'observe', holds, settles };
  }

  #note(take: Take, outcome: TakeOutcome, nowMicros: number): void {
    const { key, hits, refund, rate, settles } = take;
    if (settles !== undefined) {
      // The difference between the use of a hold and its estimate.
      const sender = outcome.hold === 'settled' ? this.#senders.get(key) : undefined;
      if (sender !== undefined) sender.hits += refund ? -hits : hits;
      return;
    }
    const { rule } = take as MatchedTake;
    const demand = rule && this.#demandOf(rule.shared ?? rule);
    if (rule === undefined || demand === undefined) return;
    if (demand instanceof BucketDemand)
      this.#senderOf(key, demand, nowMicros).add(refund ? -hits : hits, nowMicros);
    if (refund || isCharge(rate, hits, refund)) return;
    demand.requests++;
    // A request with 0 hits asks whether there is one more.
    const used = outcome.used + (hits === 0 ? 1 : 0);
    const { priorities, className } = rule;
    // A class cannot use all of the limit.
    const limit =
      className === '' || priorities === undefined ? used : capacityFor(classOf(priorities, className), used);
    // Leases need a part of the bucket.
    demand.add(limit + loweredBy(rule), nowMicros);
  }

  #demandOf(rule: Rule): Demand | undefined {
    // Customers with numbers of their own have rules of their own.
    if (rule.plan !== undefined) return undefined;
    if (this.#demands.has(rule)) return this.#demands.get(rule);
    const demand = demandOf(rule, this.#firstMicros);
    this.#demands.set(rule, demand);
    return demand;
  }

  #senderOf(key: string, demand: BucketDemand, nowMicros: number): Sender {
    const known = this.#senders.get(key);
    if (known !== undefined) return known;
    if (this.#senders.size >= MAX_SENDERS) {
      this.#senders.clear();
      this.#sinceMicros = nowMicros;
    }
    const sender = new Sender(demand, nowMicros);
    this.#senders.set(key, sender);
    return sender;
  }
}

function demandOf(rule: Rule, firstMicros: number): Demand | undefined {
  const { rate, onOver, nextLimit } = rule;
  if (rate === undefined || onOver !== undefined || nextLimit !== '' || isBlocked(rule)) return undefined;
  if (rate.kind === 'concurrency') return new ConcurrencyDemand();
  return rate.kind === 'window' ? new WindowDemand(rate, firstMicros) : new BucketDemand(rate);
}

/** Returns a rate with the windows or the refill of another one, and the largest possible limit. */
function unlimitedRate(rate: Rate): Rate {
  const spec = rateSpecOf(rate);
  const debt = { maxDebt: 0, minChargeHits: Number.POSITIVE_INFINITY };
  if (spec.kind === 'concurrency') return rateOf({ ...spec, max: MAX_UINT32 }, false);
  if (spec.kind === 'window') return rateOf({ ...spec, ...debt, requestsPerUnit: MAX_UINT32 }, false);
  const { refillNumerator, refillDenominator } = rate as TokenBucketRate;
  const maxTokens = Math.min(MAX_UINT32, Math.floor((MAX_FILL_MICROS / refillNumerator) * refillDenominator));
  return rateOf({ ...spec, ...debt, maxTokens }, false);
}
