import type { StorageError, TakeItem, TakeOutcome, TakeResult } from '../../limiter/bucket-store.js';
import { outcome } from '../../limiter/outcome.js';
import { forgivenTokens } from '../../limiter/rate.js';
import type { RedisKeys } from './redis-key.js';
import { type BucketSlot, mayRun, TakeRun } from './take-run.js';
import { Asks, encodeNumber, MAX_ENCODED } from './take-script.js';

/** Work that one more request of a run is to Redis, where a bucket is 1. */
const RUN_LOAD = 1 / 32;

/** A request of several items, or one that cannot run: the indexes of their keys and asks, by turns. */
interface Other {
  readonly items: readonly TakeItem[];
  readonly indexes: readonly number[];
}

interface PendingTake {
  readonly items: readonly TakeItem[];
  readonly deadlineMicros: number;
  /** Absent for a request of several items, or one that cannot run. */
  readonly run: TakeRun | undefined;
  resolve: ((result: TakeResult) => void) | undefined;
}

/**
 * The requests of one script call, and the promises their callers hold. Requests are decided as if in the order in which they came;
 * equal ones on one bucket travel as a {@link TakeRun}.
 */
export class TakeBatch {
  itemCount = 0;
  /** Buckets that Redis will look at, about; a bucket may be hit often for one. */
  load = 0;
  /** When it was sent, on the clock of deadlines; 0 before. */
  sentMicros = 0;
  /** Redis's time in the answer. */
  nowMicros = 0;
  /** Soonest deadline of a take that still waits, Infinity when none does. */
  soonestDeadline = Infinity;
  private readonly takes: PendingTake[] = [];
  private readonly names: RedisKeys;
  private readonly keys: string[] = [];
  private readonly slots = new Map<string, BucketSlot>();
  private readonly asks: Asks;
  private readonly steps: (TakeRun | Other)[] = [];
  private readonly countDeniedHits: boolean;
  private pending = 0;

  /** `countDeniedHits`: whether windows count the hits of denied requests. `wallMicros`: see {@link Asks}. */
  constructor(names: RedisKeys, countDeniedHits: boolean, wallMicros: () => number) {
    this.asks = new Asks(wallMicros);
    this.names = names;
    this.countDeniedHits = countDeniedHits;
  }

  get takeCount(): number {
    return this.takes.length;
  }

  /** Whether anybody still waits. */
  get hasPending(): boolean {
    return this.pending > 0;
  }

  /** Adds a request; the promise is settled by one of {@link succeed}, {@link fail} and {@link expire}. */
  add(items: readonly TakeItem[], deadlineMicros: number): Promise<TakeResult> {
    this.itemCount += items.length;
    this.pending++;
    if (deadlineMicros < this.soonestDeadline) this.soonestDeadline = deadlineMicros;
    const first = items[0] as TakeItem;
    const run = items.length === 1 && mayRun(first) ? this.addRun(first) : this.addOther(items);
    return new Promise((resolve) => {
      this.takes.push({ items, deadlineMicros, run, resolve });
    });
  }

  /**
   * What follows the script in EVALSHA: number of keys, keys, ARGV. `clock` is a test's time in microseconds, `seen` the
   * latest time seen from this Redis. See take.lua.
   */
  command(clock: number | undefined, seen: number): string[] {
    const now = clock === undefined ? '' : String(clock);
    return [String(this.keys.length)].concat(
      this.keys,
      [now, String(seen), this.countDeniedHits ? '1' : '0', this.encodeSteps()],
      this.asks.args,
    );
  }

  /** Hands out the answer. Returns how many still waited for it. Throws an Error when it cannot be read. */
  succeed(reply: unknown): number {
    if (!Array.isArray(reply) || reply.length !== this.replyLength() || typeof reply[0] !== 'number') {
      throw new Error('the script answered in an unknown form');
    }
    const values = reply as readonly number[];
    const nowMicros = values[0] as number;
    this.nowMicros = nowMicros;
    let at = 1;
    let settled = 0;
    // The steps stand in the order of their first requests.
    for (const take of this.takes) {
      const { run, items } = take;
      if (run === undefined) {
        if (take.resolve !== undefined) {
          settled++;
          this.settle(take, readOther(items, values, at, nowMicros));
        }
        at += 3 * items.length;
        continue;
      }
      if (!run.started) at = run.start(values, at, nowMicros);
      const result = [run.next(items[0] as TakeItem, nowMicros)];
      if (take.resolve === undefined) continue;
      settled++;
      this.settle(take, result);
    }
    return settled;
  }

  /** Gives `error` to all who still wait. Returns how many. */
  fail(error: StorageError): number {
    return this.expire(Infinity, error);
  }

  /** Gives `error` to those whose deadline is at `nowMicros` or before. Returns how many. */
  expire(nowMicros: number, error: StorageError): number {
    let settled = 0;
    this.soonestDeadline = Infinity;
    for (const take of this.takes) {
      if (take.resolve === undefined) continue;
      if (take.deadlineMicros <= nowMicros) {
        this.settle(take, error);
        settled++;
      } else {
        this.soonestDeadline = Math.min(this.soonestDeadline, take.deadlineMicros);
      }
    }
    return settled;
  }

  private addRun(item: TakeItem): TakeRun {
    const slot = this.slotOf(item);
    const open = slot.run;
    if (open?.accepts(item) && open.count < MAX_ENCODED) {
      open.count++;
      this.load += RUN_LOAD;
      return open;
    }
    // How a single item weighs in its request makes no difference to the bucket.
    const ask = this.asks.indexOf(item.rate, item.hits, false, 'enforce');
    const run = new TakeRun(item, slot, ask, this.countDeniedHits);
    slot.run = run;
    this.steps.push(run);
    slot.steps++;
    this.load++;
    return run;
  }

  private addOther(items: readonly TakeItem[]): undefined {
    const indexes: number[] = [];
    for (const item of items) {
      const slot = this.slotOf(item);
      slot.run = undefined;
      slot.steps++;
      indexes.push(slot.index, this.asks.indexOf(item.rate, item.hits, item.refund, item.enforcement));
    }
    this.steps.push({ items, indexes });
    this.load += items.length;
  }

  private slotOf(item: TakeItem): BucketSlot {
    let slot = this.slots.get(item.key);
    if (slot === undefined) {
      this.keys.push(this.names.of(item));
      slot = { index: this.keys.length, run: undefined, steps: 0 };
      this.slots.set(item.key, slot);
    }
    return slot;
  }

  private encodeSteps(): string {
    let text = '';
    for (const step of this.steps) {
      if (step instanceof TakeRun) {
        text += encodeNumber(step.slot.index) + encodeNumber(step.askIndex) + encodeNumber(step.encodedCount);
        continue;
      }
      const { indexes } = step;
      text += ZERO + encodeNumber(indexes.length / 2) + ZERO;
      for (let i = 0; i < indexes.length; i += 2) {
        text += encodeNumber(indexes[i] as number) + encodeNumber(indexes[i + 1] as number) + ZERO;
      }
    }
    return text;
  }

  private replyLength(): number {
    let length = 1;
    for (const step of this.steps) {
      length += step instanceof TakeRun ? step.replyLength : 3 * step.items.length;
    }
    return length;
  }

  private settle(take: PendingTake, result: TakeResult): void {
    take.resolve?.(result);
    take.resolve = undefined;
    this.pending--;
  }
}

const ZERO = encodeNumber(0);

/** Hits of a charge that were forgiven; `over` is what take.lua says of it. */
function forgivenOf({ rate, hits }: TakeItem, over: number): number {
  return rate.kind === 'window' ? over : forgivenTokens(rate, hits, over);
}

function readOther(
  items: readonly TakeItem[],
  values: readonly number[],
  from: number,
  nowMicros: number,
): TakeOutcome[] {
  const outcomes = new Array<TakeOutcome>(items.length);
  for (let i = 0, at = from; i < items.length; i++, at += 3) {
    const item = items[i] as TakeItem;
    const [found, whole, part] = [values[at] as number, values[at + 1] as number, values[at + 2] as number];
    const forgiven = found < 0 ? forgivenOf(item, -1 - found) : 0;
    outcomes[i] = outcome(item, found === 1, whole, part, nowMicros, forgiven);
  }
  return outcomes;
}
