import type { Take, TakeOutcome } from '../../limiter/bucket-store.js';
import { MAX_COUNT } from '../../limiter/fixed-window.js';
import { freesExpired, placeableHold } from '../../limiter/holds/hold.js';
import { isCharge, type TimedRate } from '../../limiter/rate.js';
import { addTo, TakeSnapshot } from '../../limiter/running-bucket.js';
import { takeTokens } from '../../limiter/token-bucket.js';
import { UnknownReplyError } from './connection/redis-error.js';
import type { RepeatedRequest } from './repeated-request.js';
import { encodeNumber } from './take-script.js';

/** An item of a {@link RepeatedTake}. */
export type RunItem = Take & { readonly rate: TimedRate };

/**
 * Returns whether requests with one item can form a {@link RepeatedTake}. Each of them must find the state that the
 * previous request left, so refunds and charges cannot. Holds cannot, either, because each has its own id.
 */
export function mayRun(take: Take): take is RunItem {
  const { rate, hits, refund, enforcement } = take;
  // The enforcement of a single item has no effect, except on a peek that spills.
  if (enforcement === 'spill' || refund) return false;
  if (isCharge(rate, hits, refund) || rate.kind === 'concurrency') return false;
  if (placeableHold(take) !== undefined || freesExpired(take)) return false;
  return rate.kind === 'token_bucket' || rate.maxDebt === 0;
}

/** Holds the state of a run of one request. It is reused, because the run is evaluated before the next run starts. */
const findingOfOne = new TakeSnapshot();

/** A bucket of a call. */
export interface BucketSlot {
  /** Index of its key, from 1. */
  readonly index: number;
  /** The latest step of the bucket. If the next request is equal, it joins this step. */
  last: RepeatedTake | RepeatedRequest | undefined;
  /** Number of steps that use the bucket. */
  steps: number;
  /** Indexes of the sets of its reservations: without and with `freesUnknown`. 0 for a set that the call lacks. */
  reserved: number;
  freed: number;
}

/**
 * Equal requests with one item each ({@link mayRun}). No other take uses their bucket between them. They are one step
 * with a count for the script, which replies with the state that the first request found, and the number of allowed
 * requests. The allowed requests are the first ones, because a bucket that cannot serve a request cannot serve an equal
 * one after it. From the reply, {@link next} computes each outcome exactly.
 */
export class RepeatedTake {
  readonly item: RunItem;
  readonly slot: BucketSlot;
  /** Index of the arguments in the call, from 1. */
  readonly argumentIndex: number;
  count = 1;
  /** Whether {@link start} was called. */
  started = false;
  private passing = 0;
  /** The current state, after {@link start} was called. */
  private state = findingOfOne;
  /** Cost of one request in a token bucket. */
  private refillWhole = 0;
  private refillRemainder = 0;

  /** Whether windows count the hits of denied requests. */
  private readonly countDeniedHits: boolean;

  constructor(item: RunItem, slot: BucketSlot, argumentIndex: number, countDeniedHits: boolean) {
    this.item = item;
    this.countDeniedHits = countDeniedHits;
    this.slot = slot;
    this.argumentIndex = argumentIndex;
  }

  /** Returns whether a request with `item` can join; its key is that of this run. */
  accepts({ rate, hits, refund }: Take): boolean {
    const own = this.item;
    return own.rate === rate && own.hits === hits && !refund;
  }

  /** The step for take.lua. The count is 0 if no other step of the call uses the bucket. */
  get encoded(): string {
    const count = this.count === 1 && this.slot.steps === 1 ? 0 : this.count;
    return encodeNumber(this.slot.index) + encodeNumber(this.argumentIndex) + encodeNumber(count);
  }

  /** Number of integers in the reply. */
  get replyLength(): number {
    const { rate } = this.item;
    return (this.count > 1 ? 2 : 1) + (rate.kind === 'token_bucket' && rate.refillDenominator > 1 ? 1 : 0);
  }

  /**
   * Reads the reply to this run, starting at `at`. Returns the index after the reply. The caller must call {@link next}
   * for all requests before it starts another run. Throws UnknownReplyError if `values` do not match.
   */
  start(values: readonly number[], at: number, nowMicros: number): number {
    const { rate, hits } = this.item;
    this.started = true;
    if (this.count > 1) this.state = new TakeSnapshot();
    let found = values[at++] as number;
    if (this.count > 1) {
      if (found < 0 || found > this.count) throw new UnknownReplyError();
      this.passing = found;
      found = values[at++] as number;
    } else if (found < 0) {
      found = -1 - found;
    } else {
      this.passing = 1;
    }
    if (rate.kind === 'window') {
      this.state.wholeMicros = rate.startOf(nowMicros);
      this.state.remainder = found;
      return at;
    }
    this.state.wholeMicros = nowMicros + found;
    this.state.remainder = rate.refillDenominator > 1 ? (values[at++] as number) : 0;
    if (hits > 0) {
      this.refillWhole = rate.takeCostWhole(hits);
      this.refillRemainder = rate.takeCostCarry(hits);
    }
    return at;
  }

  /** Returns the outcome of the next request of the run; `item` is the request's own item. */
  next(item: RunItem, nowMicros: number): TakeOutcome {
    if (item.count !== undefined) return this.nextSeveral(item, item.count, nowMicros);
    const { rate, hits } = item;
    const { state } = this;
    state.previousFullAtMicros = state.fullAtMicros;
    state.overLimit = this.passing === 0;
    if (state.overLimit) {
      if (rate.countsDenied(this.countDeniedHits)) state.count = Math.min(state.count + hits, MAX_COUNT);
      return rate.outcome(hits, state, nowMicros);
    }
    this.passing--;
    if (rate.kind === 'window') state.count += hits;
    else addTo(state, this.refillWhole, this.refillRemainder, rate.refillDenominator);
    return rate.outcome(hits, state, nowMicros);
  }

  /** Returns the outcome of an item that represents the next `count` requests of the run. */
  private nextSeveral({ rate, hits }: RunItem, count: number, nowMicros: number): TakeOutcome {
    const { state } = this;
    const { wholeMicros, remainder } = state;
    const granted = Math.min(count, this.passing);
    this.passing -= granted;
    state.previousFullAtMicros = state.fullAtMicros;
    state.overLimit = granted < count;
    if (rate.kind === 'window') state.count += granted * hits;
    else takeTokens(state, rate, granted * hits);
    const outcome = rate.outcome(hits, state, nowMicros);
    return { ...outcome, grant: { granted, wholeMicros, remainder, nowMicros } };
  }
}
