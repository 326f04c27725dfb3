import { type Due, DueHeap } from '../runtime/due-heap.js';
import { type Linked, LinkedList } from '../runtime/linked-list.js';
import { type NextTurn, TurnScheduler } from '../runtime/turns.js';

/** The caller of a queued job. */
export interface Waiter {
  /**
   * Identifies the connection. Jobs of one connection run one after the other and connections take turns, so a
   * connection gains nothing by sending more.
   */
  readonly connection: unknown;
  /** Returns true once the result is no longer needed. */
  cancelled(): boolean;
  /** Monotonic time at which the job is given up; Infinity for never. */
  readonly deadlineMicros: number;
  /** Memory that the job holds while it waits, in bytes; 0 if absent. */
  readonly bytes?: number;
}

/** The reason why a job has no result: its caller has gone, its deadline passed, or the queue was full. */
export type AbandonReason = 'cancelled' | 'late' | 'full';

export interface TurnQueueOptions {
  monotonicMicros(): number;
  readonly nextTurn?: NextTurn;
  /** Maximum number of queued jobs; {@link MAX_QUEUED_JOBS} if absent. */
  readonly maxJobs?: number;
  /** Maximum bytes of queued jobs; {@link MAX_QUEUED_BYTES} if absent. */
  readonly maxBytes?: number;
}

/** Maximum number of queued jobs. */
export const MAX_QUEUED_JOBS = 10_000;
/** Maximum memory of queued jobs, in bytes. */
export const MAX_QUEUED_BYTES = 32 * 1024 * 1024;

/**
 * Maximum number of connections with a started job; others wait until one ends. A started job takes more memory than a
 * waiting one.
 */
const MAX_STARTED_QUEUES = 32;
/** Maximum number of jobs that are given up in one turn. */
const MAX_GIVEN_UP_PER_TURN = 50;

/** A queued or started unit of work. */
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

  /** Runs one step; returns true if it was the last. */
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

/** The jobs of one connection. */
class ConnectionQueue {
  readonly connection: unknown;
  /** Jobs in the order of arrival. */
  readonly jobs = new LinkedList<Job>();
  bytes = 0;

  constructor(connection: unknown) {
    this.connection = connection;
  }
}

/**
 * Runs long work in slices, one slice in each turn of the event loop, so that other callers need not wait. Connections
 * take turns; jobs of one connection run in the order of arrival. Jobs that miss their deadline are given up, and jobs
 * that arrive while the queue is full are rejected.
 */
export class TurnQueue {
  readonly #options: TurnQueueOptions;
  readonly #maxJobs: number;
  readonly #maxBytes: number;
  readonly #queues = new Map<unknown, ConnectionQueue>();
  /**
   * Connections whose first job may have started, in the order of their turns, and those that wait for a slot. While
   * there is work there are turns, and each turn checks the deadlines, so no timer is needed.
   */
  readonly #started: TurnScheduler<ConnectionQueue>;
  readonly #unstarted = new Set<ConnectionQueue>();
  readonly #byDeadline = new DueHeap<Job>();
  /** Number of canceled jobs that were removed in this turn. */
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

  /** Number of queued and started jobs. */
  get size(): number {
    return this.#jobCount;
  }

  /** Memory of queued and started jobs, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Number of connections with a queued or started job. */
  get connections(): number {
    return this.#queues.size;
  }

  /**
   * Returns whether another job of `bytes` may wait. The jobs of a connection may use at most as much of the queue as
   * is still free. One connection therefore gets at most half of the queue, and two connections get a third each. A
   * connection without jobs always finds space (Choudhury and Hahne, Dynamic Queue Length Thresholds, 1998).
   */
  hasRoomFor(bytes: number, connection: unknown): boolean {
    const queue = this.#queues.get(connection);
    const held = queue?.bytes ?? 0;
    return (
      (queue?.jobs.size ?? 0) < this.#maxJobs - this.#jobCount && held + bytes <= this.#maxBytes - this.#bytes
    );
  }

  /**
   * Runs `steps` to its end, one step in each turn; a step should take well under 2 ms. Rejects with the error of a
   * step. A job that is given up ends with `return()`.
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

  /** Runs one step of the connection whose turn it is. */
  #serve(queue: ConnectionQueue): void {
    const job = this.#firstUncancelled(queue);
    // All jobs of the connection were canceled, so its queue was removed.
    if (queue.jobs.size === 0) return;
    this.#started.spend(1);
    this.#started.wait(queue);
    // After too many canceled jobs, the next turn continues.
    if (job === undefined || !job.step()) return;
    this.#remove(job);
    this.#yieldSlot(queue);
  }

  /** Returns the first job of a connection that is not canceled, and removes those before it. */
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

  /** Moves a connection behind the waiting ones after one of its jobs has ended. */
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
