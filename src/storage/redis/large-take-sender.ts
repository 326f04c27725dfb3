import { expectState } from '../../invariant.js';
import type { StorageError } from '../../limiter/bucket-store.js';
import { type LargeTake, LargeTakeQueue } from './large-take-queue.js';
import type { TakeBatch } from './take-batch.js';

/**
 * Most items of wide requests that Redis is given before it has answered, unless a single request has more: some 5 ms
 * of its time.
 */
export const MAX_LARGE_ITEMS_IN_FLIGHT = 1000;
/**
 * After the answer to more than this many items the next call is made in another turn of the event loop: reading the
 * answer was enough for one.
 */
const LARGE_REPLY_ITEMS = 256;
/** Items that are sent in one turn of the event loop, in however many calls, and how many a call counts by itself. */
const ITEMS_PER_SLICE = 128;
const CALL_COST_ITEMS = 4;

/** How calls are made and sent. */
export interface BatchOutput {
  /** An empty call for what such a request asks. */
  newBatch(take: LargeTake): TakeBatch;
  /** Whether a call may hold a request of so many items, too. */
  hasRoomFor(batch: TakeBatch, items: number): boolean;
  /** Sends a call, or fails it where Redis is away. */
  send(batch: TakeBatch): void;
}

/**
 * Gives Redis wide requests ({@link LargeTakeQueue}) a call at a time. Calls are made in stretches of half a
 * millisecond, one in a turn of the event loop.
 */
export class LargeTakeSender {
  readonly queue: LargeTakeQueue;
  readonly #output: BatchOutput;
  /** Sent and not answered. */
  readonly #sent = new Set<TakeBatch>();
  #itemsSent = 0;
  /** The call that is being made. */
  #building: TakeBatch | undefined;
  #work: Generator<void, void> | undefined;

  constructor(maxItems: number, outlet: BatchOutput) {
    this.queue = new LargeTakeQueue(maxItems);
    this.#output = outlet;
  }

  /** Items that wait, are put into a call, or were sent and not answered. */
  get items(): number {
    return this.queue.items + (this.#building?.itemCount ?? 0) + this.#itemsSent;
  }

  /** The call that is being made, which may be expired and failed like one that was sent. */
  get building(): TakeBatch | undefined {
    return this.#building;
  }

  /** Sends what may be sent. */
  send(): void {
    if (this.#work !== undefined) return;
    this.#work = this.#buildCalls();
    this.#resume();
  }

  /** Gives `error` to all that was not sent. */
  fail(error: StorageError): void {
    this.queue.expire(Number.POSITIVE_INFINITY, error);
    this.#building?.fail(error);
  }

  /** Nothing more will come of a call. Returns whether it was one of these. */
  retire(batch: TakeBatch): boolean {
    if (!this.#sent.delete(batch)) return false;
    this.#itemsSent -= batch.itemCount;
    expectState(this.#itemsSent >= 0, 'no more items are answered than were sent');
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
        // A request whose time ended meanwhile is in it by half: a call with nothing else is dropped.
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
      this.#output.hasRoomFor(batch, items.length) &&
      this.#fitsInFlight(batch.itemCount, items.length) &&
      batch.accepts(items)
    );
  }

  /** Whether so many items more may be given to Redis, behind those of a call that is being made. */
  #fitsInFlight(building: number, items: number): boolean {
    const given = this.#itemsSent + building;
    return given === 0 || given + items <= MAX_LARGE_ITEMS_IN_FLIGHT;
  }
}
