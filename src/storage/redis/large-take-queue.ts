import { expectState } from '../../invariant.js';
import type { StorageError, TakeItem, TakeResult } from '../../limiter/bucket-store.js';
import { type Due, DueHeap } from '../../runtime/due-heap.js';
import { type Linked, LinkedList } from '../../runtime/linked-list.js';
import type { Partition } from '../sharded/shard.js';
import { ONLY_PARTITION } from './take-batch.js';

/** Maximum number of items in a small request; a request with more is large. */
export const MAX_SMALL_ITEMS = 16;
/** Error message for a connection whose request does not fit into the queue. */
export const LARGE_QUEUE_FULL = 'too many large requests are waiting for Redis';
/**
 * Number of items that each turn adds to the credit of a connection. A request is sent once the credit covers its
 * items.
 */
export const QUANTUM_ITEMS = 64;

/** Number of items of new flows after which an old flow gets a turn. */
const NEW_FLOW_ITEMS = 1000;

/** A request in the queue, due at its deadline, in microseconds. */
export interface LargeTake extends Due {
  readonly items: readonly TakeItem[];
  /** Partition of all items of the request. */
  readonly partition: Partition;
  /** See {@link BatchOptions}. */
  readonly takenEpoch: unknown;
  resolve(result: TakeResult): void;
}

interface QueuedTake extends LargeTake, Linked<QueuedTake> {
  readonly flow: Flow;
}

/** The queued requests of one connection. */
class Flow implements Linked<Flow> {
  list: LinkedList<Flow> | undefined;
  before: Flow | undefined;
  after: Flow | undefined;
  readonly connection: unknown;
  /** Requests, oldest first. */
  readonly takes = new LinkedList<QueuedTake>();
  items = 0;
  /** Number of items that the connection may send. */
  credit = QUANTUM_ITEMS;

  constructor(connection: unknown) {
    this.connection = connection;
  }
}

/**
 * Large requests that wait until they are sent to Redis. Redis executes one call after the other, so each call delays
 * all later calls. Small requests are therefore sent at once, and large requests one call at a time.
 *
 * Connections take turns by items (deficit round robin: Shreedhar and Varghese, Efficient Fair Queueing, 1995). A
 * connection without waiting requests comes before connections that send all the time (RFC 8290 section 4.2). After a
 * number of items, those get a turn nevertheless. No connection can use more than the free capacity of the queue.
 */
export class LargeTakeQueue {
  readonly #maxItems: number;
  readonly #flows = new Map<unknown, Flow>();
  /**
   * Connections that have had no turn, which come first, and connections that had one, each in the order of their
   * turns.
   */
  readonly #newFlows = new LinkedList<Flow>();
  readonly #oldFlows = new LinkedList<Flow>();
  /** Number of items of new flows that were sent since the latest turn of an old flow. */
  #newFlowItems = 0;
  /** Result of the latest {@link peek}. */
  #peeked: QueuedTake | undefined;
  readonly #byDeadline = new DueHeap<QueuedTake>();
  #items = 0;

  /**
   * `maxItems`: maximum number of queued items. Connections without queued requests may together add as many again, in
   * requests of at most {@link QUANTUM_ITEMS}.
   */
  constructor(maxItems: number) {
    this.#maxItems = maxItems;
  }

  /** Number of queued items. */
  get items(): number {
    return this.#items;
  }

  /** Earliest deadline of the queued requests, in microseconds; Infinity if the queue is empty. */
  get soonestDeadline(): number {
    return this.#byDeadline.first?.dueAt ?? Number.POSITIVE_INFINITY;
  }

  /** Returns whether a request of `items` fits into the queue. */
  hasRoomFor(items: number, connection: unknown): boolean {
    if (this.#items === 0) return true;
    const own = this.#flows.get(connection)?.items ?? 0;
    if (own + items <= this.#maxItems - this.#items) return true;
    return own === 0 && items <= QUANTUM_ITEMS && this.#items + items <= 2 * this.#maxItems;
  }

  /**
   * Adds a request that fits, see {@link hasRoomFor}. The promise settles with the request's outcomes, or through
   * {@link expire}.
   */
  add(
    items: readonly TakeItem[],
    deadlineMicros: number,
    connection: unknown,
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

  /** Returns the request whose turn is next. */
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

  /** Removes the request that {@link peek} returned, because it is being sent. */
  shift(): void {
    const take = this.#peeked;
    if (take === undefined) throw new Error('a request is removed from the queue only after it was selected');
    const { flow, items } = take;
    this.#newFlowItems = flow.list === this.#newFlows ? this.#newFlowItems + items.length : 0;
    flow.credit -= items.length;
    this.#remove(take);
  }

  /** Settles requests whose deadline is at `nowMicros` or before with `error`. */
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
    expectState(
      flow.items >= 0 && this.#items >= flow.items,
      'a connection has no more waiting items than all connections together',
    );
    this.#byDeadline.remove(take);
    this.#peeked = undefined;
    if (flow.takes.size > 0) return;
    flow.list?.delete(flow);
    this.#flows.delete(flow.connection);
  }
}
