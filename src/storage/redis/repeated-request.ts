import type { Take, TakeOutcome } from '../../limiter/bucket-store.js';
import { decide, outcomeOf } from '../../limiter/decide.js';
import { heldCount } from '../../limiter/holds/hold.js';
import type { Rate } from '../../limiter/rate.js';
import { RunningBucket, TakeSnapshot } from '../../limiter/running-bucket.js';
import { encodeHold, encodeNumber, haveEqualHolds } from './take-script.js';

const ZERO = encodeNumber(0);
/** Integers in the reply for the state of a token bucket or a window. A limit on concurrent requests has one. */
const INTEGERS_PER_STATE = 3;
/**
 * Further integers for an item that settles the oldest hold: when it was taken, its hits, its `fullAtMicros` and its
 * `refillMicros`.
 */
const INTEGERS_OF_OLDEST = 4;
/** Cost of each further slot of a hold, relative to one bucket. Redis adds or removes each slot separately. */
const SLOT_LOAD = 1 / 2;
/** Reused, because groups are evaluated one after the other. */
const findings: TakeSnapshot[] = [];

/**
 * Equal requests with several items, or with one item that no {@link RepeatedTake} accepts. Only the ids of their holds
 * may differ, and for settlements `fullAtMicros`. No other take uses their buckets between them. They are one step with
 * a count for the script, which replies with the states that the first request found. From these states, {@link next}
 * decides each request again with the same arithmetic.
 */
export class RepeatedRequest {
  readonly items: readonly Take[];
  /** Items that were added, in the form of take.lua, and their number. */
  encodedItems = '';
  itemCount = 0;
  count = 1;
  /** The holds of all requests, see {@link encodeHold}. */
  holds = '';
  /** The bucket of a group with one item, and the number of steps that use it. */
  slot: { readonly steps: number } | undefined;
  /** Whether another equal request can join, because no later take uses the group's buckets. */
  open = true;
  /** Whether {@link start} was called. */
  started = false;
  private readonly buckets: RunningBucket[] = [];
  /** The reply to the call, and the index of the settlements of the next request in it. */
  private reply: readonly number[] = [];
  private settled = 0;
  private readonly countDeniedHits: boolean;

  /** `countDeniedHits`: whether windows count the hits of denied requests. */
  constructor(takes: readonly Take[], countDeniedHits: boolean) {
    this.items = takes;
    this.countDeniedHits = countDeniedHits;
  }

  /** Adds the next item: the indexes of its key and its arguments in the call, from 1. */
  addItem(key: number, ask: number): void {
    this.encodedItems += encodeNumber(key) + encodeNumber(ask);
    this.itemCount++;
  }

  /** Adds the next item, with an encoded hold in the set with the index `set`. */
  addHoldItem(key: number, ask: number, set: number, hold: string): void {
    this.addItem(key, ask);
    this.encodedItems += encodeNumber(set);
    this.holds += hold;
  }

  /** Adds another request, which {@link accepts} allows. */
  addRequest(takes: readonly Take[]): void {
    this.count++;
    for (let i = 0; i < takes.length; i++) {
      this.holds += encodeHold(takes[i] as Take) ?? '';
    }
  }

  /** The step for take.lua. The count is 0 if no other step of the call uses the bucket of the only item. */
  get encoded(): string {
    const count = this.count === 1 && this.slot?.steps === 1 ? 0 : this.count;
    return ZERO + encodeNumber(this.itemCount) + encodeNumber(count) + this.encodedItems + this.holds;
  }

  /** Returns whether a request has the same items as the requests of the group. */
  accepts(takes: readonly Take[]): boolean {
    const own = this.items;
    if (!this.open || own.length !== takes.length) return false;
    for (let i = 0; i < own.length; i++) if (!isEqual(own[i] as Take, takes[i] as Take)) return false;
    return true;
  }

  /** Number of integers in the reply. */
  get replyLength(): number {
    let states = 0;
    let settlements = 0;
    for (let i = 0; i < this.items.length; i++) {
      const { rate, settles } = this.items[i] as Take;
      states += integersOf(rate);
      if (settles !== undefined) settlements += settles === 'oldest' ? INTEGERS_OF_OLDEST : 1;
    }
    return states + settlements * this.count;
  }

  /** Reads the reply to this group, starting at `at`. Returns the index after it. */
  start(values: readonly number[], at: number): number {
    this.started = true;
    const { items, buckets } = this;
    const byKey = items.length === 1 ? undefined : new Map<string, RunningBucket>();
    let from = at;
    for (let i = 0; i < items.length; i++) {
      const { key, rate } = items[i] as Take;
      let bucket = byKey?.get(key);
      if (bucket === undefined) {
        bucket = new RunningBucket();
        if (rate.kind === 'concurrency') bucket.load(0, 0, values[from] as number);
        else bucket.load(values[from] as number, values[from + 1] as number, values[from + 2] as number);
        byKey?.set(key, bucket);
      }
      buckets.push(bucket);
      from += integersOf(rate);
    }
    this.reply = values;
    this.settled = from;
    return at + this.replyLength;
  }

  private nextNumber(): number {
    return this.reply[this.settled++] as number;
  }

  /** Returns the outcomes of the next request of the group; `items` are the request's own items. */
  next(takes: readonly Take[], nowMicros: number): TakeOutcome[] {
    const { buckets } = this;
    while (findings.length < takes.length) findings.push(new TakeSnapshot());
    for (let i = 0; i < takes.length; i++) {
      const { settles } = takes[i] as Take;
      if (settles === undefined) continue;
      const finding = findings[i] as TakeSnapshot;
      finding.takenMicros = this.nextNumber();
      if (settles !== 'oldest') continue;
      finding.held = {
        amount: this.nextNumber(),
        fullAtMicros: this.nextNumber(),
        refillMicros: this.nextNumber(),
      };
    }
    decide(takes, buckets, findings, nowMicros, nowMicros, this.countDeniedHits);
    const outcomes = new Array<TakeOutcome>(takes.length);
    for (let i = 0; i < takes.length; i++) {
      const bucket = buckets[i] as RunningBucket;
      // The next request finds the state that this one leaves.
      if (bucket.dirty) bucket.load(bucket.unit, bucket.wholeMicros, bucket.remainder);
      outcomes[i] = outcomeOf(takes[i] as Take, findings[i] as TakeSnapshot, nowMicros);
    }
    return outcomes;
  }
}

function integersOf({ kind }: Rate): number {
  return kind === 'concurrency' ? 1 : INTEGERS_PER_STATE;
}

/** Returns the load of the slots of a request after the first slot of each item. */
export function slotLoad(takes: readonly Take[]): number {
  let slots = 0;
  for (let i = 0; i < takes.length; i++) slots += Math.max(0, heldCount(takes[i] as Take) - 1);
  return SLOT_LOAD * slots;
}

/** Returns whether two items are equal, except for what {@link encodeHold} encodes. */
function isEqual(one: Take, other: Take): boolean {
  return (
    one.key === other.key &&
    one.rate === other.rate &&
    one.hits === other.hits &&
    one.refund === other.refund &&
    one.undoAtMicros === other.undoAtMicros &&
    one.enforcement === other.enforcement &&
    haveEqualHolds(one, other)
  );
}
