import { StorageError, type Take, type TakeResult } from '../../limiter/bucket-store.js';
import { MAX_TIMER_MS, systemClock } from '../../limiter/clock.js';
import { checkInvariant } from '../../runtime/invariant.js';
import type { Redis } from '../../runtime/ioredis.js';
import { Signal } from '../../runtime/signal.js';
import { plural } from '../../runtime/texts.js';
import { IdleWait, SYSTEM_TIMERS, type TimerSource } from '../../runtime/timers.js';
import { TurnScheduler } from '../../runtime/turns.js';
import type { Partition, PartitionTake, RollbackResult, Shard } from '../sharded/shard.js';
import { BatchQueue } from './batch-queue.js';
import type { ConnectionCounts, SendCommand } from './connection/connection-options.js';
import { RedisNode } from './node/redis-node.js';
import { expectSingleServer, PROBE, probeRedis } from './probe.js';
import type { RedisBackend, RedisNodeState, ScriptReply, ScriptRequest } from './redis-backend.js';
import { DEFAULT_KEY_PREFIX, RedisKeys } from './redis-key.js';
import type { RedisStoreOptions } from './redis-store-options.js';
import { slotLoad } from './repeated-request.js';
import {
  type BatchKeys,
  type BatchOptions,
  type BatchOwner,
  ONLY_PARTITION,
  ScriptBatch,
} from './script-batch.js';
import { loadTakeScript } from './take-script.js';
import { RedisTime, TakeScriptSender } from './take-script-sender.js';
import { QUERY_MS } from './with-redis.js';

/** Maximum time that `close` waits for replies, in milliseconds. */
const CLOSE_WAIT_MS = 500;

/**
 * The buckets in a single Redis, which is both the map and the only shard. All takes of one partition in one turn of
 * the event loop share one script call, and several calls may be in flight. A take never rejects and ends by its
 * deadline; see docs/operate/redis-outages.md.
 */
export class RedisStore implements RedisBackend, Shard, BatchOwner {
  readonly onlyPartition: Partition | undefined = ONLY_PARTITION;
  private readonly options: RedisStoreOptions;
  private readonly monotonicMicros: () => number;
  private readonly timeoutMicros: number;
  private readonly maxInFlight: number;
  private readonly countDeniedHits: boolean;
  private readonly keys: RedisKeys;
  private readonly scripts: TakeScriptSender;
  private readonly connection: RedisNode;
  private readonly upSignal = new Signal();
  private readonly downSignal = new Signal<string>();
  readonly onUp = this.upSignal.add;
  readonly onDown = this.downSignal.add;
  /** Takes of this turn, in calls that are not sent so far. */
  private readonly openBatches: OpenBatches;
  private readonly turns = new TurnScheduler<never>({ budget: 0, onTurn: () => this.flush() });
  private readonly inFlightCalls: BatchQueue;
  /** Number of items that wait, or were sent and not answered. */
  inFlight = 0;
  private readonly time: RedisTime;
  private readonly timer = new DeadlineTimer(() => this.onTimer());
  private readonly idle = new IdleWait(() => this.isIdle);
  private closing: Promise<void> | undefined;

  /** Connects in the background. Throws an Error if the TLS settings are invalid. */
  constructor(options: RedisStoreOptions) {
    this.options = options;
    this.monotonicMicros = options.monotonicMicros ?? (() => systemClock.monotonicMicros());
    this.timeoutMicros = options.timeoutMicros;
    this.time = new RedisTime(this.monotonicMicros, options.highestTime);
    this.scripts = new TakeScriptSender(loadTakeScript(), this.time, options.clock);
    this.maxInFlight = options.maxInFlight;
    this.openBatches = new OpenBatches(options.keysPerCall);
    this.countDeniedHits = options.countDeniedHits;
    this.keys = options.keys ?? new RedisKeys(options.keyPrefix ?? DEFAULT_KEY_PREFIX);
    this.connection = new RedisNode(options, {
      check: async (send) => {
        if (options.probeTag === undefined) await expectSingleServer(send, this.keys);
      },
      probe: (send, isNew) =>
        probeRedis(send, isNew, options.probeTag, this.keys, (key) => this.probeBucket(send, key, isNew)),
      up: () => this.onConnectionUp(),
      down: (reason) => {
        if (!this.connection.inReconnectGrace) this.failUnsent();
        this.downSignal.emit(reason);
      },
      graceExpired: () => this.failUnsent(),
    });
    this.inFlightCalls = new BatchQueue({
      connection: this.connection,
      scripts: this.scripts,
      time: this.time,
      store: options,
      monotonicMicros: this.monotonicMicros,
      onEnded: () => {
        if (this.inFlightCalls.hasHeld) this.turns.schedule();
        this.idle.check();
      },
    });
  }

  /** Whether Redis replies at the moment. */
  get connected(): boolean {
    return this.connection.up;
  }

  get isComplete(): boolean {
    return this.connected;
  }

  get nodes(): readonly [RedisNodeState] {
    const name = this.options.address.redactedAddress;
    const reason = this.connected ? undefined : this.connection.downReason;
    return [{ name, up: this.connected, reason, latencyMicros: this.inFlightCalls.latencyMicros }];
  }

  /** Number of calls sent since start. */
  get calls(): number {
    return this.inFlightCalls.calls;
  }

  /** Counts of the connections since start. */
  get connections(): ConnectionCounts {
    return this.connection.connections;
  }

  /** Runs other commands than takes on the connection. Rejects without a connection, or after some time. */
  query<T>(use: (redis: Redis) => Promise<T>): Promise<T> {
    return this.connection.query(QUERY_MS, use);
  }

  runScript(request: ScriptRequest): Promise<ScriptReply> {
    return this.connection.runScript(request, this.options.clock?.());
  }

  partitionOf(_item: Take): Partition {
    return ONLY_PARTITION;
  }

  shardOf(_partition: Partition): Shard {
    return this;
  }

  refusal(mayWait: boolean): StorageError | undefined {
    if (this.closing !== undefined) return this.refuse('disconnected', 'the store is closed');
    if (this.connection.up || (this.connection.inReconnectGrace && mayWait)) return undefined;
    return this.refuse(
      this.connection.downReason,
      `Redis ${this.options.address.redactedAddress} is unavailable`,
    );
  }

  takePartition(take: PartitionTake): TakeResult | Promise<TakeResult> {
    return this.takeOrGiveBack(take, undefined);
  }

  private takeOrGiveBack(
    { partition, items, deadlineMicros, mayWait }: PartitionTake,
    takenOn: unknown,
  ): TakeResult | Promise<TakeResult> {
    const refusal = this.refusal(mayWait);
    if (refusal !== undefined) return refusal;
    const now = this.monotonicMicros();
    // Not a Redis failure: the caller's deadline has passed.
    if (deadlineMicros <= now) return this.refuse('full', 'the deadline has passed');
    if (!mayWait) return this.refuseBusy('requests that wait for Redis use too much memory');
    const deadline = Math.min(deadlineMicros, now + this.timeoutMicros);
    const { length } = items;
    const isBulk = length > MAX_ORDINARY_ITEMS;
    const bound = isBulk ? Math.ceil(this.maxInFlight / 2) : this.maxInFlight;
    if (this.inFlight > 0 && this.inFlight + length > bound) {
      const setting = `${isBulk ? 'half of ' : ''}REDIS_MAX_IN_FLIGHT`;
      return this.refuseBusy(
        `the request exceeds the maximum of ${plural(bound, 'limit')} that may wait for Redis (${setting})`,
      );
    }
    this.inFlight += length;
    let batch = this.openBatches.find(items, partition, takenOn);
    if (batch === undefined) {
      const keys = isBulk ? this.keys.uncached : this.keys;
      batch = this.newBatch({ partition, takenOn, owner: this, isBulk }, keys);
      this.openBatches.add(batch);
    }
    const result = batch.add(items, deadline);
    this.timer.arm(deadline, now);
    this.turns.schedule();
    return result;
  }

  get connectionId(): unknown {
    return this.connection.connectionId;
  }

  async rollBackPartition(take: PartitionTake, takenOn: unknown): Promise<RollbackResult> {
    if (takenOn === undefined || takenOn !== this.connectionId) return 'skipped';
    try {
      return (await this.takeOrGiveBack(take, takenOn)) instanceof StorageError ? 'failed' : 'made';
    } catch {
      // No caller waits for the result.
      return 'failed';
    }
  }

  /** Accepts a call from another server of the same cluster. */
  adopt(batch: ScriptBatch): void {
    this.inFlightCalls.submit(batch);
    if (batch.hasPending) this.timer.arm(batch.soonestDeadline, this.monotonicMicros());
  }

  /**
   * Moves waiting calls to the stores that now have their partitions. `storeOf` returns the store, or the reason why no
   * store has the partition.
   */
  reroute(storeOf: (partition: Partition) => RedisStore | StorageError): void {
    const targetOf = ({
      partition,
    }: ScriptBatch): ((batch: ScriptBatch) => void) | StorageError | undefined => {
      const store = storeOf(partition);
      if (store instanceof StorageError) return store;
      return store === this ? undefined : (batch) => store.adopt(batch);
    };
    if (!this.connection.up) {
      // From now on, these calls wait like earlier ones.
      for (const batch of this.openBatches.takeAll()) this.inFlightCalls.hold(batch);
    }
    this.inFlightCalls.reroute(targetOf);
  }

  /** Waits briefly for the replies to sent calls. After that, the calls fail with `disconnected`. */
  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  private async end(): Promise<void> {
    await this.idle.wait(CLOSE_WAIT_MS);
    const closed = new StorageError('disconnected', 'the store is closed');
    for (const batch of [...this.inFlightCalls, ...this.openBatches.takeAll()])
      this.inFlightCalls.fail(batch, closed.reason, closed.message);
    this.connection.close();
    this.timer.stop();
  }

  private refuse(reason: StorageError['reason'], message: string): StorageError {
    return new StorageError(reason, message, { unsent: true });
  }

  /**
   * Returns `full` if Redis replies, because it is only busy. A store failure would let callers get around a limit by
   * keeping Redis busy. Otherwise returns `overloaded`.
   */
  private refuseBusy(message: string): StorageError {
    return this.refuse(this.inFlightCalls.isResponsive ? 'full' : 'overloaded', message);
  }

  private newBatch(options: BatchOptions, keys: BatchKeys): ScriptBatch {
    const { tellsTime = false } = this.options;
    return new ScriptBatch(keys, this.countDeniedHits, this.time.estimatedMicros, { ...options, tellsTime });
  }

  private flush(): void {
    // Waiting calls are sent when Redis is available, or fail when the grace ends.
    if (this.connection.inReconnectGrace) return;
    this.inFlightCalls.submitHeld();
    for (const batch of this.openBatches.takeAll()) {
      if (batch.hasPending) this.inFlightCalls.submit(batch);
      else this.retire(batch);
    }
  }

  /**
   * Takes a token from an unused bucket with a separate key, which tests all commands and permissions that calls need.
   */
  private async probeBucket(send: SendCommand, key: string | undefined, isNew: boolean): Promise<void> {
    // A Redis that requires a password may close the connection after a long command, without an error. It replies to a
    // short command.
    await (key === undefined ? send('ping', []) : send('set', [key, '1', 'PX', '1000']));
    if (isNew) this.scripts.load(send);
    if (key === undefined) return;
    const batch = this.newBatch({ owner: this }, { of: () => key, ofHolds: () => key });
    void batch.add([PROBE], Infinity);
    batch.succeed(await this.scripts.runProbe(batch, send));
    this.time.note(batch.nowMicros);
  }

  /** Fails all calls that were not sent. */
  private failUnsent(): void {
    const { downReason } = this.connection;
    this.inFlightCalls.failHeld(downReason, 'Redis became unavailable');
    for (const batch of this.openBatches.takeAll())
      this.inFlightCalls.fail(batch, downReason, 'Redis became unavailable');
  }

  retire(batch: ScriptBatch): void {
    this.inFlight -= batch.itemCount;
    checkInvariant(this.inFlight >= 0, 'the number of items in flight is never negative');
    this.idle.check();
  }

  private get isIdle(): boolean {
    return this.inFlightCalls.size + this.openBatches.size === 0;
  }

  private onConnectionUp(): void {
    this.upSignal.emit();
    this.flush();
  }

  private onTimer(): void {
    const now = this.monotonicMicros();
    const due = DeadlineTimer.dueMicros(now);
    let soonest = this.inFlightCalls.checkSilence(due);
    for (const batch of [...this.inFlightCalls, ...this.openBatches]) {
      if (!batch.hasPending) continue;
      if (batch.soonestDeadline <= due) batch.expire(due, this.inFlightCalls.timeoutError(batch));
      soonest = Math.min(soonest, batch.soonestDeadline);
    }
    if (soonest < Infinity) this.timer.arm(soonest, now);
    this.idle.check();
  }
}

/** Timers have a resolution of 1 ms. Waits are shortened by this much, so that no result is later than its deadline. */
const SLACK_MICROS = 1000;

/** One timer for all waiting requests, set to the earliest deadline. */
export class DeadlineTimer {
  readonly #onDue: () => void;
  readonly #timers: Omit<TimerSource, 'nowMs'>;
  #timer: unknown;
  #atMicros = Infinity;

  /** `onDue` is called once each time the timer fires. */
  constructor(onDue: () => void, timers: Omit<TimerSource, 'nowMs'> = SYSTEM_TIMERS) {
    this.#onDue = onDue;
    this.#timers = timers;
  }

  /** Returns the latest deadline that is due at `nowMicros`. */
  static dueMicros(nowMicros: number): number {
    return nowMicros + SLACK_MICROS;
  }

  /**
   * Sets the timer to a deadline, unless it fires earlier anyway. For a deadline beyond the longest possible timer, it
   * fires early.
   */
  arm(deadlineMicros: number, nowMicros: number): void {
    if (deadlineMicros >= this.#atMicros) return;
    this.#timers.clear(this.#timer);
    this.#atMicros = deadlineMicros;
    const wait = Math.max(1, Math.floor((deadlineMicros - SLACK_MICROS - nowMicros) / 1000));
    // A busy process runs its timers before it reads replies that have arrived in the meantime. One turn is the limit:
    // the transport ends calls one turn later.
    const fire = (): void => this.#timers.nextTurn(() => this.#fire());
    this.#timer = this.#timers.set(fire, Math.min(wait, MAX_TIMER_MS));
  }

  stop(): void {
    this.#timers.clear(this.#timer);
  }

  #fire(): void {
    this.#atMicros = Infinity;
    this.#onDue();
  }
}

/** Maximum number of items of an ordinary request. A request with more is a *bulk request*. */
export const MAX_ORDINARY_ITEMS = 16;

/** Maximum number of takes in one call, unless a single request has more. Each take blocks Redis for 4 to 6 µs. */
export const MAX_TAKES_PER_CALL = 1000;

/**
 * The calls of the current turn of the event loop, to which requests are added. Bulk requests have separate calls,
 * which may have to wait ({@link BatchQueue}).
 */
class OpenBatches {
  readonly #keysPerCall: number;
  #batches: ScriptBatch[] = [];
  /**
   * The latest call for each partition, by {@link kindOf}. Each turn that needs them creates new maps, because a
   * cleared Map keeps its tables alive, see LinkedList.
   */
  #latest: (Map<Partition, ScriptBatch> | undefined)[] = [];

  /** `keysPerCall`: REDIS_BATCH_KEYS. */
  constructor(keysPerCall: number) {
    this.#keysPerCall = keysPerCall;
  }

  get size(): number {
    return this.#batches.length;
  }

  [Symbol.iterator](): Iterator<ScriptBatch> {
    return this.#batches.values();
  }

  /** Returns the call to which a request can be added, or undefined if it needs a new call. */
  find(takes: readonly Take[], partition: Partition, takenOn: unknown): ScriptBatch | undefined {
    const kind = kindOf(takes.length > MAX_ORDINARY_ITEMS, takenOn !== undefined);
    const last = this.#latest[kind]?.get(partition);
    if (last === undefined || last.takenOn !== takenOn) return undefined;
    const { load, itemCount } = last;
    const { length } = takes;
    if (load + length + slotLoad(takes) > this.#keysPerCall) return undefined;
    return itemCount + length > MAX_TAKES_PER_CALL ? undefined : last;
  }

  add(batch: ScriptBatch): void {
    this.#batches.push(batch);
    const kind = kindOf(batch.isBulk, batch.isGiveBack);
    this.#latest[kind] ??= new Map();
    this.#latest[kind].set(batch.partition, batch);
  }

  /** Removes and returns all calls. No request is added to them afterwards. */
  takeAll(): ScriptBatch[] {
    const batches = this.#batches;
    this.#batches = [];
    this.#latest = [];
    return batches;
  }
}

/** From 0 to 3. Requests of different kinds are never in one call. */
function kindOf(isBulk: boolean, isGiveBack: boolean): number {
  return (isBulk ? 1 : 0) + (isGiveBack ? 2 : 0);
}
