import type { TakeItem, TakeOutcome } from '../../limiter/bucket-store.js';
import { decide } from '../../limiter/decide.js';
import { RunningBucket, TakeSnapshot } from '../../limiter/running-bucket.js';

/** Integers in the reply for each item. */
const INTEGERS_PER_ITEM = 3;
/** Reused, because groups are evaluated one after the other. */
const findings: TakeSnapshot[] = [];

/**
 * Equal requests with several items, or with one item that no {@link TakeRun} accepts. No other take uses their buckets
 * between them. They are one step with a count for the script, which replies with the states that the first request
 * found. From these states, {@link next} decides each request again with the same arithmetic.
 */
export class TakeGroup {
  readonly items: readonly TakeItem[];
  /** Indexes of keys and arguments in the call, alternating, from 1. */
  readonly indexes: readonly number[];
  count = 1;
  /** Whether another equal request can join, because no later take uses the group's buckets. */
  open = true;
  /** Whether {@link start} was called. */
  started = false;
  private readonly buckets: RunningBucket[] = [];
  private readonly countDeniedHits: boolean;

  /** `countDeniedHits`: whether windows count the hits of denied requests. */
  constructor(items: readonly TakeItem[], indexes: readonly number[], countDeniedHits: boolean) {
    this.items = items;
    this.indexes = indexes;
    this.countDeniedHits = countDeniedHits;
  }

  /** Returns whether a request has the same items as the requests of the group. */
  accepts(items: readonly TakeItem[]): boolean {
    const own = this.items;
    if (!this.open || own.length !== items.length) return false;
    for (let i = 0; i < own.length; i++) if (!isEqual(own[i] as TakeItem, items[i] as TakeItem)) return false;
    return true;
  }

  /** Number of integers in the reply. */
  get replyLength(): number {
    return INTEGERS_PER_ITEM * this.items.length;
  }

  /** Reads the reply to this group, starting at `at`. Returns the index after it. */
  start(values: readonly number[], at: number, nowMicros: number): number {
    this.started = true;
    const { items, buckets } = this;
    const byKey = new Map<string, RunningBucket>();
    for (let i = 0; i < items.length; i++) {
      const { key } = items[i] as TakeItem;
      let bucket = byKey.get(key);
      if (bucket === undefined) {
        bucket = new RunningBucket();
        const from = at + INTEGERS_PER_ITEM * i;
        loadFound(bucket, values, from, nowMicros);
        byKey.set(key, bucket);
      }
      buckets.push(bucket);
    }
    return at + this.replyLength;
  }

  /** Returns the outcomes of the next request of the group. */
  next(nowMicros: number): TakeOutcome[] {
    const { items, buckets } = this;
    while (findings.length < items.length) findings.push(new TakeSnapshot());
    decide(items, buckets, findings, nowMicros, nowMicros, this.countDeniedHits);
    const outcomes = new Array<TakeOutcome>(items.length);
    for (let i = 0; i < items.length; i++) {
      const bucket = buckets[i] as RunningBucket;
      // The next request finds the state that this one leaves.
      if (bucket.dirty) bucket.load(bucket.unit, bucket.whole, bucket.part);
      const { rate, hits } = items[i] as TakeItem;
      outcomes[i] = rate.outcome(hits, findings[i] as TakeSnapshot, nowMicros);
    }
    return outcomes;
  }
}

/** Loads the state that was found at `nowMicros` from `values`, starting at `at`; see take.lua. */
function loadFound(bucket: RunningBucket, values: readonly number[], at: number, nowMicros: number): void {
  const unit = values[at] as number;
  let whole = values[at + 1] as number;
  let part = values[at + 2] as number;
  if (unit > 0 && whole < nowMicros) whole -= nowMicros;
  else if (unit < 0 && part < 0 && whole <= nowMicros) {
    whole = -1 - whole;
    part = -part;
  }
  bucket.load(unit, whole, part);
}

function isEqual(one: TakeItem, other: TakeItem): boolean {
  return (
    one.key === other.key &&
    one.rate === other.rate &&
    one.hits === other.hits &&
    one.refund === other.refund &&
    one.undoMark === other.undoMark &&
    one.allowSurplus === other.allowSurplus &&
    one.enforcement === other.enforcement
  );
}
