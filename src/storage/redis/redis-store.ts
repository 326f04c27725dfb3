import { StorageError, type TakeItem, type TakeResult } from '../../limiter/bucket-store.js';
import { systemClock } from '../../limiter/clock.js';
import { quantity } from '../../quantity.js';
import { FairCapacity } from '../../runtime/fair-capacity.js';
import { IdleWait } from '../../runtime/idle-wait.js';
import { Signal } from '../../runtime/signal.js';
import { TurnScheduler } from '../../runtime/turns.js';
import type { GiveBackResult, Part, PartTake, Shard } from '../sharded/shard.js';
import { CallsUnderWay } from './calls-under-way.js';
import { ScriptClock } from './clock/script-clock.js';
import type { ConnectionCounts, SendCommand } from './connection/connection-options.js';
import { RedisConnection } from './connection/redis-connection.js';
import { SHORT_TEXT } from './connection/reply-bound.js';
import { DeadlineTimer } from './load/deadline-timer.js';
import { OpenBatches } from './open-batches.js';
import { PROBE, probeRedis } from './probe.js';
import { ScriptQuestions } from './questions/script-questions.js';
import type { RedisBuckets, RedisNodeState } from './redis-buckets.js';
import { DEFAULT_KEY_PREFIX, RedisKeys } from './redis-key.js';
import type { RedisStoreOptions } from './redis-store-options.js';
import { RedisTime } from './redis-time.js';
import { ScriptCalls } from './script-calls.js';
import { type BatchKeys, type BatchOptions, type BatchOwner, TakeBatch, WHOLE } from './take-batch.js';
import { loadTakeScript } from './take-script.js';
import { WideSender } from './wide-sender.js';
import { NO_ROOM } from './wide-takes.js';

/** Longest that closing waits for answers, milliseconds. */
const CLOSE_WAIT_MS = 500;

/**
 * Buckets in one Redis: the map of them, and the only server in it. All takes of one event-loop turn that are of one
 * part travel in one script call, several calls may be under way; requests of many items take turns
 * ({@link WideSender}). A take never rejects and never outlives its deadline; see docs/operate/redis.md, "When Redis is
 * unavailable".
 */
export class RedisStore implements RedisBuckets, Shard, BatchOwner {
  readonly ask: ScriptQuestions['ask'];
  readonly onlyPart: Part | undefined = WHOLE;
  private readonly options: RedisStoreOptions;
  private readonly monotonicMicros: () => number;
  private readonly timeoutMicros: number;
  private readonly maxInFlight: number;
  private readonly countDeniedHits: boolean;
  private readonly keys: RedisKeys;
  private readonly scripts: ScriptCalls;
  private readonly connection: RedisConnection;
  private readonly cameUp = new Signal();
  private readonly wentDown = new Signal<string>();
  readonly onUp = this.cameUp.add;
  readonly onDown = this.wentDown.add;
  /** Takes of this turn, in calls not yet sent. */
  private readonly waiting: OpenBatches;
  private readonly turns = new TurnScheduler<never>({ budget: 0, onTurn: () => this.flush() });
  private readonly underWay: CallsUnderWay;
  /** Items of requests of few, sent or waiting. */
  private readonly narrow: FairCapacity;
  private readonly wide: WideSender;
  private readonly time: RedisTime;
  private readonly timer = new DeadlineTimer(() => this.onTimer());
  private readonly idle = new IdleWait(() => this.isIdle);
  private closing: Promise<void> | undefined;

  /** Connects in the background. Throws an Error when the TLS settings cannot be used. */
  constructor(options: RedisStoreOptions) {
    this.options = options;
    this.monotonicMicros = options.monotonicMicros ?? (() => systemClock.monotonicMicros());
    this.timeoutMicros = options.timeoutMicros;
    this.time = new RedisTime(this.monotonicMicros, options.proxied === undefined);
    const clock = new ScriptClock(options, this.time, this.monotonicMicros);
    this.scripts = new ScriptCalls(loadTakeScript(), this.time, clock);
    const connection = () => this.connection;
    const questions = new ScriptQuestions(options, connection, clock);
    this.ask = (question, asking) => questions.ask(question, asking);
    this.maxInFlight = options.maxInFlight;
    this.narrow = new FairCapacity(this.maxInFlight);
    this.waiting = new OpenBatches(options.keysPerCall);
    this.wide = new WideSender(this.maxInFlight, {
      newBatch: ({ part, takenOn }) =>
        this.newBatch({ sinceMicros: this.monotonicMicros(), part, takenOn, owner: this }),
      hasRoomFor: (batch, items) => this.waiting.hasRoomFor(batch, items),
      send: (batch) => this.underWay.give(batch),
    });
    this.countDeniedHits = options.countDeniedHits;
    this.keys = options.keys ?? new RedisKeys(options.keyPrefix ?? DEFAULT_KEY_PREFIX);
    this.underWay = new CallsUnderWay({
      scripts: this.scripts,
      time: this.time,
      connection,
      holds: () => this.holds,
      timeoutMicros: this.timeoutMicros,
      monotonicMicros: this.monotonicMicros,
      tellWork: options.tellWork,
      observeCall: options.observeCall,
      onEnded: () => this.idle.check(),
      redirect: options.redirect,
    });
    this.connection = new RedisConnection(options, {
      probe: (send, isNew) =>
        probeRedis(send, isNew, { ...options, keys: this.keys }, (key) =>
          this.probeBucket(send, key, isNew && options.proxied === undefined),
        ),
      up: () => this.onConnectionUp(),
      down: (reason) => {
        if (!this.connection.hopeful) this.failUnsent();
        this.wentDown.emit(reason);
      },
      lost: () => this.underWay.lost(),
      hopeless: () => this.failUnsent(),
    });
  }

  /** Whether Redis answers now. */
  get connected(): boolean {
    return this.connection.up;
  }

  get whole(): boolean {
    return this.connected;
  }

  get nodes(): readonly [RedisNodeState] {
    const name = this.options.address.redactedAddress;
    const reason = this.connected ? undefined : this.connection.downReason;
    return [{ name, up: this.connected, reason, latencyMicros: this.underWay.latencyMicros }];
  }

  /** Calls sent since start. */
  get calls(): number {
    return this.underWay.calls;
  }

  /** Items sent to Redis, or about to be, and not yet answered. */
  get inFlight(): number {
    return this.narrow.used + this.wide.items;
  }

  /** Connections made and closed so far. */
  get connections(): ConnectionCounts {
    return this.connection.connections;
  }

  /** Another process, `from`, told what this one hears by `tellWork`. */
  othersWork(from: number, micros: number): void {
    this.underWay.load.othersWork(from, micros, this.monotonicMicros());
  }

  partOf(_item: TakeItem): Part {
    return WHOLE;
  }

  shardOf(_part: Part): Shard {
    return this;
  }

  refusal(mayWait: boolean): StorageError | undefined {
    if (this.closing !== undefined) return this.refuse('disconnected', 'the store is closed');
    if (this.connection.up || (this.connection.hopeful && mayWait)) return undefined;
    return this.refuse(this.connection.downReason, `Redis ${this.options.address.redactedAddress} is away`);
  }

  takePart(take: PartTake): TakeResult | Promise<TakeResult> {
    return this.askFor(take, undefined);
  }

  private askFor(
    { part, items, deadlineMicros, connection, mayWait, wide }: PartTake,
    takenOn: unknown,
  ): TakeResult | Promise<TakeResult> {
    const refusal = this.refusal(mayWait);
    if (refusal !== undefined) return refusal;
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
    if (wide) {
      const { queue } = this.wide;
      if (!queue.hasRoomFor(items.length, connection)) return this.refuse('full', NO_ROOM);
      promise = queue.add(items, deadline, connection, now, part, takenOn);
    } else {
      if (!this.narrow.canAcquire(items.length, connection)) {
        const most = `the ${quantity(this.maxInFlight, 'limit')} that may wait for Redis (REDIS_MAX_IN_FLIGHT)`;
        return this.refuseToWait(now, `there is no room among ${most}`);
      }
      let batch = this.waiting.find(items, part, takenOn);
      if (batch === undefined) {
        batch = this.newBatch({ sinceMicros: now, part, takenOn, owner: this });
        this.waiting.add(batch);
      }
      if (this.narrow.acquire(items.length, connection)) {
        batch.noteScarce(connection, items.length);
      }
      promise = batch.add(items, deadline);
    }
    this.timer.arm(deadline, now);
    this.turns.schedule();
    return promise;
  }

  /** Counts the connections: a call on a later one may find a Redis that lacks what was done on this one. */
  get holds(): unknown {
    return this.connection.up ? this.connection.connections.opened : undefined;
  }

  async giveBackPart(take: PartTake, takenOn: unknown): Promise<GiveBackResult> {
    if (takenOn === undefined || takenOn !== this.holds) return 'skipped';
    try {
      return (await this.askFor(take, takenOn)) instanceof StorageError ? 'failed' : 'made';
    } catch {
      // Nobody waits who could be told of what is broken.
      return 'failed';
    }
  }

  /** Takes over a call that another server of the same cluster was given. */
  adopt(batch: TakeBatch): void {
    this.underWay.give(batch);
    if (batch.hasPending) this.timer.arm(batch.soonestDeadline, this.monotonicMicros());
  }

  /**
   * Hands the calls that wait for this Redis to those which have their parts now: `placeOf` names them, or says why
   * there is none.
   */
  reroute(placeOf: (part: Part) => RedisStore | StorageError): void {
    const targetOf = ({ part }: TakeBatch): ((batch: TakeBatch) => void) | StorageError | undefined => {
      const place = placeOf(part);
      if (place instanceof StorageError) return place;
      return place === this ? undefined : (batch) => place.adopt(batch);
    };
    if (!this.connection.up) {
      // They wait like those that were sent before.
      for (const batch of this.waiting.takeAll()) this.underWay.hold(batch);
    }
    this.underWay.reroute(targetOf);
  }

  /** Waits a little for what is under way; what Redis has not answered then ends as `disconnected`. */
  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  private async end(): Promise<void> {
    await this.idle.wait(CLOSE_WAIT_MS);
    const closed = new StorageError('disconnected', 'the store is closed');
    this.wide.fail(closed);
    for (const batch of [...this.underWay, ...this.waiting.takeAll()])
      this.underWay.fail(batch, closed.reason, closed.message);
    this.connection.close();
    this.timer.stop();
    this.underWay.stop();
  }

  private refuse(reason: StorageError['reason'], message: string): StorageError {
    return new StorageError(reason, message, { unsent: true });
  }

  /** Redis that answers is busy, and an error would be a way round the limit; of one that does not it is the truth. */
  private refuseToWait(nowMicros: number, message: string): StorageError {
    return this.refuse(this.underWay.load.isLively(nowMicros) ? 'full' : 'overloaded', message);
  }

  private newBatch(options: BatchOptions, keys: BatchKeys = this.keys): TakeBatch {
    return new TakeBatch(keys, this.countDeniedHits, this.time.aboutMicros, options);
  }

  private flush(): void {
    // What waits is sent when Redis comes up, or fails with the hope for that.
    if (this.connection.hopeful) return;
    this.underWay.giveHeld();
    for (const batch of this.waiting.takeAll()) {
      if (batch.hasPending) this.underWay.give(batch);
      else this.retire(batch);
    }
    this.wide.send();
  }

  /** Takes a token of a bucket that nobody uses, under a key of its own: all that calls need must work. */
  private async probeBucket(send: SendCommand, key: string | undefined, isNew: boolean): Promise<void> {
    // A Redis that wants a password first breaks off at a long command, without saying so; at a short one it does.
    await (key === undefined
      ? send('ping', [], SHORT_TEXT)
      : send('set', [key, '1', 'PX', '1000'], SHORT_TEXT));
    if (isNew) this.scripts.load(send);
    if (key === undefined) return;
    const batch = this.newBatch({ sinceMicros: this.monotonicMicros(), owner: this }, { of: () => key });
    void batch.add([PROBE], Infinity);
    batch.succeed(await this.scripts.runFirst(batch, send));
    this.time.note(batch.nowMicros);
  }

  /** Fails everything that Redis was not given. */
  private failUnsent(): void {
    const { downReason } = this.connection;
    this.wide.fail(new StorageError(downReason, 'Redis went away'));
    this.underWay.failHeld(downReason, 'Redis went away');
    for (const batch of this.waiting.takeAll()) this.underWay.fail(batch, downReason, 'Redis went away');
  }

  retire(batch: TakeBatch): void {
    if (!this.wide.retire(batch)) this.narrow.release(batch.itemCount, batch.scarce);
    this.idle.check();
  }

  private get isIdle(): boolean {
    return this.underWay.size + this.waiting.size + this.wide.items === 0;
  }

  private onConnectionUp(): void {
    this.cameUp.emit();
    this.flush();
  }

  private onTimer(): void {
    const now = this.monotonicMicros();
    const due = DeadlineTimer.dueMicros(now);
    // What waits for its turn, or was not sent yet, waits for others.
    const { queue, making } = this.wide;
    queue.expire(due, this.underWay.lateInLine(now));
    let soonest = queue.soonestDeadline;
    for (const batch of [...this.underWay, ...this.waiting, ...(making === undefined ? [] : [making])]) {
      if (!batch.hasPending) continue;
      if (batch.soonestDeadline <= due) {
        batch.expire(due, (deadline) => this.underWay.late(batch, deadline, now));
      }
      soonest = Math.min(soonest, batch.soonestDeadline);
    }
    if (soonest < Infinity) this.timer.arm(soonest, now);
    this.idle.check();
  }
}
