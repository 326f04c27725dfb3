import type { TakeItem, TakeOutcome } from '../../limiter/bucket-store.js';
import { decide } from '../../limiter/decide.js';
import { RunningBucket, TakeSnapshot } from '../../limiter/running-bucket.js';

/** Numbers of the reply for each item. */
const INTEGERS_PER_ITEM = 3;
/** Reused: groups are told one after the other. */
const findings: TakeSnapshot[] = [];

/**
 * Equal requests of several items, or of one that is no plain take, with nothing else on their buckets between them.
 * They go to the script as one step with a count. It answers with the states that the first one found; from these
 * {@link next} decides each one again, by the same arithmetic.
 */
export class TakeGroup {
  readonly items: readonly TakeItem[];
  /** Indexes of the keys and asks of the call by turns, from 1. */
  readonly indexes: readonly number[];
  count = 1;
  /** Whether another equal request may join: nothing else was asked of its buckets. */
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

  /** Whether a request asks the same of the same buckets. */
  accepts(items: readonly TakeItem[]): boolean {
    const own = this.items;
    if (!this.open || own.length !== items.length) return false;
    for (let i = 0; i < own.length; i++) if (!isEqual(own[i] as TakeItem, items[i] as TakeItem)) return false;
    return true;
  }

  /** Numbers of the reply. */
  get replyLength(): number {
    return INTEGERS_PER_ITEM * this.items.length;
  }

  /** Reads the reply to this group at `at` of `values`. Returns where the next one begins. */
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

  /** Outcomes of the next request of the group. */
  next(nowMicros: number): TakeOutcome[] {
    const { items, buckets } = this;
    while (findings.length < items.length) findings.push(new TakeSnapshot());
    decide(items, buckets, findings, nowMicros, nowMicros, this.countDeniedHits);
    const outcomes = new Array<TakeOutcome>(items.length);
    for (let i = 0; i < items.length; i++) {
      const bucket = buckets[i] as RunningBucket;
      // What it left is what the next one finds.
      if (bucket.dirty) bucket.load(bucket.unit, bucket.whole, bucket.part);
      const { rate, hits } = items[i] as TakeItem;
      outcomes[i] = rate.outcome(hits, findings[i] as TakeSnapshot, nowMicros);
    }
    return outcomes;
  }
}

/** Loads the state at `at` of `values` as it was found at `nowMicros`, see take.lua. */
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
