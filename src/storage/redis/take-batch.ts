import { expectState } from '../../invariant.js';
import type { StorageError, TakeItem, TakeResult } from '../../limiter/bucket-store.js';
import type { Linked, LinkedList } from '../../runtime/linked-list.js';
import { runToCompletion } from '../../runtime/turns.js';
import type { Partition, Shard } from '../sharded/shard.js';
import { UnknownReplyError } from './connection/redis-error.js';
import type { RedisKeys } from './redis-key.js';
import { TakeGroup } from './take-group.js';
import { type BucketSlot, depthOf, mayRun, TakeRun } from './take-run.js';
import { appended, encodeNumber, MAX_ENCODED, TakeArgumentTable } from './take-script.js';

/** Work that one more request of a run is to Redis, where a bucket is 1. */
const RUN_LOAD = 1 / 32;
/**
 * As much of one more item of a group: Redis decides each one anew if they are charges, or denied and counted by
 * windows or candidates.
 */
const GROUP_LOAD = 1 / 4;

/** Items of a request that are taken in at a stretch: half a millisecond, most of which makes the digests of keys. */
const ITEMS_PER_SLICE = 256;

/** A request that waits for its outcomes. */
export interface WaitingTake {
  readonly items: readonly TakeItem[];
  readonly deadlineMicros: number;
  resolve(result: TakeResult): void;
}

interface PendingTake {
  readonly items: readonly TakeItem[];
  readonly deadlineMicros: number;
  readonly step: TakeRun | TakeGroup;
  resolve: ((result: TakeResult) => void) | undefined;
}

/** Where all buckets may be decided in one call. */
export const ONLY_PARTITION: Partition = 0;

/** Who made a call, and hears of its end. */
export interface BatchOwner {
  /** Nothing more will come of it, whoever had it last. */
  retire(batch: TakeBatch): void;
}

/** Names the keys of buckets. */
export type BatchKeys = Pick<RedisKeys, 'of'>;

/** What is known of a call before the first request is in it. */
export interface BatchOptions {
  /** When it is made, on the clock of deadlines. */
  readonly sinceMicros: number;
  /** What all its buckets have in common; default {@link ONLY_PARTITION}. */
  readonly partition?: Partition;
  /**
   * What {@link Shard.connectionEpoch} was when that was taken which it gives back: on that very connection it is done,
   * or not at all. Undefined: it gives nothing back.
   */
  readonly takenEpoch?: unknown;
  readonly owner?: BatchOwner;
}

/**
 * The requests of one script call, and the promises their callers hold. Requests are decided as if in the order in
 * which they came; equal ones travel as a {@link TakeRun} or a {@link TakeGroup}.
 */
export class TakeBatch implements Linked<TakeBatch> {
  itemCount = 0;
  /** Buckets that Redis will look at, about; a bucket may be hit often for one. */
  load = 0;
  /** When the first request was added, on the clock of deadlines. */
  readonly sinceMicros: number;
  readonly partition: Partition;
  readonly takenEpoch: unknown;
  readonly owner: BatchOwner | undefined;
  /** How often a server of a Redis Cluster named another one for it. */
  redirections = 0;
  /** Whether that server takes it only behind ASKING (Redis Cluster specification, "ASK redirection"). */
  asking = false;
  /** When it was sent, on the same clock; 0 before. */
  sentMicros = 0;
  /** When Redis is expected to have done it, 0 before it was sent; see {@link RedisLoad}. */
  dueMicros = 0;
  /** What Redis had done for other processes when it was sent, by the same. */
  otherWorkMicros = 0;
  /** Items of connections that hold a part of the room that is scarce, undefined for none; see {@link FairCapacity}. */
  scarceItems: Map<unknown, number> | undefined;
  /** Redis's time in the answer. */
  nowMicros = 0;
  /** Its place among others. */
  list: LinkedList<TakeBatch> | undefined;
  before: TakeBatch | undefined;
  after: TakeBatch | undefined;
  /** How often it was sent. */
  sendCount = 0;
  /** Whether a request gives hits back: what Redis did twice would let too much through then. */
  hasRefund = false;
  /** Soonest deadline of a take that still waits, Infinity when none does. */
  soonestDeadline = Infinity;
  private takes: PendingTake[] = [];
  private readonly names: BatchKeys;
  private keys: string[] = [];
  /** The first bucket, and all of them once there are several. */
  private firstKey = '';
  private firstSlot: BucketSlot | undefined;
  private slots: Map<string, BucketSlot> | undefined;
  /** The key that was looked for last, and what was found. */
  private lastKey = '';
  private lastSlot: BucketSlot | undefined;
  private steps: (TakeRun | TakeGroup)[] = [];
  private readonly arguments: TakeArgumentTable;
  private readonly countDeniedHits: boolean;
  private pending = 0;

  /**
   * `countDeniedHits`: whether windows count the hits of denied requests. `wallMicros`: see {@link TakeArgumentTable}.
   */
  constructor(
    names: BatchKeys,
    countDeniedHits: boolean,
    wallMicros: () => number,
    { sinceMicros, partition = ONLY_PARTITION, takenEpoch, owner }: BatchOptions,
  ) {
    this.sinceMicros = sinceMicros;
    this.partition = partition;
    this.takenEpoch = takenEpoch;
    this.owner = owner;
    this.arguments = new TakeArgumentTable(wallMicros);
    this.names = names;
    this.countDeniedHits = countDeniedHits;
  }

  /** Whether it gives back what requests took that were denied elsewhere. */
  get isGiveBack(): boolean {
    return this.takenEpoch !== undefined;
  }

  /** Notes so many items of a connection as {@link scarceItems}. */
  noteScarce(connection: unknown, items: number): void {
    this.scarceItems ??= new Map();
    this.scarceItems.set(connection, (this.scarceItems.get(connection) ?? 0) + items);
  }

  get takeCount(): number {
    return this.takes.length;
  }

  /** Whether anybody still waits. */
  get hasPending(): boolean {
    return this.pending > 0;
  }

  /**
   * Whether the request asks nothing of a bucket that the call asks for with another depth: requests decided by the
   * policy before a change and by the one after it. The script reads one level of a bucket in a call.
   */
  accepts(items: readonly TakeItem[]): boolean {
    for (let i = 0; i < items.length; i++) {
      const { key, rate } = items[i] as TakeItem;
      const slot = this.knownSlot(key);
      if (slot !== undefined && slot.depth !== depthOf(rate)) return false;
    }
    return true;
  }

  /**
   * Adds a request that {@link accepts}; the promise is settled by one of {@link succeed}, {@link fail} and
   * {@link expire}.
   */
  add(items: readonly TakeItem[], deadlineMicros: number): Promise<TakeResult> {
    const first = items[0] as TakeItem;
    return new Promise((resolve) => {
      if (items.length === 1 && mayRun(first))
        this.addPending(items, deadlineMicros, this.addRun(first), resolve);
      else runToCompletion(this.addInSlices(items, deadlineMicros, resolve));
    });
  }

  /**
   * {@link add}, half a millisecond of it at a time, for somebody who has the promise already. The call must not be
   * sent before the end, and may be failed or expired meanwhile: then the rest is left out.
   */
  *addInSlices(
    items: readonly TakeItem[],
    deadlineMicros: number,
    resolve: (result: TakeResult) => void,
  ): Generator<void, void> {
    const { last } = this.slotOf(items[0] as TakeItem);
    if (last instanceof TakeGroup && last.accepts(items) && last.count < MAX_ENCODED) {
      last.count++;
      this.load += GROUP_LOAD * items.length;
      this.addPending(items, deadlineMicros, last, resolve);
      return;
    }
    const indexes: number[] = [];
    const group = new TakeGroup(items, indexes, this.countDeniedHits);
    this.steps = appended(this.steps, group);
    this.load += items.length;
    this.addPending(items, deadlineMicros, group, resolve);
    for (let i = 0; i < items.length; i++) {
      const { rate, hits, refund, enforcement, undoMark, allowSurplus } = items[i] as TakeItem;
      if (refund) this.hasRefund = true;
      const slot = this.slotOf(items[i] as TakeItem);
      setLastStep(slot, group);
      indexes.push(
        slot.index,
        this.arguments.indexOf(rate, hits, refund, enforcement, undoMark, allowSurplus),
      );
      if ((i + 1) % ITEMS_PER_SLICE === 0) {
        yield;
        if (!this.hasPending) return;
      }
    }
  }

  /**
   * The arguments of EVALSHA: the script's name, number of keys, keys, ARGV. `now` is the time given, or '', `seen` the
   * latest time seen from this Redis, in microseconds. See take.lua.
   */
  command(script: string, now: string, seen: number): string[] {
    const { keys } = this;
    const args = [script, String(keys.length)];
    for (const key of keys) args.push(key);
    args.push(now, String(seen), this.countDeniedHits ? '1' : '0', this.encodeSteps());
    this.arguments.encode(args);
    return args;
  }

  /**
   * The time of this Redis, where the script says no more: no window that was sent holds it, and {@link command} must
   * be sent anew.
   */
  timeOnlyReply(reply: unknown): number | undefined {
    return Array.isArray(reply) && reply.length === 1 && typeof reply[0] === 'number' ? reply[0] : undefined;
  }

  /** Hands out the answer. Throws UnknownReplyError. */
  succeed(reply: unknown): void {
    const time = this.timeOnlyReply(reply);
    if (time !== undefined && !this.hasPending) {
      this.nowMicros = time;
      return;
    }
    if (!Array.isArray(reply) || reply.length !== this.replyLength) throw new UnknownReplyError();
    // The reader of the connection knows no arrays of anything else.
    const values = reply as readonly number[];
    const nowMicros = values[0] as number;
    if (nowMicros < 0) throw new UnknownReplyError();
    this.nowMicros = nowMicros;
    let at = 1;
    // The steps stand in the order of their first requests.
    for (const take of this.takes) {
      const { step, items } = take;
      if (!step.started) at = step.start(values, at, nowMicros);
      const result =
        step instanceof TakeGroup ? step.next(nowMicros) : [step.next(items[0] as TakeItem, nowMicros)];
      if (take.resolve !== undefined) this.settle(take, result);
    }
  }

  /** Gives `error` to all who still wait. */
  fail(error: StorageError): void {
    this.expire(Infinity, () => error);
  }

  /** Gives the error that `errorOf` finds for a deadline to those whose deadline is at `nowMicros` or before. */
  expire(nowMicros: number, errorOf: (deadlineMicros: number) => StorageError): void {
    this.soonestDeadline = Infinity;
    for (const take of this.takes) {
      if (take.resolve === undefined) continue;
      if (take.deadlineMicros <= nowMicros) {
        this.settle(take, errorOf(take.deadlineMicros));
      } else {
        this.soonestDeadline = Math.min(this.soonestDeadline, take.deadlineMicros);
      }
    }
  }

  /** Takes out those who still wait, to be asked for in other calls; nothing of this one was done. */
  detachPending(): WaitingTake[] {
    const waiting: WaitingTake[] = [];
    for (const take of this.takes) {
      const { items, deadlineMicros, resolve } = take;
      if (resolve === undefined) continue;
      this.settle(take, undefined);
      waiting.push({ items, deadlineMicros, resolve });
    }
    return waiting;
  }

  private addRun(item: TakeItem): TakeRun {
    const slot = this.slotOf(item);
    const open = slot.last;
    if (open instanceof TakeRun && open.accepts(item) && open.count < MAX_ENCODED) {
      open.count++;
      this.load += RUN_LOAD;
      return open;
    }
    // How a single item weighs in its request makes no difference to the bucket.
    const ask = this.arguments.indexOf(item.rate, item.hits, false, 'enforce');
    const run = new TakeRun(item, slot, ask, this.countDeniedHits);
    setLastStep(slot, run);
    this.steps = appended(this.steps, run);
    this.load++;
    return run;
  }

  private addPending(
    items: readonly TakeItem[],
    deadlineMicros: number,
    step: TakeRun | TakeGroup,
    resolve: (result: TakeResult) => void,
  ): void {
    this.itemCount += items.length;
    this.pending++;
    if (deadlineMicros < this.soonestDeadline) this.soonestDeadline = deadlineMicros;
    this.takes = appended(this.takes, { items, deadlineMicros, step, resolve });
  }

  private slotOf(item: TakeItem): BucketSlot {
    const { key, rate } = item;
    let slot = this.knownSlot(key);
    if (slot !== undefined) return slot;
    this.keys = appended(this.keys, this.names.of(item));
    slot = { index: this.keys.length, last: undefined, steps: 0, depth: depthOf(rate) };
    this.lastSlot = slot;
    if (this.firstSlot === undefined) {
      this.firstKey = key;
      this.firstSlot = slot;
    } else {
      this.slots ??= new Map([[this.firstKey, this.firstSlot]]);
      this.slots.set(key, slot);
    }
    return slot;
  }

  /** Looked for twice in a row, by {@link accepts} and {@link add}: finding a key costs more than adding its take. */
  private knownSlot(key: string): BucketSlot | undefined {
    if (key === this.lastKey) return this.lastSlot;
    this.lastKey = key;
    this.lastSlot = this.slots === undefined && key === this.firstKey ? this.firstSlot : this.slots?.get(key);
    return this.lastSlot;
  }

  private encodeSteps(): string {
    let text = '';
    for (const step of this.steps) {
      if (step instanceof TakeRun) {
        text +=
          encodeNumber(step.slot.index) + encodeNumber(step.argumentIndex) + encodeNumber(step.encodedCount);
        continue;
      }
      const { indexes } = step;
      text += ZERO + encodeNumber(indexes.length / 2) + encodeNumber(step.count);
      for (const index of indexes) text += encodeNumber(index);
    }
    return text;
  }

  /** Integers in the answer. */
  get replyLength(): number {
    let length = 1;
    for (const step of this.steps) length += step.replyLength;
    return length;
  }

  /** Undefined: somebody else answers it. */
  private settle(take: PendingTake, result: TakeResult | undefined): void {
    const { resolve } = take;
    expectState(resolve !== undefined && this.pending > 0, 'a request is answered once');
    take.resolve = undefined;
    this.pending--;
    if (result !== undefined) resolve?.(result);
  }
}

const ZERO = encodeNumber(0);

/** `step` asks something of a bucket: what came before on it is closed. */
function setLastStep(slot: BucketSlot, step: TakeRun | TakeGroup): void {
  const { last } = slot;
  if (last instanceof TakeGroup && last !== step) last.open = false;
  slot.last = step;
  slot.steps++;
}
