import { StorageError, type TakeResult } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { HoldId } from '../../limiter/holds/hold.js';
import { FairCapacity } from '../../runtime/fair-capacity.js';
import { BackOff, IdleWait } from '../../runtime/timers.js';
import type { HoldSettlement } from './hold-settlement.js';

/**
 * Maximum memory of the settlements that are in flight or wait, in bytes, without the memory of their calls. There are
 * three kinds of settlements: own settlements, whose tokens this process or a sibling has created, settlements of
 * requests whose start the store has not answered, and all others. The last two kinds have the same maximum. Further
 * settlements are lost, and their holds expire. {@link FairCapacity} describes the share of one connection.
 *
 * The three kinds do not share memory, because each kind is easier to produce than the one before. A token needs a hold
 * that a limit has allowed, an unanswered start needs only a store that hangs, and anyone can invent a token.
 */
export const MAX_OWN_BYTES = 16 * 1024 * 1024;
export const MAX_OTHER_BYTES = 8 * 1024 * 1024;
/**
 * Maximum memory of the calls for settlements in flight, in bytes, for each of the three kinds. Further settlements
 * wait, because a waiting settlement needs a tenth of the memory of a call. The servers of a cluster share this memory
 * fairly.
 */
export const MAX_CALL_BYTES = 8 * 1024 * 1024;
/**
 * Maximum memory of a waiting settlement, without the name of its bucket. Measured: 17,000 to 33,500 settlements with
 * names of about 60 bytes need 270 to 355 bytes each.
 */
const END_BYTES = 336;
/**
 * Memory of the call for a settlement in flight, without names: its promises, the call and the command. In a cluster,
 * nearly every settlement is sent in its own call.
 */
const CALL_BYTES = 3584;
/** Copies of the name of a bucket in a call and its command. */
const NAMES_IN_CALL = 3;
/** Memory of a customer's rate. Settlements refer to such a rate if the numbers of their window come from a plan. */
const PLANNED_BYTES = 224;
/** Maximum work of the settlements that a queue sends after one pause. A single settlement may be more work. */
const MAX_WORK_AFTER_PAUSE = 256;
/** Maximum number of settlements with too much work that later settlements can overtake after one pause. */
const MAX_PASSED = 256;
/**
 * Pauses between deferred settlements, and between failed settlements, in milliseconds. While the store answers the
 * settlements that are sent again, failed settlements are also sent after the short pause.
 */
const DEFERRED_PAUSE_MS = 10;
const FAILED_PAUSES = { initialMs: 100, maxMs: 5000 };

/**
 * Returns whether a failed settlement may be sent again. If it settles the oldest hold of a bucket and the store may
 * have executed it, sending it again could settle another hold.
 */
function mayRepeat({ id }: HoldSettlement, { unsent }: StorageError): boolean {
  return id !== undefined || unsent;
}

/**
 * The result of a settlement: the store's answer, `waiting` if the settlement will be sent again, or the reason why it
 * was given up. `repeated`: another settlement of the same hold is waiting.
 */
export type SettlementResult = TakeResult | 'waiting' | 'lost' | 'repeated';

/** Memory of the three kinds of settlements; see {@link MAX_OWN_BYTES}. */
class RecentSettlements {
  readonly own: FairCapacity;
  readonly #unanswered: FairCapacity;
  readonly #others: FairCapacity;

  constructor(ownBytes: number, otherBytes: number) {
    this.own = new FairCapacity(ownBytes);
    this.#unanswered = new FairCapacity(otherBytes);
    this.#others = new FairCapacity(otherBytes);
  }

  /**
   * Returns the budget that the memory of a settlement is charged to. Checks the mark of the token only while other
   * settlements use at least half of their memory, because computing the hash costs as much as everything else.
   */
  of({ cause, source }: HoldSettlement): FairCapacity {
    if (cause === 'unanswered') return this.#unanswered;
    return this.#others.isContended && source.isAuthentic() ? this.own : this.#others;
  }
}

/** Waiting settlements, in the order in which they are sent. */
class LateQueue {
  readonly #own = new Set<HoldSettlement>();
  readonly #unanswered = new Set<HoldSettlement>();
  readonly #others = new Set<HoldSettlement>();
  /** Milliseconds until the next settlements are sent. */
  readonly pause: () => number;
  timer: NodeJS.Timeout | undefined;
  /** Milliseconds of the latest pause. */
  pauseMs = 0;

  constructor(pause: () => number) {
    this.pause = pause;
  }

  get size(): number {
    return this.#own.size + this.#unanswered.size + this.#others.size;
  }

  setOf({ source, cause }: HoldSettlement): Set<HoldSettlement> {
    if (source.isAuthentic()) return this.#own;
    return cause === 'unanswered' ? this.#unanswered : this.#others;
  }

  /** Yields the own settlements first, then those of unanswered starts, and then the others. */
  *[Symbol.iterator](): Generator<HoldSettlement, void> {
    yield* this.#own;
    yield* this.#unanswered;
    yield* this.#others;
  }
}

/**
 * Sends the settlements of holds to the store. Sends each settlement immediately, and repeats it until the store
 * answers or the hold expires. Repeating a settlement that identifies its hold is harmless, because a store settles a
 * hold only once. A server that hangs does not delay settlements for other servers.
 *
 * Anyone can invent tokens. Therefore, settlements whose tokens this process or a sibling has created are sent before
 * all others, and have separate memory.
 */
export class SettlementQueue {
  readonly #clock: Clock;
  readonly #send: (settlement: HoldSettlement) => TakeResult | Promise<TakeResult>;
  readonly #report: (settlement: HoldSettlement, result: SettlementResult) => void;
  readonly #serverOf: (settlement: HoldSettlement) => unknown;
  readonly #pauses = new BackOff(FAILED_PAUSES);
  readonly #failed = new LateQueue(() => (this.#isRecovering ? DEFERRED_PAUSE_MS : this.#pauses.next()));
  readonly #deferred = new LateQueue(() => DEFERRED_PAUSE_MS);
  readonly #idle = new IdleWait(() => this.#count === 0);
  readonly #settlements = new RecentSettlements(MAX_OWN_BYTES, MAX_OTHER_BYTES);
  readonly #calls = new RecentSettlements(MAX_CALL_BYTES, MAX_CALL_BYTES);
  /**
   * Own settlements that wait, or whose memory is charged to own settlements. If a token is repeated, its settlement is
   * found here and needs no memory.
   */
  readonly #listed = new Map<HoldId, HoldSettlement>();
  #sent = 0;
  /**
   * Whether the store has answered the latest settlement that was sent again, and no settlement has failed since then.
   */
  #isRecovering = false;

  /**
   * `send` sends a settlement to its store. `report` receives the results of each settlement: `waiting` at most once,
   * and then the final result. `serverOf` returns a value that identifies the server of a settlement, so that servers
   * share the memory of calls.
   */
  constructor(
    clock: Clock,
    send: (settlement: HoldSettlement) => TakeResult | Promise<TakeResult>,
    report: (settlement: HoldSettlement, result: SettlementResult) => void,
    serverOf: (settlement: HoldSettlement) => unknown = () => undefined,
  ) {
    this.#clock = clock;
    this.#send = send;
    this.#report = report;
    this.#serverOf = serverOf;
  }

  /**
   * Sends a settlement, and repeats it if it fails. Returns a promise that resolves after the first attempt. Returns
   * undefined if there is nothing to wait for, which is also the case if too many settlements are in flight.
   */
  add(settlement: HoldSettlement): Promise<void> | undefined {
    return this.#admit(settlement) ? this.#try(settlement) : undefined;
  }

  /**
   * Like {@link add}, but sends the settlement after all previously deferred settlements, slowly enough that they delay
   * no caller.
   */
  defer(settlement: HoldSettlement): undefined {
    if (this.#admit(settlement)) this.#wait(this.#deferred, settlement);
    return undefined;
  }

  /**
   * Waits until no settlements are left, for at most `graceMs`. Settlements that are left after that time are lost.
   * Returns the number of lost settlements. Call it once, after the last settlement has been added.
   */
  async drain(graceMs: number): Promise<number> {
    this.#endLongPause();
    await this.#idle.wait(graceMs);
    const lost = this.#count;
    for (const queue of [this.#failed, this.#deferred]) {
      for (const settlement of queue) this.#giveUp(queue, settlement);
    }
    return lost;
  }

  /** Number of settlements that are in flight or wait. */
  get #count(): number {
    return this.#sent + this.#failed.size + this.#deferred.size;
  }

  /** Returns whether there is room for a settlement. */
  #admit(settlement: HoldSettlement): boolean {
    const bytes = bytesOf(settlement);
    const room = this.#settlements.of(settlement);
    if (room === this.#settlements.own && !this.#list(settlement)) {
      this.#report(settlement, 'repeated');
      return false;
    }
    if (!room.canAcquire(bytes, settlement.connection)) {
      this.#finish(settlement, 'lost');
      return false;
    }
    settlement.room = room;
    // Connections may close, so a settlement keeps its connection in memory only if it counts towards the connection's
    // share.
    if (!room.acquire(bytes, settlement.connection)) settlement.connection = undefined;
    settlement.addedMicros = this.#clock.monotonicMicros();
    return true;
  }

  /** Lists an own settlement. Returns false if another settlement of the same hold is already listed. */
  #list(settlement: HoldSettlement): boolean {
    const listed = settlement.id === undefined ? settlement : this.#listed.get(settlement.id);
    if (listed !== undefined) return listed === settlement;
    settlement.dropToken();
    this.#listed.set(settlement.id as HoldId, settlement);
    return true;
  }

  /**
   * Sends a settlement, or lets it wait. Returns undefined if the settlement waits, or if the store answers
   * immediately.
   */
  #try(settlement: HoldSettlement): Promise<void> | undefined {
    const calls = this.#calls.of(settlement);
    const bytes = callBytesOf(settlement);
    const server = calls.isContended ? this.#serverOf(settlement) : undefined;
    if (!calls.canAcquire(bytes, server)) {
      this.#wait(this.#deferred, settlement);
      return undefined;
    }
    this.#sent++;
    const result = this.#send(settlement);
    if (!(result instanceof Promise)) {
      this.#answered(settlement, result);
      return undefined;
    }
    const isShared = calls.acquire(bytes, server);
    return result.then((answer) => {
      calls.release(bytes, isShared ? [[server, bytes]] : undefined);
      this.#answered(settlement, answer);
    });
  }

  #answered(settlement: HoldSettlement, result: TakeResult): void {
    this.#sent--;
    if (result instanceof StorageError) this.#isRecovering = false;
    else if (settlement.hasWaited) this.#isRecovering = true;
    if (result instanceof StorageError && mayRepeat(settlement, result)) {
      this.#wait(this.#failed, settlement);
    } else if (result instanceof StorageError) {
      this.#finish(settlement, 'lost');
    } else {
      this.#endLongPause();
      this.#finish(settlement, result);
    }
    this.#idle.check();
  }

  /** Reports the final result of a settlement, and releases its memory. */
  #finish(settlement: HoldSettlement, result: SettlementResult): void {
    const bytes = bytesOf(settlement);
    settlement.room?.release(
      bytes,
      settlement.connection === undefined ? undefined : [[settlement.connection, bytes]],
    );
    if (settlement.id !== undefined && this.#listed.get(settlement.id) === settlement)
      this.#listed.delete(settlement.id);
    this.#report(settlement, result);
  }

  #wait(queue: LateQueue, settlement: HoldSettlement): void {
    if (!settlement.hasWaited) {
      const isAuthentic = settlement.source.isAuthentic();
      if (isAuthentic && !this.#list(settlement)) {
        this.#finish(settlement, 'repeated');
        return;
      }
      if (!isAuthentic) settlement.dropToken();
      settlement.hasWaited = true;
      this.#report(settlement, 'waiting');
    }
    queue.setOf(settlement).add(settlement);
    this.#sendAfterPause(queue);
  }

  #sendAfterPause(queue: LateQueue): void {
    if (queue.size === 0 || queue.timer !== undefined) return;
    queue.pauseMs = queue.pause();
    queue.timer = setTimeout(() => {
      queue.timer = undefined;
      this.#sendFrom(queue);
      this.#sendAfterPause(queue);
    }, queue.pauseMs).unref();
  }

  /**
   * Shortens the pause of failed settlements after another settlement has succeeded. Does not restart a pause that is
   * already short.
   */
  #endLongPause(): void {
    const queue = this.#failed;
    this.#pauses.reset();
    if (queue.timer === undefined || queue.pauseMs <= FAILED_PAUSES.initialMs) return;
    clearTimeout(queue.timer);
    queue.timer = undefined;
    this.#sendAfterPause(queue);
  }

  /**
   * Sends the next settlements. If a settlement is too much work for this turn, settlements with less work can overtake
   * it.
   */
  #sendFrom(queue: LateQueue): void {
    const nowMicros = this.#clock.monotonicMicros();
    const next: HoldSettlement[] = [];
    let work = 0;
    let passed = 0;
    for (const settlement of queue) {
      const { work: cost } = settlement;
      if (settlement.addedMicros + lifetimeOf(settlement) * 1000 <= nowMicros)
        this.#giveUp(queue, settlement);
      else if (work >= MAX_WORK_AFTER_PAUSE || passed >= MAX_PASSED) break;
      else if (work > 0 && work + cost > MAX_WORK_AFTER_PAUSE) passed++;
      else {
        work += cost;
        queue.setOf(settlement).delete(settlement);
        next.push(settlement);
      }
    }
    for (const settlement of next) void this.#try(settlement);
    this.#idle.check();
  }

  #giveUp(queue: LateQueue, settlement: HoldSettlement): void {
    queue.setOf(settlement).delete(settlement);
    this.#finish(settlement, 'lost');
  }
}

function bytesOf({ key, held: { rule, rate } }: HoldSettlement): number {
  const isPlanned = rule.plan !== undefined && rate.kind !== 'concurrency';
  return END_BYTES + bytesOfName(key) + (isPlanned ? PLANNED_BYTES : 0);
}

function callBytesOf({ key }: HoldSettlement): number {
  return CALL_BYTES + NAMES_IN_CALL * bytesOfName(key);
}

/** A single character that is not ASCII may double the memory of a string. */
export function bytesOfName(name: string): number {
  return Buffer.byteLength(name) === name.length ? name.length : 2 * name.length;
}

/**
 * Returns the maximum lifetime of the hold of a settlement, in milliseconds. The lifetime in an invented token cannot
 * exceed the one in the policy.
 */
function lifetimeOf({ id, lifetimeMillis, held, source }: HoldSettlement): number {
  const usual = held.rule.hold?.expiresAfterMillis ?? 0;
  if (id === undefined) return usual;
  return source.isAuthentic() ? lifetimeMillis : Math.min(lifetimeMillis, usual);
}
