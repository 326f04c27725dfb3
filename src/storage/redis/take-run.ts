import type { TakeItem, TakeOutcome } from '../../limiter/bucket-store.js';
import { decide } from '../../limiter/decide.js';
import { MAX_COUNT } from '../../limiter/fixed-window.js';
import { isCharge, type Rate } from '../../limiter/rate.js';
import { RunningBucket, TakeSnapshot } from '../../limiter/running-bucket.js';
import { addTo } from '../../limiter/span.js';
import { UnknownReplyError } from './connection/redis-error.js';
import type { TakeGroup } from './take-group.js';

/**
 * Whether a request of one item may be part of a {@link TakeRun}: each of its equals must find what the one before
 * left, less the same.
 */
export function mayRun({ rate, hits, refund }: TakeItem): boolean {
  if (refund || isCharge(rate, hits, refund)) return false;
  return rate.kind === 'token_bucket' || rate.maxDebt === 0;
}

/** What the answer to a run of one subtracts a state past full from; see take.lua. */
const PAST_FULL = 4e15;

/** Reused: a bucket past full while it is decided on. */
const bucketPastFull = new RunningBucket();

/** Reused: the state found for a run of one request, which is told before the next run is started. */
const findingOfOne = new TakeSnapshot();

/** A bucket of a call. */
export interface BucketSlot {
  /** Index of its key, from 1. */
  readonly index: number;
  /** What was asked of the bucket last: the next equal request joins it. */
  last: TakeRun | TakeGroup | undefined;
  /** Steps that name it. */
  steps: number;
  /** {@link depthOf} the rates that it is asked for with. */
  readonly depth: number;
}

/** How long the bucket of a rate takes to fill from its deepest debt, microseconds; windows have none. */
export function depthOf(rate: Rate): number {
  return rate.kind === 'token_bucket' ? rate.debtWhole : 0;
}

/**
 * Requests of one item each ({@link mayRun}) that ask the same of one bucket, with nothing else on that bucket between
 * them. They go to the script as one step with a count. It answers with the state that the first one found and how many
 * passed; which are the first, since a bucket that could not serve one cannot serve the next. From that {@link next}
 * tells each one's outcome, exactly.
 */
export class TakeRun {
  readonly item: TakeItem;
  readonly slot: BucketSlot;
  /** Index of the ask in the call, from 1. */
  readonly argumentIndex: number;
  count = 1;
  /** Whether {@link start} was called. */
  started = false;
  private passing = 0;
  /** The running state, once {@link start} was called. */
  private state = findingOfOne;
  /** What one request costs on a token bucket. */
  private costWhole = 0;
  private costCarry = 0;

  /** Whether windows count the hits of those that do not pass. */
  private readonly countDeniedHits: boolean;

  constructor(item: TakeItem, slot: BucketSlot, askIndex: number, countDeniedHits: boolean) {
    this.item = item;
    this.countDeniedHits = countDeniedHits;
    this.slot = slot;
    this.argumentIndex = askIndex;
  }

  /** Whether a request with `item` may join, which has the key of this run. */
  accepts({ rate, hits, refund }: TakeItem): boolean {
    const own = this.item;
    return own.rate === rate && own.hits === hits && !refund;
  }

  /** The count as take.lua wants it: 0 where nothing else of the call concerns the bucket. */
  get encodedCount(): number {
    return this.count === 1 && this.slot.steps === 1 ? 0 : this.count;
  }

  /** Numbers of the reply. */
  get replyLength(): number {
    const { rate } = this.item;
    return (this.count > 1 ? 2 : 1) + (rate.kind === 'token_bucket' && rate.q > 1 ? 1 : 0);
  }

  /**
   * Reads the reply to this run at `at` of `values`; the caller asks for {@link next} before it starts another run.
   * Returns the index behind this reply. Throws UnknownReplyError when `values` hold something else there.
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
    } else if (found > PAST_FULL) {
      found = PAST_FULL - found;
    } else {
      this.passing = 1;
    }
    if (rate.kind === 'window') {
      const start = rate.startOf(nowMicros);
      this.state.whole = found < 0 ? -1 - start : start;
      this.state.part = Math.abs(found);
      return at;
    }
    this.state.whole = found < 0 ? found : nowMicros + found;
    this.state.part = rate.q > 1 ? (values[at++] as number) : 0;
    if (hits > 0) {
      this.costWhole = rate.takeCostWhole(hits);
      this.costCarry = rate.takeCostCarry(hits);
    }
    return at;
  }

  /** Outcome of the next request of the run; `item` is its own. */
  next(item: TakeItem, nowMicros: number): TakeOutcome {
    const { rate, hits } = item;
    const { state } = this;
    if (state.whole < 0) return this.nextPastFull(item, nowMicros);
    state.previousFullAtMicros = state.fullAtMicros;
    state.limited = this.passing === 0;
    if (state.limited) {
      if (rate.countsDenied(this.countDeniedHits)) state.count = Math.min(state.count + hits, MAX_COUNT);
      return rate.outcome(hits, state, nowMicros);
    }
    this.passing--;
    if (rate.kind === 'window') state.count += hits;
    else addTo(state, this.costWhole, this.costCarry, rate.q);
    return rate.outcome(hits, state, nowMicros);
  }

  /** {@link next} of a bucket past full: decided once more. */
  private nextPastFull(item: TakeItem, nowMicros: number): TakeOutcome {
    const { state } = this;
    const { rate, hits } = item;
    const unit =
      rate.kind === 'window' ? rate.startOf(nowMicros) - rate.endOf(rate.startOf(nowMicros)) : rate.q;
    bucketPastFull.load(unit, state.whole, state.part);
    decide([item], [bucketPastFull], [state], nowMicros, nowMicros, this.countDeniedHits);
    if (!state.limited) this.passing--;
    const outcome = rate.outcome(hits, state, nowMicros);
    state.whole = bucketPastFull.whole;
    state.part = bucketPastFull.part;
    return outcome;
  }
}
