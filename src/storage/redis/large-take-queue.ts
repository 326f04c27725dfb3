import { expectState } from '../../invariant.js';
import type { StorageError, TakeItem, TakeResult } from '../../limiter/bucket-store.js';
import { type Due, DueHeap } from '../../runtime/due-heap.js';
import { type Linked, LinkedList } from '../../runtime/linked-list.js';
import type { Partition } from '../sharded/shard.js';
import { ONLY_PARTITION } from './take-batch.js';

/** A request of more items is wide. */
export const MAX_SMALL_ITEMS = 16;
/** What a connection gets for a request that finds no room. */
export const LARGE_QUEUE_FULL = 'the room for requests of many limits is taken';
/**
 * Items that a connection may send more with each of its turns: a request is sent once so many turns have gone by that
 * its items are paid for.
 */
export const QUANTUM_ITEMS = 64;

/** After so many items of connections that come first the others have a turn. */
const NEW_FLOW_ITEMS = 1000;

/** A request that waits for its turn, due at its deadline. Microseconds. */
export interface LargeTake extends Due {
  readonly items: readonly TakeItem[];
  /** What they have in common. */
  readonly partition: Partition;
  /** See {@link BatchOptions}. */
  readonly takenEpoch: unknown;
  /** Since when it waits, on the clock of its deadline. Microseconds. */
  readonly sinceMicros: number;
  resolve(result: TakeResult): void;
}

interface QueuedTake extends LargeTake, Linked<QueuedTake> {
  readonly flow: Flow;
}

/** What waits of one connection. */
class Flow implements Linked<Flow> {
  list: LinkedList<Flow> | undefined;
  before: Flow | undefined;
  after: Flow | undefined;
  readonly connection: unknown;
  /** The oldest first. */
  readonly takes = new LinkedList<QueuedTake>();
  items = 0;
  /** Items that it may send. */
  credit = QUANTUM_ITEMS;

  constructor(connection: unknown) {
    this.connection = connection;
  }
}

/**
 * Requests of many items that wait until they are sent to Redis. Redis serves one call after the other, so that
 * whatever is sent is waited for by all who ask later: requests of few items are sent at once, wide ones a call at a
 * time, and connections take turns by items (deficit round robin: Shreedhar and Varghese, Efficient Fair Queueing,
 * 1995). One with nothing waiting comes before those that ask all the time (RFC 8290 section 4.2), which have their
 * turn after so many items nevertheless. None holds more than is left free.
 */
export class LargeTakeQueue {
  readonly #maxItems: number;
  readonly #flows = new Map<unknown, Flow>();
  /** Lines that have not had a turn yet, which come first, and the others; each in the order of their turns. */
  readonly #newFlows = new LinkedList<Flow>();
  readonly #oldFlows = new LinkedList<Flow>();
  /** Items of fresh lines that were sent since the others had a turn. */
  #newFlowItems = 0;
  /** What {@link peek} gave. */
  #peeked: QueuedTake | undefined;
  readonly #byDeadline = new DueHeap<QueuedTake>();
  #items = 0;

  /**
   * `maxItems`: most items that wait; of connections with nothing waiting up to twice as many, in requests of
   * {@link QUANTUM_ITEMS} at most.
   */
  constructor(maxItems: number) {
    this.#maxItems = maxItems;
  }

  /** Items that wait. */
  get items(): number {
    return this.#items;
  }

  /** Soonest deadline of those that wait, Infinity when none does. Microseconds. */
  get soonestDeadline(): number {
    return this.#byDeadline.first?.dueAt ?? Number.POSITIVE_INFINITY;
  }

  /** Whether a request of so many items may wait. */
  hasRoomFor(items: number, connection: unknown): boolean {
    if (this.#items === 0) return true;
    const own = this.#flows.get(connection)?.items ?? 0;
    if (own + items <= this.#maxItems - this.#items) return true;
    return own === 0 && items <= QUANTUM_ITEMS && this.#items + items <= 2 * this.#maxItems;
  }

  /**
   * Adds a request; see {@link hasRoomFor}. The promise is settled once it is sent and answered, or by {@link expire}.
   */
  add(
    items: readonly TakeItem[],
    deadlineMicros: number,
    connection: unknown,
    sinceMicros: number,
    partition: Partition = ONLY_PARTITION,
    takenEpoch?: unknown,
  ): Promise<TakeResult> {
    const flow = this.#flowOf(connection);
    flow.items += items.length;
    this.#items += items.length;
    return new Promise((resolve) => {
      const take: QueuedTake = {
        items,
        partition,
        takenEpoch,
        sinceMicros,
        resolve,
        flow,
        dueAt: deadlineMicros,
        heapIndex: -1,
        list: undefined,
        before: undefined,
        after: undefined,
      };
      flow.takes.add(take);
      this.#byDeadline.add(take);
    });
  }

  /** The request whose turn it is. */
  peek(): LargeTake | undefined {
    for (;;) {
      const flow = this.#nextFlow();
      this.#peeked = flow?.takes.first;
      const head = this.#peeked;
      if (flow === undefined || head === undefined || head.items.length <= flow.credit) return head;
      flow.credit += QUANTUM_ITEMS;
      this.#oldFlows.add(flow);
    }
  }

  /** Removes the request that {@link peek} gave: it is sent. */
  shift(): void {
    const take = this.#peeked;
    if (take === undefined) throw new Error('nothing has its turn');
    const { flow, items } = take;
    this.#newFlowItems = flow.list === this.#newFlows ? this.#newFlowItems + items.length : 0;
    flow.credit -= items.length;
    this.#remove(take);
  }

  /** Gives `error` to those whose deadline is at `nowMicros` or before. */
  expire(nowMicros: number, error: StorageError): void {
    for (let take = this.#byDeadline.first; take !== undefined; take = this.#byDeadline.first) {
      if (take.dueAt > nowMicros) break;
      this.#remove(take);
      take.resolve(error);
    }
  }

  #nextFlow(): Flow | undefined {
    const fresh = this.#newFlows.first;
    const other = this.#oldFlows.first;
    if (fresh === undefined || (other !== undefined && this.#newFlowItems >= NEW_FLOW_ITEMS)) return other;
    return fresh;
  }

  #flowOf(connection: unknown): Flow {
    const known = this.#flows.get(connection);
    if (known !== undefined) return known;
    const flow = new Flow(connection);
    this.#flows.set(connection, flow);
    this.#newFlows.add(flow);
    return flow;
  }

  #remove(take: QueuedTake): void {
    const { flow, items } = take;
    flow.takes.delete(take);
    flow.items -= items.length;
    this.#items -= items.length;
    expectState(flow.items >= 0 && this.#items >= flow.items, 'a connection waits with some of all items');
    this.#byDeadline.remove(take);
    this.#peeked = undefined;
    if (flow.takes.size > 0) return;
    flow.list?.delete(flow);
    this.#flows.delete(flow.connection);
  }
}
