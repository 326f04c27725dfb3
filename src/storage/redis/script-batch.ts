import type { StorageError, Take, TakeOutcome, TakeResult } from '../../limiter/bucket-store.js';
import { freesExpired } from '../../limiter/holds/hold.js';
import { append } from '../../runtime/append.js';
import { checkInvariant } from '../../runtime/invariant.js';
import type { Linked, LinkedList } from '../../runtime/linked-list.js';
import type { Partition, Shard } from '../sharded/shard.js';
import { UnknownReplyError } from './connection/redis-error.js';
import type { RedisKeys } from './redis-key.js';
import { RepeatedRequest, slotLoad } from './repeated-request.js';
import { type BucketSlot, mayRun, RepeatedTake, type RunItem } from './repeated-take.js';
import { encodeHold, MAX_ENCODED, TakeArgumentTable } from './take-script.js';

/** Cost of each further request in a run, relative to one bucket. */
const RUN_LOAD = 1 / 32;
/**
 * Cost of each further item in a group, relative to one bucket. Redis decides each request separately if they are
 * charges, or if they are denied and counted by windows.
 */
const GROUP_LOAD = 1 / 4;

/** A request that waits for its outcomes. */
export interface WaitingTake {
  readonly items: readonly Take[];
  readonly deadlineMicros: number;
  resolve(result: TakeResult): void;
}

interface PendingTake {
  readonly items: readonly Take[];
  readonly deadlineMicros: number;
  readonly step: RepeatedTake | RepeatedRequest;
  resolve: ((result: TakeResult) => void) | undefined;
}

/** The partition of a store that decides all buckets in one call. */
export const ONLY_PARTITION: Partition = 0;

/** The creator of a call, which is notified of its end. */
export interface BatchOwner {
  /** Called when a call has ended, whichever store ended it. */
  retire(batch: ScriptBatch): void;
}

/** The properties of a call before its first request is added. */
export interface BatchOptions {
  /** Partition of all its buckets; default {@link ONLY_PARTITION}. */
  readonly partition?: Partition;
  /**
   * For refunds, the {@link Shard.connectionId} of the take. The refunds are sent on that connection or not at all.
   * Undefined for a call without such refunds.
   */
  readonly takenOn?: unknown;
  readonly owner?: BatchOwner;
  /** Whether it is for bulk requests, see `OpenBatches` in redis-store.ts; default false. */
  readonly isBulk?: boolean;
  /** Whether outcomes tell when Redis decided; default false. */
  readonly tellsTime?: boolean;
}

/**
 * The requests of one script call, and the promises of their callers. The outcomes are those of deciding the requests
 * in the order of their arrival. Equal requests share a {@link RepeatedTake} or a {@link RepeatedRequest}.
 */
export class ScriptBatch implements Linked<ScriptBatch> {
  itemCount = 0;
  /** Approximate work for Redis, as a number of bucket reads. Many hits on one bucket may count as one. */
  load = 0;
  readonly partition: Partition;
  readonly takenOn: unknown;
  readonly owner: BatchOwner | undefined;
  readonly isBulk: boolean;
  private readonly tellsTime: boolean;
  /** Number of times that a server of a Redis Cluster redirected it. */
  redirections = 0;
  /** Whether it must be sent after ASKING (Redis Cluster specification, "ASK redirection"). */
  asking = false;
  /** When it was sent, on the clock of deadlines; 0 before. */
  sentMicros = 0;
  /** Redis's time in the reply. */
  nowMicros = 0;
  /** Links of the list that contains it. */
  list: LinkedList<ScriptBatch> | undefined;
  before: ScriptBatch | undefined;
  after: ScriptBatch | undefined;
  /** Number of times that it was sent. */
  sendCount = 0;
  /** Earliest deadline of the waiting takes; Infinity without any. */
  soonestDeadline = Infinity;
  private takes: PendingTake[] = [];
  private readonly buckets: CallBuckets;
  private steps: (RepeatedTake | RepeatedRequest)[] = [];
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
    { partition = ONLY_PARTITION, takenOn, owner, isBulk = false, tellsTime = false }: BatchOptions = {},
  ) {
    this.partition = partition;
    this.takenOn = takenOn;
    this.owner = owner;
    this.isBulk = isBulk;
    this.tellsTime = tellsTime;
    this.arguments = new TakeArgumentTable(wallMicros);
    this.buckets = new CallBuckets(names);
    this.countDeniedHits = countDeniedHits;
  }

  /** Whether it gives back hits of requests that another partition denied. */
  get isGiveBack(): boolean {
    return this.takenOn !== undefined;
  }

  get takeCount(): number {
    return this.takes.length;
  }

  /** Whether any caller is still waiting. */
  get hasPending(): boolean {
    return this.pending > 0;
  }

  /** Adds a request. The promise settles through {@link succeed}, {@link fail} or {@link expire}. */
  add(takes: readonly Take[], deadlineMicros: number): Promise<TakeResult> {
    const first = takes[0] as Take;
    return new Promise((resolve) => {
      if (takes.length === 1 && mayRun(first))
        this.addPending(takes, deadlineMicros, this.addRun(first), resolve);
      else if (!this.joinGroup(takes, deadlineMicros, resolve)) this.addGroup(takes, deadlineMicros, resolve);
    });
  }

  /**
   * Returns the arguments of EVALSHA: name of the script, number of keys, keys, ARGV. `call` is the number of the
   * call, `now` is the given time or '', `seen` the latest time seen from this Redis, and `highest` the latest time
   * before any step back, in microseconds; see take.lua.
   */
  command(script: string, call: number, now: string, seen: number, highest: number): string[] {
    const { keys } = this.buckets;
    const args = [script, String(keys.length)];
    for (const key of keys) args.push(key);
    args.push(
      String(call),
      now,
      String(seen),
      String(highest),
      this.countDeniedHits ? '1' : '0',
      this.encodeSteps(),
    );
    this.arguments.encode(args);
    return args;
  }

  /**
   * Returns Redis's time if the reply contains only the time. In that case, the sent calendar windows do not contain
   * the time, and {@link command} must be sent again.
   */
  timeOnlyReply(reply: readonly number[]): number | undefined {
    return reply.length === 1 ? reply[0] : undefined;
  }

  /** Settles the requests with the outcomes of a reply. Throws UnknownReplyError if the reply does not match. */
  succeed(values: readonly number[]): void {
    const time = this.timeOnlyReply(values);
    if (time !== undefined && !this.hasPending) {
      this.nowMicros = time;
      return;
    }
    if (values.length !== this.replyLength) throw new UnknownReplyError();
    const nowMicros = values[0] as number;
    if (nowMicros < 0) throw new UnknownReplyError();
    this.nowMicros = nowMicros;
    let at = 1;
    // The steps are in the order of their first requests.
    for (const take of this.takes) {
      const { step, items } = take;
      if (!step.started) at = step.start(values, at, nowMicros);
      const result =
        step instanceof RepeatedRequest
          ? step.next(items, nowMicros)
          : [step.next(items[0] as RunItem, nowMicros)];
      if (take.resolve === undefined) continue;
      if (this.tellsTime) (result[0] as TakeOutcome).decidedMicros = nowMicros;
      this.settle(take, result);
    }
  }

  /** Settles all waiting requests with `error`. */
  fail(error: StorageError): void {
    this.expire(Infinity, error);
  }

  /** Settles the requests whose deadline is at `nowMicros` or before with `error`. */
  expire(nowMicros: number, error: StorageError): void {
    this.soonestDeadline = Infinity;
    for (const take of this.takes) {
      if (take.resolve === undefined) continue;
      if (take.deadlineMicros <= nowMicros) {
        this.settle(take, error);
      } else {
        this.soonestDeadline = Math.min(this.soonestDeadline, take.deadlineMicros);
      }
    }
  }

  /** Removes and returns the waiting requests, to send them in other calls. Redis must not have executed this call. */
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

  /** Adds a request to the latest group of its first bucket. Returns false if the group does not accept it. */
  private joinGroup(
    takes: readonly Take[],
    deadlineMicros: number,
    resolve: (result: TakeResult) => void,
  ): boolean {
    const { last } = this.buckets.slotOf(takes[0] as Take);
    if (!(last instanceof RepeatedRequest) || last.count >= MAX_ENCODED || !last.accepts(takes)) return false;
    last.addRequest(takes);
    this.load += GROUP_LOAD * takes.length + slotLoad(takes);
    this.addPending(takes, deadlineMicros, last, resolve);
    return true;
  }

  private addRun(item: RunItem): RepeatedTake {
    const slot = this.buckets.slotOf(item);
    const { last: open } = slot;
    const { count = 1 } = item;
    if (open instanceof RepeatedTake && open.accepts(item) && open.count + count <= MAX_ENCODED) {
      open.count += count;
      this.load += RUN_LOAD;
      return open;
    }
    // The enforcement of a single item does not affect the bucket.
    const ask = this.arguments.indexOf(item, 'enforce');
    const run = new RepeatedTake(item, slot, ask, this.countDeniedHits);
    run.count = count;
    setLastStep(slot, run);
    this.steps = append(this.steps, run);
    this.load++;
    return run;
  }

  private addGroup(
    takes: readonly Take[],
    deadlineMicros: number,
    resolve: (result: TakeResult) => void,
  ): void {
    const group = new RepeatedRequest(takes, this.countDeniedHits);
    if (takes.length === 1) group.slot = this.buckets.slotOf(takes[0] as Take);
    this.steps = append(this.steps, group);
    this.load += takes.length + slotLoad(takes);
    this.addPending(takes, deadlineMicros, group, resolve);
    for (const take of takes) {
      const slot = this.buckets.slotOf(take);
      setLastStep(slot, group);
      const index = this.arguments.indexOf(take);
      const hold = encodeHold(take);
      if (hold === undefined) group.addItem(slot.index, index);
      else group.addHoldItem(slot.index, index, this.buckets.indexOfHolds(take, slot), hold);
    }
  }

  private addPending(
    takes: readonly Take[],
    deadlineMicros: number,
    step: RepeatedTake | RepeatedRequest,
    resolve: (result: TakeResult) => void,
  ): void {
    this.itemCount += takes.length;
    this.pending++;
    if (deadlineMicros < this.soonestDeadline) this.soonestDeadline = deadlineMicros;
    this.takes = append(this.takes, { items: takes, deadlineMicros, step, resolve });
  }

  private encodeSteps(): string {
    let text = '';
    for (const step of this.steps) text += step.encoded;
    return text;
  }

  /** Number of integers in the reply. */
  get replyLength(): number {
    let length = 1;
    for (const step of this.steps) length += step.replyLength;
    return length;
  }

  /** Settles a request. With an undefined result, another call settles the promise. */
  private settle(take: PendingTake, result: TakeResult | undefined): void {
    const { resolve } = take;
    checkInvariant(resolve !== undefined && this.pending > 0, 'a request has only one result');
    take.resolve = undefined;
    this.pending--;
    if (result !== undefined) resolve?.(result);
  }
}

/** Records `step` as the latest step of a bucket. A previous group then accepts no further requests. */
function setLastStep(slot: BucketSlot, step: RepeatedTake | RepeatedRequest): void {
  const { last } = slot;
  if (last instanceof RepeatedRequest && last !== step) last.open = false;
  slot.last = step;
  slot.steps++;
}

export type BatchKeys = Pick<RedisKeys, 'of' | 'ofHolds'>;

/** The buckets of one script call, and the sets of their holds. */
class CallBuckets {
  /** The keys of buckets and sets, in the order of their indexes. */
  keys: string[] = [];
  private readonly names: BatchKeys;
  /** The first bucket, and a map of all buckets once there are several. */
  private firstKey = '';
  private firstSlot: BucketSlot | undefined;
  private slots: Map<string, BucketSlot> | undefined;
  /** The key and the result of the latest lookup. */
  private lastKey = '';
  private lastSlot: BucketSlot | undefined;

  constructor(names: BatchKeys) {
    this.names = names;
  }

  /**
   * Returns a bucket of the call. Caches the latest lookup, because a call looks up the same key several times. The
   * lookup costs more than adding a take.
   */
  find(key: string): BucketSlot | undefined {
    if (key === this.lastKey) return this.lastSlot;
    this.lastKey = key;
    this.lastSlot = this.slots === undefined && key === this.firstKey ? this.firstSlot : this.slots?.get(key);
    return this.lastSlot;
  }

  /** Returns the bucket of an item, which is added if it is missing. */
  slotOf(take: Take): BucketSlot {
    const { key } = take;
    let slot = this.find(key);
    if (slot !== undefined) return slot;
    this.keys = append(this.keys, this.names.of(take));
    slot = { index: this.keys.length, last: undefined, steps: 0, reserved: 0, freed: 0 };
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

  /** Returns the index of the set of an item's holds. The bucket of a limit on concurrent requests is such a set. */
  indexOfHolds(take: Take, slot: BucketSlot): number {
    if (take.rate.kind === 'concurrency') return slot.index;
    const frees = freesExpired(take);
    const name = frees ? 'freed' : 'reserved';
    if (slot[name] === 0) {
      this.keys = append(this.keys, this.names.ofHolds(take, frees));
      slot[name] = this.keys.length;
    }
    return slot[name];
  }
}
