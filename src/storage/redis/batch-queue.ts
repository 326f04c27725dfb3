import { StorageError, type StorageFailure } from '../../limiter/bucket-store.js';
import { BrokenInvariant } from '../../runtime/invariant.js';
import { LinkedList } from '../../runtime/linked-list.js';
import { ignore } from '../../runtime/signal.js';
import type { SendCommand } from './connection/connection-options.js';
import { RedisReplyError } from './connection/redis-error.js';
import type { RedisNode } from './node/redis-node.js';
import { isRedirection, MAX_REDIRECTIONS, type RedisStoreOptions } from './redis-store-options.js';
import type { ScriptBatch } from './script-batch.js';
import type { RedisTime, TakeScriptSender } from './take-script-sender.js';

const TIMED_OUT = new StorageError('timeout', 'Redis did not answer in time');
const UNREACHABLE = new StorageError('disconnected', 'Redis could not be reached in time');
/**
 * Error message for refunds, which are sent only once. A Redis server that has not executed the takes would give back
 * too much.
 */
const OTHER_CONNECTION = 'the hits were taken on another connection';
/**
 * Number of items in unanswered calls for bulk requests from which further such calls wait. Redis executes calls one
 * after the other, so any request waits for all calls that were sent before it, here for about 5 ms. Calls that
 * wait are denied at their deadline. If weir sent them, Redis would be late for all callers, as in an outage.
 */
export const MAX_BULK_ITEMS_IN_FLIGHT = 512;
const REDIS_BUSY = new StorageError('full', 'Redis was busy with other requests');

/** Time since the latest reply within which Redis counts as busy but responsive, in microseconds. */
export const RESPONSIVE_MICROS = 250_000;
/** Weight of the latest call in the average duration. */
const LATENCY_WEIGHT = 0.05;

/** Options of {@link BatchQueue}. */
export interface InFlightCallsOptions {
  readonly connection: RedisNode;
  readonly scripts: TakeScriptSender;
  readonly time: RedisTime;
  readonly store: Pick<RedisStoreOptions, 'timeoutMicros' | 'observeCall' | 'redirect'>;
  /** The clock of deadlines. */
  readonly monotonicMicros: () => number;
  /** Called when a call ends in this object, whether or not it was sent. */
  readonly onEnded: () => void;
}

/**
 * The calls that were sent to Redis, and those that wait: for a connection, or, with bulk requests, for replies to
 * others. A call that Redis refused without running it may be sent once more. A call whose connection was lost is not.
 */
export class BatchQueue {
  /** Number of calls sent since start. */
  calls = 0;
  /** Average duration of recent calls; undefined before the first reply. */
  latencyMicros: number | undefined;
  readonly #options: InFlightCallsOptions;
  readonly #connection: RedisNode;
  /** When Redis last replied to a call, on the clock of deadlines. */
  #answeredMicros = 0;
  /** Calls that were sent and not answered, even if no caller waits for them. */
  readonly #sent = new LinkedList<ScriptBatch>();
  /** Complete calls that wait, oldest first. */
  readonly #held = new LinkedList<ScriptBatch>();
  /** Number of items in sent calls for bulk requests. */
  #bulkItems = 0;

  readonly #call: SendCommand = (name, args) => this.#connection.send(name, args);
  readonly #callAfterAsking: SendCommand = (name, args) => {
    // ASKING applies to the next command only, whose error reports any problem.
    this.#call('asking', []).catch(ignore);
    return this.#call(name, args);
  };

  constructor(options: InFlightCallsOptions) {
    this.#options = options;
    this.#connection = options.connection;
  }

  get size(): number {
    return this.#sent.size + this.#held.size;
  }

  *[Symbol.iterator](): Generator<ScriptBatch> {
    yield* this.#sent;
    yield* this.#held;
  }

  /**
   * Sends a call, unless it must wait. Without a connection, the call waits during the reconnect grace, and fails
   * otherwise.
   */
  submit(batch: ScriptBatch): void {
    const connection = this.#connection;
    if (batch.isGiveBack && batch.takenOn !== connection.connectionId)
      this.fail(batch, 'disconnected', OTHER_CONNECTION);
    else if (connection.inReconnectGrace) this.#held.add(batch);
    else if (!connection.up) this.fail(batch, connection.downReason, 'Redis became unavailable');
    else if (!connection.hasRoom) this.#held.add(batch);
    else if (batch.isBulk && this.#bulkItems >= MAX_BULK_ITEMS_IN_FLIGHT) this.#held.add(batch);
    else this.#send(batch);
  }

  /** Holds a call until {@link reroute} is called or a connection is available. */
  hold(batch: ScriptBatch): void {
    this.#held.add(batch);
  }

  /** Whether calls wait. */
  get hasHeld(): boolean {
    return this.#held.size > 0;
  }

  /** Sends the calls that wait, as far as they need not wait any longer. */
  submitHeld(): void {
    if (this.#held.size === 0) return;
    for (const batch of this.#held) {
      if (!this.#connection.hasRoom) return;
      this.#held.delete(batch);
      if (batch.hasPending) this.submit(batch);
      else this.#end(batch);
    }
  }

  /** Moves each held call to its target: to another server, to this Redis, or to an error. */
  reroute(targetOf: (batch: ScriptBatch) => ((batch: ScriptBatch) => void) | StorageError | undefined): void {
    for (const batch of this.#held) {
      if (!batch.hasPending) {
        this.#end(batch);
        continue;
      }
      const target = targetOf(batch);
      if (target instanceof StorageError) this.fail(batch, target.reason, target.message);
      else if (batch.isGiveBack && target !== undefined) this.fail(batch, 'disconnected', OTHER_CONNECTION);
      else if (target !== undefined) {
        this.#held.delete(batch);
        target(batch);
        this.#options.onEnded();
      } else if (this.#connection.up) {
        this.#held.delete(batch);
        this.submit(batch);
      }
    }
  }

  /** Fails the calls that wait. */
  failHeld(reason: StorageFailure, message: string): void {
    for (const batch of this.#held) this.fail(batch, reason, message);
  }

  /** Fails a call in any state. */
  fail(batch: ScriptBatch, reason: StorageFailure, message: string): void {
    batch.fail(new StorageError(reason, message));
    if (this.#sent.has(batch)) this.#observe(batch, reason);
    this.#end(batch);
  }

  /**
   * Whether Redis has replied recently. A connected Redis that has no call to reply to counts as responsive. Without a
   * connection, Redis does not.
   */
  get isResponsive(): boolean {
    if (!this.#connection.up) return false;
    const since = this.#silentSinceMicros;
    return since === undefined || this.#options.monotonicMicros() - since < RESPONSIVE_MICROS;
  }

  /**
   * Reports a hung Redis to the connection: a call was sent REDIS_TIMEOUT ago, and Redis has not replied to any call
   * since. Deadlines of callers prove nothing about Redis, because they may be shorter than the round-trip time.
   * Returns when to check again, on the clock of deadlines; Infinity if no call waits for a reply.
   */
  checkSilence(nowMicros: number): number {
    const since = this.#silentSinceMicros;
    if (since === undefined) return Infinity;
    const dueMicros = since + this.#options.store.timeoutMicros;
    if (dueMicros > nowMicros) return dueMicros;
    this.#connection.noteSilence(nowMicros - since);
    return Infinity;
  }

  /** Since when calls have waited without a reply; undefined if none waits, or if the connection is down. */
  get #silentSinceMicros(): number | undefined {
    const oldest = this.#connection.up ? this.#sent.first : undefined;
    return oldest && Math.max(oldest.sentMicros, this.#answeredMicros);
  }

  timeoutError({ sentMicros }: ScriptBatch): StorageError {
    if (sentMicros > 0) return TIMED_OUT;
    if (!this.#connection.up) return UNREACHABLE;
    return this.isResponsive ? REDIS_BUSY : TIMED_OUT;
  }

  #send(batch: ScriptBatch): void {
    const { scripts, monotonicMicros } = this.#options;
    this.calls++;
    batch.sentMicros = monotonicMicros();
    this.#sent.add(batch);
    if (batch.isBulk) this.#bulkItems += batch.itemCount;
    const send = ++batch.sendCount;
    const { asking } = batch;
    batch.asking = false;
    // Results on an earlier connection are ignored.
    const isInFlight = (): boolean => batch.sendCount === send && this.#sent.has(batch);
    scripts.run(
      batch,
      asking ? this.#callAfterAsking : this.#call,
      () => batch.hasPending && isInFlight(),
      (reply) => {
        if (isInFlight()) this.#onReply(batch, reply);
      },
      (error) => {
        if (isInFlight()) this.#onError(batch, error);
      },
    );
  }

  #noteAnswer(): void {
    this.#answeredMicros = this.#options.monotonicMicros();
  }

  #onReply(batch: ScriptBatch, reply: readonly number[]): void {
    this.#noteAnswer();
    try {
      batch.succeed(reply);
      this.#options.time.note(batch.nowMicros);
      this.#connection.noteSuccess();
    } catch (error) {
      this.#onError(batch, error as Error);
      return;
    }
    this.#observe(batch, undefined);
    this.#end(batch);
  }

  #onError(batch: ScriptBatch, error: Error): void {
    const isBroken = error instanceof BrokenInvariant;
    const isRefused = error instanceof RedisReplyError;
    const reason = isBroken ? 'broken' : isRefused ? 'rejected' : 'disconnected';
    if (isBroken || isRefused) this.#noteAnswer();
    if (isRefused && this.#isRedirected(batch, error)) return;
    if (!isBroken) this.#connection.noteFailure(error);
    // Redis refused the call without executing it, so another server may execute it.
    if (isRefused && this.#holdForRetry(batch)) return;
    this.fail(batch, reason, error.message);
  }

  /** Returns whether a refused call was handled as a redirection. */
  #isRedirected(batch: ScriptBatch, error: RedisReplyError): boolean {
    const { redirect } = this.#options.store;
    if (redirect === undefined || !isRedirection(error)) return false;
    this.#connection.noteSuccess();
    const cannotFollow = !batch.hasPending || batch.isGiveBack || batch.redirections++ >= MAX_REDIRECTIONS;
    if (!cannotFollow) this.#hold(batch);
    const redirection = cannotFollow ? 'failed' : redirect(batch, error);
    if (redirection === 'failed') this.fail(batch, 'rejected', error.message);
    else if (redirection === 'emptied') this.#end(batch);
    else if (redirection === 'taken') {
      this.#held.delete(batch);
      this.#options.onEnded();
    }
    return true;
  }

  /** Holds a sent call until the next connection, during the reconnect grace. Returns false without a grace. */
  #holdForRetry(batch: ScriptBatch): boolean {
    if (!this.#connection.inReconnectGrace || !batch.hasPending || batch.isGiveBack) return false;
    if (batch.sendCount > 1 + batch.redirections) return false;
    this.#hold(batch);
    return true;
  }

  /** Moves a sent call back to the held calls. */
  #hold(batch: ScriptBatch): void {
    this.#removeSent(batch);
    batch.sentMicros = 0;
    this.#held.add(batch);
  }

  #end(batch: ScriptBatch): void {
    this.#held.delete(batch);
    this.#removeSent(batch);
    batch.owner?.retire(batch);
    this.#options.onEnded();
  }

  #removeSent(batch: ScriptBatch): void {
    if (this.#sent.delete(batch) && batch.isBulk) this.#bulkItems -= batch.itemCount;
  }

  #observe(batch: ScriptBatch, failure: StorageFailure | undefined): void {
    const micros = this.#options.monotonicMicros() - batch.sentMicros;
    if (failure === undefined) {
      const before = this.latencyMicros ?? micros;
      this.latencyMicros = before + (micros - before) * LATENCY_WEIGHT;
    }
    this.#options.store.observeCall?.(micros, batch.itemCount, failure);
  }
}
