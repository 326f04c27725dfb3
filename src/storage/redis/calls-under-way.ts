import { BrokenInvariant } from '../../invariant.js';
import { StorageError, type StorageFailure } from '../../limiter/bucket-store.js';
import type { RedisConnection } from './connection/redis-connection.js';
import { isAnswer, RedisReplyError } from './connection/redis-error.js';
import { RedisLoad } from './redis-load.js';
import type { RedisStoreCounters, RedisStoreOptions } from './redis-store-options.js';
import type { RedisTime } from './redis-time.js';
import type { ScriptCalls } from './script-calls.js';
import { SilenceWatch } from './silence-watch.js';
import type { TakeBatch } from './take-batch.js';

const LATE = new StorageError('timeout', 'Redis did not answer in time');
const AWAY = new StorageError('disconnected', 'Redis was not reached in time');
const BUSY = new StorageError('full', 'Redis was busy with others');

/** What {@link CallsUnderWay} works with. */
export interface CallsUnderWayOptions {
  readonly calls: ScriptCalls;
  readonly time: RedisTime;
  readonly connection: () => RedisConnection;
  readonly counters: RedisStoreCounters;
  readonly timeoutMicros: number;
  readonly monotonicMicros: () => number;
  readonly tellWork: RedisStoreOptions['tellWork'];
  readonly observeCall: RedisStoreOptions['observeCall'];
  /** Nothing more will come of a call; whether it was sent does not matter. */
  readonly onEnded: (batch: TakeBatch) => void;
}

/**
 * The calls that Redis was given, and those that wait for a connection to be given to it. A call whose connection is
 * lost before it was answered may be sent once more, on the next one.
 */
export class CallsUnderWay {
  readonly load: RedisLoad;
  readonly #options: CallsUnderWayOptions;
  readonly #silence: SilenceWatch;
  /** Sent and not yet answered, whether or not anybody waits for them. */
  readonly #sent = new Set<TakeBatch>();
  /** Whole, and waiting for a connection. */
  readonly #held = new Set<TakeBatch>();

  constructor(options: CallsUnderWayOptions) {
    const { monotonicMicros, timeoutMicros, connection, tellWork } = options;
    this.#options = options;
    this.load = new RedisLoad(tellWork);
    this.#silence = new SilenceWatch({
      patienceMicros: timeoutMicros,
      monotonicMicros,
      oldest: () => (connection().up ? this.#sent.values().next().value : undefined),
      othersSince: (batch, nowMicros) => this.load.othersSince(batch, nowMicros),
      onSilence: (micros) => connection().noteSilence(micros),
    });
  }

  /** How many there are. */
  get size(): number {
    return this.#sent.size + this.#held.size;
  }

  *[Symbol.iterator](): Generator<TakeBatch> {
    yield* this.#sent;
    yield* this.#held;
  }

  /** Sends a call; where there is no connection it waits for one, or fails if there is no hope for one. */
  give(batch: TakeBatch): void {
    const connection = this.#options.connection();
    if (connection.up) this.#send(batch);
    else if (connection.hopeful) this.#held.add(batch);
    else this.fail(batch, connection.downReason, 'Redis went away');
  }

  /** Gives Redis what waits for a connection. */
  giveHeld(): void {
    for (const batch of this.#held) {
      this.#held.delete(batch);
      if (batch.hasPending) this.give(batch);
      else this.#options.onEnded(batch);
    }
  }

  /** Fails what waits for a connection. */
  failHeld(reason: StorageFailure, message: string): void {
    for (const batch of this.#held) this.fail(batch, reason, message);
  }

  /**
   * The connection is gone. Redis may or may not have done what it has not answered. Taken twice is taken too much,
   * which lets nothing through; given back twice would.
   */
  lost(): void {
    for (const batch of this.#sent) {
      if (!batch.givesBack && this.#sendAgain(batch)) continue;
      this.fail(batch, 'disconnected', 'the connection to Redis was lost');
    }
  }

  /** Ends a call, whoever has it. */
  fail(batch: TakeBatch, reason: StorageFailure, message: string): void {
    this.#options.counters.failures[reason] += batch.fail(new StorageError(reason, message));
    if (this.#sent.has(batch)) this.#observe(batch, reason);
    this.#end(batch);
  }

  /** What those get at `nowMicros` whose time is over, and who were given to no call. */
  lateInLine(nowMicros: number): StorageError {
    if (!this.#options.connection().up) return AWAY;
    return this.load.isLively(nowMicros) ? BUSY : LATE;
  }

  /** What a request of a call gets at `nowMicros` whose time was over at its deadline. */
  late(batch: TakeBatch, deadlineMicros: number, nowMicros: number): StorageError {
    if (batch.sentMicros === 0 && !this.#options.connection().up) return AWAY;
    return this.load.explains(batch, deadlineMicros, nowMicros) ? BUSY : LATE;
  }

  /** Stops timers. */
  stop(): void {
    this.#silence.stop();
  }

  #send(batch: TakeBatch): void {
    const { counters, calls, connection, monotonicMicros } = this.#options;
    counters.calls++;
    counters.takes += batch.takeCount;
    counters.items += batch.itemCount;
    this.load.sent(batch, monotonicMicros());
    this.#sent.add(batch);
    this.#silence.begin();
    const send = ++batch.sends;
    // What becomes of it on a connection that was lost meanwhile is of no concern.
    const isUnderWay = (): boolean => batch.sends === send && this.#sent.has(batch);
    calls
      .run(
        batch,
        (name, args, bound) => connection().send(name, args, bound),
        () => batch.hasPending && isUnderWay(),
      )
      .then(
        (reply) => {
          if (isUnderWay()) this.#onReply(batch, reply);
        },
        (error: Error) => {
          if (isUnderWay()) this.#onError(batch, error);
        },
      );
  }

  #onReply(batch: TakeBatch, reply: unknown): void {
    this.#answered();
    this.load.replied(batch, this.load.heardMicros);
    try {
      batch.succeed(reply);
      this.#options.time.note(batch.nowMicros);
      this.#options.connection().noteSuccess();
    } catch (error) {
      this.#onError(batch, error as Error);
      return;
    }
    this.#observe(batch, undefined);
    this.#end(batch);
  }

  #onError(batch: TakeBatch, error: Error): void {
    const isOurs = error instanceof BrokenInvariant;
    const reason = isOurs ? 'broken' : isAnswer(error) ? 'rejected' : 'disconnected';
    if (reason !== 'disconnected') this.#answered();
    if (!isOurs) this.#options.connection().noteFailure(error);
    // Redis refused it, and did nothing: another one may do it.
    if (error instanceof RedisReplyError && this.#sendAgain(batch)) return;
    this.fail(batch, reason, error.message);
  }

  #answered(): void {
    this.#silence.answered();
    this.load.answered(this.#silence.answeredMicros);
  }

  /** Lets a call that was sent wait for another connection, where there is hope for one. Returns whether it does. */
  #sendAgain(batch: TakeBatch): boolean {
    if (!this.#options.connection().hopeful || !batch.hasPending || batch.sends > 1) return false;
    this.#sent.delete(batch);
    this.load.ended(batch);
    batch.sentMicros = 0;
    this.#held.add(batch);
    this.#options.counters.resent++;
    return true;
  }

  #end(batch: TakeBatch): void {
    this.#held.delete(batch);
    if (this.#sent.delete(batch)) this.load.ended(batch);
    this.#options.onEnded(batch);
  }

  #observe(batch: TakeBatch, failure: StorageFailure | undefined): void {
    const { observeCall, monotonicMicros } = this.#options;
    observeCall?.(monotonicMicros() - batch.sentMicros, batch.itemCount, failure);
  }
}
