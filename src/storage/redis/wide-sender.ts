import { expectState } from '../../invariant.js';
import type { StorageError } from '../../limiter/bucket-store.js';
import type { TakeBatch } from './take-batch.js';
import { type WideTake, WideTakes } from './wide-takes.js';

/**
 * Most items of wide requests that Redis is given before it has answered, unless a single request has more: some 5 ms
 * of its time.
 */
export const WIDE_ITEMS_IN_FLIGHT = 1000;
/**
 * After the answer to more than this many items the next call is made in another turn of the event loop: reading the
 * answer was enough for one.
 */
const LONG_ANSWER_ITEMS = 256;
/** Items that are sent in one turn of the event loop, in however many calls, and how many a call counts by itself. */
const STRETCH_ITEMS = 128;
const CALL_ITEMS = 4;

/** How calls are made and sent. */
export interface Outlet {
  /** An empty call for what such a request asks. */
  newBatch(take: WideTake): TakeBatch;
  /** Whether a call may hold a request of so many items, too. */
  hasRoomFor(batch: TakeBatch, items: number): boolean;
  /** Sends a call, or fails it where Redis is away. */
  send(batch: TakeBatch): void;
}

/**
 * Gives Redis wide requests ({@link WideTakes}) a call at a time. Calls are made in stretches of half a millisecond,
 * one in a turn of the event loop.
 */
export class WideSender {
  readonly queue: WideTakes;
  readonly #outlet: Outlet;
  /** Sent and not answered. */
  readonly #sent = new Set<TakeBatch>();
  #itemsSent = 0;
  /** The call that is being made. */
  #making: TakeBatch | undefined;
  #work: Generator<void, void> | undefined;

  constructor(maxItems: number, outlet: Outlet) {
    this.queue = new WideTakes(maxItems);
    this.#outlet = outlet;
  }

  /** Items that wait, are put into a call, or were sent and not answered. */
  get items(): number {
    return this.queue.items + (this.#making?.itemCount ?? 0) + this.#itemsSent;
  }

  /** The call that is being made, which may be expired and failed like one that was sent. */
  get making(): TakeBatch | undefined {
    return this.#making;
  }

  /** Sends what may be sent. */
  send(): void {
    if (this.#work !== undefined) return;
    this.#work = this.#makeCalls();
    this.#goOn();
  }

  /** Gives `error` to all that was not sent. */
  fail(error: StorageError): void {
    this.queue.expire(Number.POSITIVE_INFINITY, error);
    this.#making?.fail(error);
  }

  /** Nothing more will come of a call. Returns whether it was one of these. */
  retire(batch: TakeBatch): boolean {
    if (!this.#sent.delete(batch)) return false;
    this.#itemsSent -= batch.itemCount;
    expectState(this.#itemsSent >= 0, 'no more items are answered than were sent');
    if (batch.itemCount > LONG_ANSWER_ITEMS) setImmediate(() => this.send());
    else this.send();
    return true;
  }

  #goOn(): void {
    if (this.#work?.next().done === false) setImmediate(() => this.#goOn());
    else this.#work = undefined;
  }

  *#makeCalls(): Generator<void, void> {
    const { queue } = this;
    let stretch = 0;
    for (;;) {
      let take = queue.peek();
      if (take === undefined || !this.#mayGive(0, take.items.length)) return;
      const batch = this.#outlet.newBatch(take);
      this.#making = batch;
      do {
        queue.shift();
        const { items, dueAt, resolve } = take;
        yield* batch.addInSteps(items, dueAt, resolve);
        take = queue.peek();
        // A request whose time ended meanwhile is in it by half: a call with nothing else is dropped.
      } while (batch.hasPending && take !== undefined && this.#suits(batch, take));
      this.#making = undefined;
      if (!batch.hasPending) continue;
      this.#sent.add(batch);
      this.#itemsSent += batch.itemCount;
      this.#outlet.send(batch);
      stretch += CALL_ITEMS + batch.itemCount;
      if (stretch < STRETCH_ITEMS) continue;
      stretch = 0;
      yield;
    }
  }

  #suits(batch: TakeBatch, { items, part, takenOn }: WideTake): boolean {
    return (
      batch.part === part &&
      batch.takenOn === takenOn &&
      this.#outlet.hasRoomFor(batch, items.length) &&
      this.#mayGive(batch.itemCount, items.length) &&
      batch.suits(items)
    );
  }

  /** Whether so many items more may be given to Redis, behind those of a call that is being made. */
  #mayGive(making: number, items: number): boolean {
    const given = this.#itemsSent + making;
    return given === 0 || given + items <= WIDE_ITEMS_IN_FLIGHT;
  }
}
