import { type Due, DueHeap } from '../runtime/due-heap.js';
import { type Linked, LinkedList } from '../runtime/linked-list.js';
import { type NextTurn, TurnScheduler } from '../runtime/turns.js';

/** Who waits for a piece of work. */
export interface Waiter {
  /** Pieces of one connection wait for each other, and connections take turns: none gets more for asking more. */
  readonly connection: unknown;
  /** True once nobody wants the result any more. */
  cancelled(): boolean;
  /** When the work is given up, monotonic clock; Infinity for never. */
  readonly deadlineMicros: number;
  /** The memory that waits with it, in bytes; nothing to speak of when absent. */
  readonly bytes?: number;
}

/**
 * Why a piece of work came to no result: nobody waits for it any more, it was not done in time, or too much waits
 * already.
 */
export type AbandonReason = 'cancelled' | 'late' | 'full';

export interface TurnQueueOptions {
  monotonicMicros(): number;
  readonly nextTurn?: NextTurn;
  /** Most pieces that wait; {@link MAX_QUEUED_JOBS} when absent. */
  readonly maxJobs?: number;
  /** Most bytes that wait with them; {@link MAX_QUEUED_BYTES} when absent. */
  readonly maxBytes?: number;
}

/** Pieces that may wait at once. */
export const MAX_QUEUED_JOBS = 10_000;
/** What may wait with them, in bytes. */
export const MAX_QUEUED_BYTES = 32 * 1024 * 1024;

/**
 * So many connections have a piece begun; others wait for one of them to end. What is begun takes more memory than what
 * waits.
 */
const MAX_STARTED_QUEUES = 32;
/** So many pieces are given up in a turn. */
const MAX_GIVEN_UP_PER_TURN = 50;

/** A piece of work that waits, or has begun. */
class Job implements Due, Linked<Job> {
  readonly waiter: Waiter;
  readonly queue: ConnectionQueue;
  readonly bytes: number;
  readonly dueAt: number;
  heapIndex = -1;
  list: LinkedList<Job> | undefined;
  before: Job | undefined;
  after: Job | undefined;
  readonly #steps: Generator<void, unknown>;
  readonly #resolve: (result: unknown) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    steps: Generator<void, unknown>,
    waiter: Waiter,
    queue: ConnectionQueue,
    resolve: (result: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    this.waiter = waiter;
    this.queue = queue;
    this.bytes = waiter.bytes ?? 0;
    this.dueAt = waiter.deadlineMicros;
    this.#steps = steps;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** One step; true when it was the last. */
  step(): boolean {
    try {
      const step = this.#steps.next();
      if (step.done !== true) return false;
      this.#resolve(step.value);
    } catch (error) {
      this.#reject(error);
    }
    return true;
  }

  giveUp(why: AbandonReason): void {
    this.#steps.return(undefined);
    this.#resolve(why);
  }
}

/** What one connection has waiting. */
class ConnectionQueue {
  readonly connection: unknown;
  /** First to last. */
  readonly jobs = new LinkedList<Job>();
  bytes = 0;

  constructor(connection: unknown) {
    this.connection = connection;
  }
}

/**
 * Work that takes longer than other callers should wait, cut into steps: one step in a turn of the event loop, whoever
 * asked for how much. Connections take turns; on one connection the work that came first is done first. What is not
 * done in time is given up, and so is what comes while too much waits.
 */
export class TurnQueue {
  readonly #options: TurnQueueOptions;
  readonly #maxJobs: number;
  readonly #maxBytes: number;
  readonly #queues = new Map<unknown, ConnectionQueue>();
  /**
   * Connections whose first piece may have begun, in the order of their turns, and those that wait for a place among
   * them. While there is work there are turns, and each looks for what is late: no timer is needed.
   */
  readonly #started: TurnScheduler<ConnectionQueue>;
  readonly #unstarted = new Set<ConnectionQueue>();
  readonly #byDeadline = new DueHeap<Job>();
  /** Pieces of this turn that nobody waited for any more. */
  #cancelledThisTurn = 0;
  #jobCount = 0;
  #bytes = 0;

  constructor(options: TurnQueueOptions) {
    this.#options = options;
    this.#maxJobs = options.maxJobs ?? MAX_QUEUED_JOBS;
    this.#maxBytes = options.maxBytes ?? MAX_QUEUED_BYTES;
    this.#started = new TurnScheduler({
      budget: 1,
      onTurn: () => this.#giveUpLate(),
      serve: (queue) => this.#serve(queue),
      nextTurn: options.nextTurn,
    });
  }

  /** Pieces that wait or have begun. */
  get size(): number {
    return this.#jobCount;
  }

  /** The memory that waits with them, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Connections that have a piece that waits or has begun. */
  get connections(): number {
    return this.#queues.size;
  }

  /**
   * Whether another piece of so many bytes may wait. A connection holds no more than is left free, so that one takes
   * half of the room at most, two a third each, and there is always some for a connection that has nothing waiting
   * (Choudhury and Hahne, Dynamic Queue Length Thresholds, 1998).
   */
  hasRoomFor(bytes: number, connection: unknown): boolean {
    const queue = this.#queues.get(connection);
    const held = queue?.bytes ?? 0;
    return (
      (queue?.jobs.size ?? 0) < this.#maxJobs - this.#jobCount && held + bytes <= this.#maxBytes - this.#bytes
    );
  }

  /**
   * Runs `steps` to its end, a step in a turn, each of which should take well under two milliseconds. Rejects with what
   * a step throws; work that is given up is ended by `return()`.
   */
  run<Result>(steps: Generator<void, Result>, waiter: Waiter): Promise<Result | AbandonReason> {
    if (!this.hasRoomFor(waiter.bytes ?? 0, waiter.connection)) return Promise.resolve('full');
    return new Promise<Result | AbandonReason>((resolve, reject) => {
      const queue = this.#queueOf(waiter.connection);
      this.#add(new Job(steps, waiter, queue, (result) => resolve(result as Result), reject));
    });
  }

  #giveUpLate(): void {
    this.#cancelledThisTurn = 0;
    const now = this.#options.monotonicMicros();
    for (let count = 0; count < MAX_GIVEN_UP_PER_TURN; count++) {
      const job = this.#byDeadline.first;
      if (job === undefined || job.dueAt > now) return;
      this.#remove(job);
      job.giveUp(job.waiter.cancelled() ? 'cancelled' : 'late');
    }
  }

  /** One step of the connection whose turn it is. */
  #serve(queue: ConnectionQueue): void {
    const job = this.#firstUncancelled(queue);
    // Nobody waits for anything of it, and it is gone.
    if (queue.jobs.size === 0) return;
    this.#started.spend(1);
    this.#started.wait(queue);
    // So many had to be given up that the next turn goes on.
    if (job === undefined || !job.step()) return;
    this.#remove(job);
    this.#yieldSlot(queue);
  }

  /** The first piece of a connection that somebody waits for. */
  #firstUncancelled(queue: ConnectionQueue): Job | undefined {
    for (;;) {
      const job = queue.jobs.first;
      if (job === undefined || !job.waiter.cancelled()) return job;
      if (this.#cancelledThisTurn >= MAX_GIVEN_UP_PER_TURN) return undefined;
      this.#cancelledThisTurn++;
      this.#remove(job);
      job.giveUp('cancelled');
    }
  }

  /** A connection that had something done goes behind those that wait. */
  #yieldSlot(queue: ConnectionQueue): void {
    if (this.#unstarted.size === 0 || !this.#started.cancel(queue)) return;
    this.#unstarted.add(queue);
    this.#startUnstarted();
  }

  #startUnstarted(): void {
    for (const queue of this.#unstarted) {
      if (this.#started.size >= MAX_STARTED_QUEUES) return;
      this.#unstarted.delete(queue);
      this.#started.wait(queue);
    }
  }

  #queueOf(connection: unknown): ConnectionQueue {
    const known = this.#queues.get(connection);
    if (known !== undefined) return known;
    const queue = new ConnectionQueue(connection);
    this.#queues.set(connection, queue);
    this.#unstarted.add(queue);
    this.#startUnstarted();
    return queue;
  }

  #add(job: Job): void {
    const { queue, bytes } = job;
    queue.jobs.add(job);
    queue.bytes += bytes;
    this.#byDeadline.add(job);
    this.#jobCount++;
    this.#bytes += bytes;
  }

  #remove(job: Job): void {
    const { queue, bytes } = job;
    queue.jobs.delete(job);
    queue.bytes -= bytes;
    this.#byDeadline.remove(job);
    this.#jobCount--;
    this.#bytes -= bytes;
    if (queue.jobs.size > 0) return;
    this.#queues.delete(queue.connection);
    this.#started.cancel(queue);
    this.#unstarted.delete(queue);
    this.#startUnstarted();
  }
}
