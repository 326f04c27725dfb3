import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeResult,
} from '../../limiter/bucket-store.js';
import { MAX_TIMER_MS, systemClock, timerMs } from '../../limiter/clock.js';
import { ScarceRoom } from '../../limiter/scarce-room.js';
import { CallsUnderWay } from './calls-under-way.js';
import type { ConnectionCounts, SendCommand } from './connection/connection-options.js';
import { RedisConnection } from './connection/redis-connection.js';
import { SHORT_TEXT } from './connection/reply-bound.js';
import { PROBE } from './probe.js';
import { DEFAULT_KEY_PREFIX, RedisKeys } from './redis-key.js';
import { DEFAULT_BREAKER_FAILURES, newCounters, type RedisStoreOptions } from './redis-store-options.js';
import { RedisTime } from './redis-time.js';
import { ScriptCalls } from './script-calls.js';
import { TakeBatch } from './take-batch.js';
import { loadTakeScript } from './take-script.js';
import { WideSender } from './wide-sender.js';
import { NARROW_ITEMS, NO_ROOM } from './wide-takes.js';

/** Most takes of one call, unless a single request has more: Redis does nothing else meanwhile, 4 to 6 µs a take. */
export const MAX_TAKES_PER_CALL = 1000;
/** Longest that closing waits for answers, milliseconds. */
const CLOSE_WAIT_MS = 500;
/** Timers fire on whole milliseconds: waits are cut this much short, so that no answer is later than its deadline. */
const TIMER_SLACK_MICROS = 1000;

/**
 * Buckets in one Redis. All takes of one event-loop turn travel in one script call, several calls may be under way;
 * requests of many items take turns ({@link WideSender}). A take never rejects and never outlives its deadline; see the
 * docs/operate/redis.md, "When Redis is away".
 */
export class RedisStore implements BucketStore {
  readonly counters = newCounters();
  /** Resolves once Redis was reached for the first time. */
  readonly reached: Promise<void>;
  private everUp = false;
  private resolveReached: () => void = () => {};
  private readonly options: RedisStoreOptions;
  private readonly monotonicMicros: () => number;
  private readonly timeoutMicros: number;
  private readonly maxInFlight: number;
  private readonly keysPerCall: number;
  private readonly countDeniedHits: boolean;
  private readonly keys: RedisKeys;
  private readonly calls: ScriptCalls;
  private readonly connection: RedisConnection;
  private readonly upListeners: (() => void)[] = [];
  private readonly downListeners: ((reason: string) => void)[] = [];
  /** Takes of this turn, in calls not yet sent. */
  private waiting: TakeBatch[] = [];
  private flushScheduled = false;
  private readonly underWay: CallsUnderWay;
  /** Items of requests of few, sent or waiting. */
  private readonly narrow: ScarceRoom;
  private readonly wide: WideSender;
  private readonly time: RedisTime;
  private timer: NodeJS.Timeout | undefined;
  private whenIdle: (() => void) | undefined;
  private timerAtMicros = Infinity;
  private closing = false;

  /** Connects in the background. Throws an Error when the TLS settings cannot be used. */
  constructor(options: RedisStoreOptions) {
    this.options = options;
    this.monotonicMicros = options.monotonicMicros ?? (() => systemClock.monotonicMicros());
    this.timeoutMicros = options.timeoutMicros;
    const script = loadTakeScript();
    this.time = new RedisTime(this.monotonicMicros);
    this.calls = new ScriptCalls(script, this.time, options.clock);
    this.maxInFlight = options.maxInFlight;
    this.narrow = new ScarceRoom(this.maxInFlight);
    this.wide = new WideSender(this.maxInFlight, {
      newBatch: () => this.newBatch(this.monotonicMicros()),
      hasRoomFor: (batch, items) => this.hasRoomFor(batch, items),
      send: (batch) => this.underWay.give(batch),
    });
    this.keysPerCall = options.keysPerCall;
    this.countDeniedHits = options.countDeniedHits;
    this.keys = new RedisKeys(options.keyPrefix ?? DEFAULT_KEY_PREFIX);
    this.reached = new Promise((resolve) => {
      this.resolveReached = resolve;
    });
    this.underWay = new CallsUnderWay({
      calls: this.calls,
      time: this.time,
      connection: () => this.connection,
      counters: this.counters,
      timeoutMicros: this.timeoutMicros,
      monotonicMicros: this.monotonicMicros,
      tellWork: options.tellWork,
      observeCall: options.observeCall,
      onEnded: (batch) => this.retire(batch),
    });
    this.connection = new RedisConnection(
      {
        address: options.address,
        tls: options.tls,
        login: options.login,
        names: options.names,
        finder: options.finder,
        observeFault: options.observeFault,
        startup: options.startup,
        breakerFailures: options.breakerFailures ?? DEFAULT_BREAKER_FAILURES,
        patienceMs: timerMs(this.timeoutMicros),
        script: script.text,
        probe: (send) => this.probe(send),
        log: options.log ?? (() => {}),
      },
      {
        up: () => this.onConnectionUp(),
        down: (reason) => {
          if (!this.connection.hopeful) this.failUnsent();
          for (const listener of this.downListeners) listener(reason);
        },
        lost: () => this.underWay.lost(),
        hopeless: () => this.failUnsent(),
      },
    );
  }

  /** Whether Redis answers now. */
  get connected(): boolean {
    return this.connection.up;
  }

  /** Whether Redis was ever reached. */
  get everReached(): boolean {
    return this.everUp;
  }

  /** Items sent to Redis, or about to be, and not yet answered. */
  get inFlight(): number {
    return this.narrow.taken + this.wide.items;
  }

  /** Connections made and closed so far. */
  get connections(): ConnectionCounts {
    return this.connection.connections;
  }

  /** `listener` runs whenever Redis comes (back) up. */
  onUp(listener: () => void): void {
    this.upListeners.push(listener);
  }

  /** `listener` runs whenever Redis goes away; `reason` is for the log. */
  onDown(listener: (reason: string) => void): void {
    this.downListeners.push(listener);
  }

  /** Another process, `from`, told what this one hears by `tellWork`. */
  othersWork(from: number, micros: number): void {
    this.underWay.load.othersWork(from, micros, this.monotonicMicros());
  }

  take(
    items: readonly TakeItem[],
    deadlineMicros: number,
    connection?: unknown,
    mayWait = true,
  ): TakeResult | Promise<TakeResult> {
    if (this.closing) return this.refuse('disconnected', 'the store is closed');
    if (!this.connection.up && !(this.connection.hopeful && mayWait)) {
      return this.refuse(this.connection.downReason, `Redis ${this.options.address.redactedAddress} is away`);
    }
    const now = this.monotonicMicros();
    // Redis has no part in that.
    if (deadlineMicros <= now) return this.refuse('full', 'the deadline has passed');
    if (!mayWait) return this.refuseToWait(now, 'requests that wait for Redis hold too much');
    const deadline = Math.min(deadlineMicros, now + this.timeoutMicros);
    // Redis would do what nobody waits for any more.
    if (now + this.underWay.load.queueMicros(now) > deadline) {
      return this.refuseToWait(now, 'Redis has too much to do before it');
    }
    let promise: Promise<TakeResult>;
    if (items.length > NARROW_ITEMS) {
      const { queue } = this.wide;
      if (!queue.hasRoomFor(items.length, connection)) return this.refuse('full', NO_ROOM);
      promise = queue.add(items, deadline, connection, now);
    } else {
      if (!this.narrow.has(items.length, connection)) {
        const most = `the ${this.maxInFlight} limits that may wait for Redis (REDIS_MAX_IN_FLIGHT)`;
        return this.refuseToWait(now, `there is no room among ${most}`);
      }
      const batch = this.batchFor(items, now);
      if (this.narrow.take(items.length, connection)) {
        batch.scarce.set(connection, (batch.scarce.get(connection) ?? 0) + items.length);
      }
      promise = batch.add(items, deadline);
    }
    this.armTimer(deadline, now);
    if (!this.flushScheduled) {
      this.flushScheduled = true;
      setImmediate(() => this.flush());
    }
    return promise;
  }

  /** Waits a little for what is under way; what Redis has not answered then ends as `disconnected`. */
  async close(): Promise<void> {
    this.closing = true;
    if (!this.isIdle) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.whenIdle = resolve;
        timer = setTimeout(resolve, CLOSE_WAIT_MS);
      });
      clearTimeout(timer);
    }
    const closed = new StorageError('disconnected', 'the store is closed');
    this.failWide(closed.reason, closed.message);
    for (const batch of [...this.underWay, ...this.waiting.splice(0)])
      this.underWay.fail(batch, closed.reason, closed.message);
    this.connection.close();
    clearTimeout(this.timer);
    this.underWay.stop();
  }

  private refuse(reason: StorageError['reason'], message: string): StorageError {
    return this.failed(new StorageError(reason, message));
  }

  /** Redis that answers is busy, and an error would be a way round the limit; of one that does not it is the truth. */
  private refuseToWait(nowMicros: number, message: string): StorageError {
    return this.refuse(this.underWay.load.isLively(nowMicros) ? 'full' : 'overloaded', message);
  }

  /** Counts it. */
  private failed(error: StorageError): StorageError {
    this.counters.failures[error.reason]++;
    return error;
  }

  /** The call that the next request goes into. */
  private batchFor(items: readonly TakeItem[], nowMicros: number): TakeBatch {
    const last = this.waiting.at(-1);
    if (last !== undefined && this.hasRoomFor(last, items.length) && last.suits(items)) return last;
    const batch = this.newBatch(nowMicros);
    this.waiting.push(batch);
    return batch;
  }

  /** Whether a call may hold a request of so many items, too. */
  private hasRoomFor(batch: TakeBatch, items: number): boolean {
    return batch.load + items <= this.keysPerCall && batch.itemCount + items <= MAX_TAKES_PER_CALL;
  }

  private newBatch(nowMicros: number): TakeBatch {
    return new TakeBatch(this.keys, this.countDeniedHits, this.time.aboutMicros, nowMicros);
  }

  private flush(): void {
    this.flushScheduled = false;
    // What waits is sent when Redis comes up, or fails with the hope for that.
    if (this.connection.hopeful) return;
    this.underWay.giveHeld();
    for (const batch of this.waiting.splice(0)) {
      if (batch.hasPending) this.underWay.give(batch);
      else this.retire(batch);
    }
    this.wide.send();
  }

  /** Takes a token of a bucket that nobody uses: all that calls need must work. */
  private async probe(send: SendCommand): Promise<void> {
    // A Redis that wants a password first breaks off at a long command, without saying so; at a short one it does.
    await send('set', [this.keys.of(PROBE), '1', 'PX', '1000'], SHORT_TEXT);
    const batch = this.newBatch(this.monotonicMicros());
    void batch.add([PROBE], Infinity);
    batch.succeed(await this.calls.run(batch, send, () => true));
    this.time.note(batch.nowMicros);
  }

  /** Fails everything that Redis was not given. */
  private failUnsent(): void {
    const { downReason } = this.connection;
    this.failWide(downReason, 'Redis went away');
    this.underWay.failHeld(downReason, 'Redis went away');
    for (const batch of this.waiting.splice(0)) this.underWay.fail(batch, downReason, 'Redis went away');
  }

  private failWide(reason: StorageError['reason'], message: string): void {
    this.counters.failures[reason] += this.wide.fail(new StorageError(reason, message));
  }

  /** Nothing more will come of this call. */
  private retire(batch: TakeBatch): void {
    if (!this.wide.retire(batch)) this.narrow.giveBack(batch.itemCount, batch.scarce);
    if (this.isIdle) this.whenIdle?.();
  }

  private get isIdle(): boolean {
    return this.underWay.size + this.waiting.length + this.wide.items === 0;
  }

  private onConnectionUp(): void {
    if (!this.everUp) {
      this.everUp = true;
      this.resolveReached();
    }
    for (const listener of this.upListeners) listener();
    this.flush();
  }

  /** One timer for all takes, set to the soonest deadline. */
  private armTimer(deadlineMicros: number, nowMicros: number): void {
    if (deadlineMicros >= this.timerAtMicros) return;
    clearTimeout(this.timer);
    this.timerAtMicros = deadlineMicros;
    // A deadline beyond the longest timer is looked at again then.
    const wait = Math.max(0, Math.floor((deadlineMicros - TIMER_SLACK_MICROS - nowMicros) / 1000));
    // A busy process sees its timers before the answers that have come meanwhile.
    this.timer = setTimeout(() => setImmediate(() => this.onTimer()), Math.min(wait, MAX_TIMER_MS));
  }

  private onTimer(): void {
    const now = this.monotonicMicros();
    const due = now + TIMER_SLACK_MICROS;
    this.timerAtMicros = Infinity;
    // What waits for its turn, or was not sent yet, waits for others.
    const { queue, making } = this.wide;
    const waits = this.underWay.lateInLine(now);
    this.counters.failures[waits.reason] += queue.expire(due, waits);
    let soonest = queue.soonestDeadline;
    for (const batch of [...this.underWay, ...this.waiting, ...(making === undefined ? [] : [making])]) {
      if (!batch.hasPending) continue;
      const errorOf = (deadline: number): StorageError =>
        this.failed(this.underWay.late(batch, deadline, now));
      if (batch.soonestDeadline <= due) batch.expire(due, errorOf);
      soonest = Math.min(soonest, batch.soonestDeadline);
    }
    if (soonest < Infinity) this.armTimer(soonest, now);
    if (this.isIdle) this.whenIdle?.();
  }
}
