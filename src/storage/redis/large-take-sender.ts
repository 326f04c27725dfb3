import { expectState } from '../../invariant.js';
import type { StorageError, TakeItem } from '../../limiter/bucket-store.js';
import { type LargeTake, LargeTakeQueue } from './large-take-queue.js';
import type { TakeBatch } from './take-batch.js';

/**
 * Maximum number of unanswered items in large requests, unless a single request has more. Redis needs about 5 ms for
 * them.
 */
export const MAX_LARGE_ITEMS_IN_FLIGHT = 1000;
/**
 * If a reply has more items than this, the next call is sent in another turn of the event loop, because reading the
 * reply fills this turn.
 */
const LARGE_REPLY_ITEMS = 256;
/**
 * Maximum number of items that are added in one turn of the event loop. Each call counts as this many additional items.
 */
const ITEMS_PER_SLICE = 128;
const CALL_COST_ITEMS = 4;

/** Creates and sends calls. */
export interface BatchOutput {
  /** Creates an empty call for a large request. */
  newBatch(take: LargeTake): TakeBatch;
  /** Returns whether a call has space for a further request. */
  hasRoomFor(batch: TakeBatch, items: readonly TakeItem[]): boolean;
  /** Sends a call, or fails it if Redis is unavailable. */
  send(batch: TakeBatch): void;
}

/**
 * Sends large requests ({@link LargeTakeQueue}) to Redis one call at a time. Calls are built in slices of 0.5 ms, one
 * in each turn of the event loop.
 */
export class LargeTakeSender {
  readonly queue: LargeTakeQueue;
  readonly #output: BatchOutput;
  /** Sent and unanswered calls. */
  readonly #sent = new Set<TakeBatch>();
  #itemsSent = 0;
  /** The call that is being built. */
  #building: TakeBatch | undefined;
  #work: Generator<void, void> | undefined;

  constructor(maxItems: number, outlet: BatchOutput) {
    this.queue = new LargeTakeQueue(maxItems);
    this.#output = outlet;
  }

  /** Number of items in the queue, in the call that is being built, and in unanswered calls. */
  get items(): number {
    return this.queue.items + (this.#building?.itemCount ?? 0) + this.#itemsSent;
  }

  /** The call that is being built. It can expire and fail like a sent call. */
  get building(): TakeBatch | undefined {
    return this.#building;
  }

  /** Sends as many requests as the bound allows. */
  send(): void {
    if (this.#work !== undefined) return;
    this.#work = this.#buildCalls();
    this.#resume();
  }

  /** Fails all requests that were not sent. */
  fail(error: StorageError): void {
    this.queue.expire(Number.POSITIVE_INFINITY, error);
    this.#building?.fail(error);
  }

  /** Called when a call has ended. Returns whether this object had sent it. */
  retire(batch: TakeBatch): boolean {
    if (!this.#sent.delete(batch)) return false;
    this.#itemsSent -= batch.itemCount;
    expectState(this.#itemsSent >= 0, 'the number of unanswered items is never negative');
    if (batch.itemCount > LARGE_REPLY_ITEMS) setImmediate(() => this.send());
    else this.send();
    return true;
  }

  #resume(): void {
    if (this.#work?.next().done === false) setImmediate(() => this.#resume());
    else this.#work = undefined;
  }

  *#buildCalls(): Generator<void, void> {
    const { queue } = this;
    let sliceItems = 0;
    for (;;) {
      let take = queue.peek();
      if (take === undefined || !this.#fitsInFlight(0, take.items.length)) return;
      const batch = this.#output.newBatch(take);
      this.#building = batch;
      do {
        queue.shift();
        const { items, dueAt, resolve } = take;
        yield* batch.addInSlices(items, dueAt, resolve);
        take = queue.peek();
        // A request that expired while it was added is incomplete. A call without other requests is dropped.
      } while (batch.hasPending && take !== undefined && this.#fitsBatch(batch, take));
      this.#building = undefined;
      if (!batch.hasPending) continue;
      this.#sent.add(batch);
      this.#itemsSent += batch.itemCount;
      this.#output.send(batch);
      sliceItems += CALL_COST_ITEMS + batch.itemCount;
      if (sliceItems < ITEMS_PER_SLICE) continue;
      sliceItems = 0;
      yield;
    }
  }

  #fitsBatch(batch: TakeBatch, { items, partition, takenEpoch }: LargeTake): boolean {
    return (
      batch.partition === partition &&
      batch.takenEpoch === takenEpoch &&
      this.#output.hasRoomFor(batch, items) &&
      this.#fitsInFlight(batch.itemCount, items.length)
    );
  }

  /** Returns whether `items` further items can be sent, after the `building` items of the call that is being built. */
  #fitsInFlight(building: number, items: number): boolean {
    const inFlight = this.#itemsSent + building;
    return inFlight === 0 || inFlight + items <= MAX_LARGE_ITEMS_IN_FLIGHT;
  }
}
