import { StorageError, type TakeResult } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { HoldId } from '../../limiter/holds/hold.js';
import { FairCapacity } from '../../runtime/fair-capacity.js';
import { BackOff, IdleWait } from '../../runtime/timers.js';
import type { HoldEnd } from './hold-end.js';

/**
 * Maximum memory of the ends that are in flight or wait, in bytes, without the memory of their calls. There are three
 * kinds of ends: own ends, whose tokens this process or a sibling has created, ends of requests whose start the store
 * has not answered, and all others. The last two kinds have the same maximum. Further ends are lost, and their holds
 * expire. {@link FairCapacity} describes the share of one connection.
 *
 * The three kinds do not share memory, because each kind is easier to produce than the one before. A token needs a hold
 * that a limit has allowed, an unanswered start needs only a store that hangs, and anyone can invent a token.
 */
export const MAX_OWN_BYTES = 16 * 1024 * 1024;
export const MAX_OTHER_BYTES = 8 * 1024 * 1024;
/**
 * Maximum memory of the calls for ends in flight, in bytes, for each of the three kinds. Further ends wait, because a
 * waiting end needs a tenth of the memory of a call. The servers of a cluster share this memory fairly.
 */
export const MAX_CALL_BYTES = 8 * 1024 * 1024;
/**
 * Maximum memory of a waiting end, without the name of its bucket. Measured: 17,000 to 33,500 ends with names of about
 * 60 bytes need 270 to 355 bytes each.
 */
const END_BYTES = 336;
/**
 * Memory of the call for an end in flight, without names: its promises, the call and the command. In a cluster, nearly
 * every end is sent in its own call.
 */
const CALL_BYTES = 3584;
/** Copies of the name of a bucket in a call and its command. */
const NAMES_IN_CALL = 3;
/** Memory of a customer's rate. Ends refer to such a rate if the numbers of their window come from a plan. */
const PLANNED_BYTES = 224;
/** Maximum work of the ends that a queue sends after one pause. A single end may be more work. */
const MAX_WORK_AFTER_PAUSE = 256;
/** Maximum number of ends with too much work that later ends can overtake after one pause. */
const MAX_PASSED = 256;
/**
 * Pauses between deferred ends, and between failed ends, in milliseconds. While the store answers the ends that are
 * sent again, failed ends are also sent after the short pause.
 */
const DEFERRED_PAUSE_MS = 10;
const FAILED_PAUSES = { initialMs: 100, maxMs: 5000 };

/**
 * Returns whether a failed end may be sent again. If it settles the oldest hold of a bucket and the store may have
 * executed it, sending it again could settle another hold.
 */
function mayRepeat({ id }: HoldEnd, { unsent }: StorageError): boolean {
  return id !== undefined || unsent;
}

/**
 * The result of an end: the store's answer, `waiting` if the end will be sent again, or the reason why it was given up.
 * `repeated`: another end of the same hold is waiting.
 */
export type EndResult = TakeResult | 'waiting' | 'lost' | 'repeated';

/** Memory of the three kinds of ends; see {@link MAX_OWN_BYTES}. */
class EndMemory {
  readonly own: FairCapacity;
  readonly #unanswered: FairCapacity;
  readonly #others: FairCapacity;

  constructor(ownBytes: number, otherBytes: number) {
    this.own = new FairCapacity(ownBytes);
    this.#unanswered = new FairCapacity(otherBytes);
    this.#others = new FairCapacity(otherBytes);
  }

  /**
   * Returns the budget that the memory of an end is charged to. Checks the mark of the token only while other ends use
   * at least half of their memory, because computing the hash costs as much as everything else.
   */
  of({ cause, source }: HoldEnd): FairCapacity {
    if (cause === 'unanswered') return this.#unanswered;
    return this.#others.isContended && source.isOwn() ? this.own : this.#others;
  }
}

/** Waiting ends, in the order in which they are sent. */
class LateQueue {
  readonly #own = new Set<HoldEnd>();
  readonly #unanswered = new Set<HoldEnd>();
  readonly #others = new Set<HoldEnd>();
  /** Returns the milliseconds until the next ends are sent. */
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

  /** Returns the set that contains an end. */
  setOf({ source, cause }: HoldEnd): Set<HoldEnd> {
    if (source.isOwn()) return this.#own;
    return cause === 'unanswered' ? this.#unanswered : this.#others;
  }

  /** Yields the own ends first, then those of unanswered starts, and then the others. */
  *[Symbol.iterator](): Generator<HoldEnd, void> {
    yield* this.#own;
    yield* this.#unanswered;
    yield* this.#others;
  }
}

/**
 * Sends the ends of holds to the store. Sends each end immediately, and repeats it until the store answers or the hold
 * expires. Repeating an end that identifies its hold is harmless, because a store settles a hold only once. A server
 * that hangs does not delay ends for other servers.
 *
 * Anyone can invent tokens. Therefore, ends whose tokens this process or a sibling has created are sent before all
 * others, and have separate memory.
 */
export class LateEnds {
  readonly #clock: Clock;
  readonly #send: (end: HoldEnd) => TakeResult | Promise<TakeResult>;
  readonly #report: (end: HoldEnd, result: EndResult) => void;
  readonly #serverOf: (end: HoldEnd) => unknown;
  readonly #pauses = new BackOff(FAILED_PAUSES);
  readonly #failed = new LateQueue(() => (this.#isRecovering ? DEFERRED_PAUSE_MS : this.#pauses.next()));
  readonly #deferred = new LateQueue(() => DEFERRED_PAUSE_MS);
  readonly #idle = new IdleWait(() => this.#count === 0);
  readonly #ends = new EndMemory(MAX_OWN_BYTES, MAX_OTHER_BYTES);
  readonly #calls = new EndMemory(MAX_CALL_BYTES, MAX_CALL_BYTES);
  /**
   * Own ends that wait, or whose memory is charged to own ends. If a token is repeated, its end is found here and needs
   * no memory.
   */
  readonly #listed = new Map<HoldId, HoldEnd>();
  #sent = 0;
  /** Whether the store has answered the latest end that was sent again, and no end has failed since then. */
  #isRecovering = false;

  /**
   * `send` sends an end to its store. `report` receives the results of each end: `waiting` at most once, and then the
   * final result. `serverOf` returns a value that identifies the server of an end, so that servers share the memory of
   * calls.
   */
  constructor(
    clock: Clock,
    send: (end: HoldEnd) => TakeResult | Promise<TakeResult>,
    report: (end: HoldEnd, result: EndResult) => void,
    serverOf: (end: HoldEnd) => unknown = () => undefined,
  ) {
    this.#clock = clock;
    this.#send = send;
    this.#report = report;
    this.#serverOf = serverOf;
  }

  /**
   * Sends an end, and repeats it if it fails. Returns a promise that resolves after the first attempt. Returns
   * undefined if there is nothing to wait for, which is also the case if too many ends are in flight.
   */
  add(end: HoldEnd): Promise<void> | undefined {
    return this.#admit(end) ? this.#try(end) : undefined;
  }

  /**
   * Like {@link add}, but sends the end after all previously deferred ends, slowly enough that they delay no caller.
   */
  defer(end: HoldEnd): undefined {
    if (this.#admit(end)) this.#wait(this.#deferred, end);
    return undefined;
  }

  /**
   * Waits until no ends are left, for at most `graceMs`. Ends that are left after that time are lost. Returns the
   * number of lost ends. Call it once, after the last end has been added.
   */
  async drain(graceMs: number): Promise<number> {
    this.#endLongPause();
    await this.#idle.wait(graceMs);
    const lost = this.#count;
    for (const queue of [this.#failed, this.#deferred]) {
      for (const end of queue) this.#giveUp(queue, end);
    }
    return lost;
  }

  /** Number of ends that are in flight or wait. */
  get #count(): number {
    return this.#sent + this.#failed.size + this.#deferred.size;
  }

  /** Returns whether there is room for an end. */
  #admit(end: HoldEnd): boolean {
    const bytes = bytesOf(end);
    const room = this.#ends.of(end);
    if (room === this.#ends.own && !this.#list(end)) {
      this.#report(end, 'repeated');
      return false;
    }
    if (!room.canAcquire(bytes, end.connection)) {
      this.#finish(end, 'lost');
      return false;
    }
    end.room = room;
    // Connections may close, so an end keeps its connection in memory only if it counts towards the connection's share.
    if (!room.acquire(bytes, end.connection)) end.connection = undefined;
    end.addedMicros = this.#clock.monotonicMicros();
    return true;
  }

  /** Lists an own end. Returns false if another end of the same hold is already listed. */
  #list(end: HoldEnd): boolean {
    const listed = end.id === undefined ? end : this.#listed.get(end.id);
    if (listed !== undefined) return listed === end;
    end.dropToken();
    this.#listed.set(end.id as HoldId, end);
    return true;
  }

  /** Sends an end, or lets it wait. Returns undefined if the end waits, or if the store answers immediately. */
  #try(end: HoldEnd): Promise<void> | undefined {
    const calls = this.#calls.of(end);
    const bytes = callBytesOf(end);
    const server = calls.isContended ? this.#serverOf(end) : undefined;
    if (!calls.canAcquire(bytes, server)) {
      this.#wait(this.#deferred, end);
      return undefined;
    }
    this.#sent++;
    const result = this.#send(end);
    if (!(result instanceof Promise)) {
      this.#answered(end, result);
      return undefined;
    }
    const isShared = calls.acquire(bytes, server);
    return result.then((answer) => {
      calls.release(bytes, isShared ? [[server, bytes]] : undefined);
      this.#answered(end, answer);
    });
  }

  #answered(end: HoldEnd, result: TakeResult): void {
    this.#sent--;
    if (result instanceof StorageError) this.#isRecovering = false;
    else if (end.hasWaited) this.#isRecovering = true;
    if (result instanceof StorageError && mayRepeat(end, result)) {
      this.#wait(this.#failed, end);
    } else if (result instanceof StorageError) {
      this.#finish(end, 'lost');
    } else {
      this.#endLongPause();
      this.#finish(end, result);
    }
    this.#idle.check();
  }

  /** Reports the final result of an end, and releases its memory. */
  #finish(end: HoldEnd, result: EndResult): void {
    const bytes = bytesOf(end);
    end.room?.release(bytes, end.connection === undefined ? undefined : [[end.connection, bytes]]);
    if (end.id !== undefined && this.#listed.get(end.id) === end) this.#listed.delete(end.id);
    this.#report(end, result);
  }

  #wait(queue: LateQueue, end: HoldEnd): void {
    if (!end.hasWaited) {
      const isOwn = end.source.isOwn();
      if (isOwn && !this.#list(end)) {
        this.#finish(end, 'repeated');
        return;
      }
      if (!isOwn) end.dropToken();
      end.hasWaited = true;
      this.#report(end, 'waiting');
    }
    queue.setOf(end).add(end);
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
   * Shortens the pause of failed ends after another end has succeeded. Does not restart a pause that is already short.
   */
  #endLongPause(): void {
    const queue = this.#failed;
    this.#pauses.reset();
    if (queue.timer === undefined || queue.pauseMs <= FAILED_PAUSES.initialMs) return;
    clearTimeout(queue.timer);
    queue.timer = undefined;
    this.#sendAfterPause(queue);
  }

  /** Sends the next ends. If an end is too much work for this turn, ends with less work can overtake it. */
  #sendFrom(queue: LateQueue): void {
    const nowMicros = this.#clock.monotonicMicros();
    const next: HoldEnd[] = [];
    let work = 0;
    let passed = 0;
    for (const end of queue) {
      const { work: cost } = end;
      if (end.addedMicros + lifetimeOf(end) * 1000 <= nowMicros) this.#giveUp(queue, end);
      else if (work >= MAX_WORK_AFTER_PAUSE || passed >= MAX_PASSED) break;
      else if (work > 0 && work + cost > MAX_WORK_AFTER_PAUSE) passed++;
      else {
        work += cost;
        queue.setOf(end).delete(end);
        next.push(end);
      }
    }
    for (const end of next) void this.#try(end);
    this.#idle.check();
  }

  #giveUp(queue: LateQueue, end: HoldEnd): void {
    queue.setOf(end).delete(end);
    this.#finish(end, 'lost');
  }
}

/** Returns the memory of a waiting end. */
function bytesOf({ key, held: { rule, rate } }: HoldEnd): number {
  const isPlanned = rule.plan !== undefined && rate.kind !== 'concurrency';
  return END_BYTES + bytesOfName(key) + (isPlanned ? PLANNED_BYTES : 0);
}

/** Returns the memory of the call for an end in flight. */
function callBytesOf({ key }: HoldEnd): number {
  return CALL_BYTES + NAMES_IN_CALL * bytesOfName(key);
}

/** Returns the memory of a name. A single character that is not ASCII may double the memory of a string. */
export function bytesOfName(name: string): number {
  return Buffer.byteLength(name) === name.length ? name.length : 2 * name.length;
}

/**
 * Returns the maximum lifetime of the hold of an end, in milliseconds. The lifetime in an invented token cannot exceed
 * the one in the policy.
 */
function lifetimeOf({ id, lifetimeMillis, held, source }: HoldEnd): number {
  const usual = held.rule.hold?.expiresAfterMillis ?? 0;
  if (id === undefined) return usual;
  return source.isOwn() ? lifetimeMillis : Math.min(lifetimeMillis, usual);
}
