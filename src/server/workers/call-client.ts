import { expectState } from '../../invariant.js';
import { MAX_TIMER_MS } from '../../limiter/clock.js';
import {
  CALL_BOUNDS,
  type CallAnswer,
  type CallMessage,
  type CallName,
  type Calls,
  type WorkerRows,
} from './calls.js';
import { machineMicros } from './channel.js';
import type { Heartbeat } from './heartbeat.js';
import type { ToWorker } from './messages.js';

/** A worker process, as far as calls need it. */
export interface CallableWorker {
  readonly heartbeat: Pick<Heartbeat, 'ping' | 'hasMessageSince'>;
  send(message: ToWorker): unknown;
}

/** Why a call got no answer; no worker was asked where none serves (`no_worker`), or too many answers are owed. */
export type CallFailure = 'no_worker' | 'too_many' | 'lost' | 'too_late' | 'silent' | 'read_late';

/** How a call is forwarded to one of several workers. */
export interface ForwardOptions<Name extends CallName> {
  /** Those that may be asked now. */
  workers(): readonly CallableWorker[];
  /** What is asked, as of now. */
  ask(): Calls[Name]['ask'];
  /** Whether the worker that owes fewest answers comes first, of equals in turn; else the first of them does. */
  readonly balances: boolean;
  /** So many are asked, one after the other, where the one before ends or is silent. */
  readonly maxWorkers: number;
  /** Whether it goes on for as long as a worker that was asked is there: an answer may come late. */
  readonly waitsWhileAlive: boolean;
  readonly timeoutMs: number;
  /** Whether an answer counts only if it comes from the worker that was asked last. */
  onlyFromLast?(answer: Calls[Name]['answer']): boolean;
}

export interface CallTimeouts {
  /** A worker that does not tell the next part for so long is not waited for; milliseconds. */
  readonly partTimeoutMs: number;
  /** A worker that has not answered after this long is asked whether it is there; milliseconds. */
  readonly pingAfterMs: number;
  /** After this long another one is asked, if nothing was heard of the first one meanwhile. */
  readonly switchAfterMs: number;
}

const DEFAULT_TIMEOUTS: CallTimeouts = { partTimeoutMs: 1000, pingAfterMs: 100, switchAfterMs: 500 };

/** What a worker has yet to answer. */
interface PendingCall {
  readonly worker: CallableWorker;
  readonly name: CallName;
  part?(part: unknown): void;
  answered(answer: unknown): void;
  /** The worker has left it alone, or has ended. */
  failed(why: 'read_late' | 'lost'): void;
}

/** A call that is forwarded. */
interface ForwardedCall {
  readonly name: CallName;
  readonly options: ForwardOptions<CallName>;
  /** By performance.now(). */
  readonly untilMs: number;
  /** Who was asked, the last of whom is expected to answer. */
  readonly asked: CallableWorker[];
  timer: NodeJS.Timeout | undefined;
  /** Undefined once the caller has an answer. */
  settle: ((outcome: Calls[CallName]['answer'] | CallFailure) => void) | undefined;
}

/** The calls of the primary process to its workers: the one place that sends them, times out, and takes answers. */
export class CallClient {
  readonly #timeouts: CallTimeouts;
  readonly #bounds: typeof CALL_BOUNDS;
  /** Also what nobody waits for any more: it still fills the channel of a worker that hangs. */
  readonly #pending = new Map<number, PendingCall>();
  /** How many answers are owed under each name, and by each worker. */
  readonly #counts = new Map<CallName | CallableWorker, number>();
  #lastId = 0;

  /** `timeouts` and `bounds`: for tests. */
  constructor(timeouts: Partial<CallTimeouts> = {}, bounds = CALL_BOUNDS) {
    this.#timeouts = { ...DEFAULT_TIMEOUTS, ...timeouts };
    this.#bounds = bounds;
  }

  /** Asks a worker, then another where that one ends or is silent. Never rejects. */
  forward<Name extends CallName>(
    name: Name,
    options: ForwardOptions<Name>,
  ): Promise<Calls[Name]['answer'] | CallFailure> {
    return new Promise((resolve) => {
      const untilMs = performance.now() + options.timeoutMs;
      const call = { name, options, untilMs, asked: [], timer: undefined, settle: resolve };
      this.#callNextWorker(call as ForwardedCall, 'no_worker');
    });
  }

  /**
   * Asks a worker for what it tells in parts, which `take` is handed. Resolves with the answer, which ends them; with
   * undefined once the worker does not tell on, or has ended.
   */
  collect<Name extends CallName>(
    worker: CallableWorker,
    name: Name,
    ask: Calls[Name]['ask'],
    take: (part: Calls[Name]['part']) => void,
  ): Promise<Calls[Name]['answer'] | undefined> {
    return new Promise((resolve) => {
      const end = (answer: unknown): void => {
        clearTimeout(timer);
        this.#removePending(id);
        resolve(answer as Calls[Name]['answer'] | undefined);
      };
      const timer = setTimeout(end, this.#timeouts.partTimeoutMs, undefined);
      const part = (told: unknown): void => {
        take(told as Calls[Name]['part']);
        timer.refresh();
      };
      const id = this.#send(worker, name, ask, { part, answered: end, failed: () => end(undefined) });
    });
  }

  /** Asks workers for rows, which they tell in parts; those that do not answer are left out. */
  async collectRows<Name extends 'top' | 'rates'>(
    workers: readonly CallableWorker[],
    name: Name,
    ask: Calls[Name]['ask'],
  ): Promise<readonly WorkerRows<Name>[]> {
    const told = workers.map(async (worker) => {
      const rows: unknown[] = [];
      const about = await this.collect(worker, name, ask, (part) => rows.push(...part));
      return about === undefined ? [] : [{ rows: rows as unknown as Calls[Name]['part'], about }];
    });
    return (await Promise.all(told)).flat();
  }

  /** What a worker says to a call. */
  received(message: CallAnswer): void {
    if (message.kind === 'part') this.#pending.get(message.id)?.part?.(message.part);
    else if (message.kind === 'late') this.#removePending(message.id)?.failed('read_late');
    else this.#removePending(message.id)?.answered(message.answer);
  }

  /** Nothing more comes from this worker. */
  lost(worker: CallableWorker): void {
    for (const [id, owed] of [...this.#pending])
      if (owed.worker === worker) this.#removePending(id)?.failed('lost');
    this.#counts.delete(worker);
  }

  #send(
    worker: CallableWorker,
    name: CallName,
    ask: unknown,
    to: Omit<PendingCall, 'worker' | 'name'>,
  ): number {
    const id = ++this.#lastId;
    this.#pending.set(id, { worker, name, ...to });
    for (const of of [worker, name]) this.#counts.set(of, this.#pendingCount(of) + 1);
    worker.send({ kind: 'call', id, name, ask, sentMicros: machineMicros() } as CallMessage);
    return id;
  }

  /** What a worker owed, and does not any more. */
  #removePending(id: number): PendingCall | undefined {
    const owed = this.#pending.get(id);
    if (owed === undefined) return undefined;
    this.#pending.delete(id);
    for (const of of [owed.worker, owed.name]) this.#counts.set(of, this.#pendingCount(of) - 1);
    expectState(
      this.#pendingCount(owed.worker) >= 0 && this.#pendingCount(owed.name) >= 0,
      'an answer is owed once',
    );
    return owed;
  }

  #pendingCount(of: CallName | CallableWorker): number {
    return this.#counts.get(of) ?? 0;
  }

  /** Asks a worker that was not asked before. If there is none, the call fails for the reason `otherwise`. */
  #callNextWorker(call: ForwardedCall, otherwise: CallFailure): void {
    const { name, options, asked } = call;
    const available = options.workers();
    const others = asked.length < options.maxWorkers ? available.filter((one) => !asked.includes(one)) : [];
    const worker = options.balances ? this.#leastBusy(others) : others[0];
    const awaited = options.waitsWhileAlive ? available.find((one) => asked.includes(one)) : undefined;
    if (worker === undefined) {
      if (awaited === undefined) settle(call, otherwise);
      else this.#watchCall(call, awaited);
      return;
    }
    if (this.#pendingCount(name) >= this.#bounds[name].maxPending) {
      settle(call, asked.length === 0 ? 'too_many' : otherwise);
      return;
    }
    asked.push(worker);
    this.#send(worker, name, options.ask(), {
      answered: (answer) => {
        const told = answer as Calls[CallName]['answer'];
        // One that has woken up does not speak for the other who is asked now.
        if (asked.at(-1) === worker || options.onlyFromLast?.(told) !== true) settle(call, told);
      },
      failed: (why) => {
        if (call.settle === undefined || asked.at(-1) !== worker) return;
        if (why === 'lost' && asked.length < options.maxWorkers) this.#callNextWorker(call, why);
        else settle(call, why);
      },
    });
    this.#watchCall(call, worker);
  }

  /** Looks after a call that a worker was asked. */
  #watchCall(call: ForwardedCall, worker: CallableWorker): void {
    const { options } = call;
    const sinceMs = performance.now();
    const at = (whenMs: number, then: () => void): void => {
      const isLast = whenMs >= call.untilMs;
      const delayMs = Math.min((isLast ? call.untilMs : whenMs) - performance.now(), MAX_TIMER_MS);
      clearTimeout(call.timer);
      call.timer = setTimeout(isLast ? () => settle(call, 'too_late') : then, Math.max(delayMs, 0));
    };
    const toEnd = (): void => at(Number.POSITIVE_INFINITY, () => {});
    if (options.maxWorkers === 1) {
      toEnd();
      return;
    }
    const { pingAfterMs, switchAfterMs } = this.#timeouts;
    at(sinceMs + Math.min(pingAfterMs, switchAfterMs), () => {
      worker.heartbeat.ping();
      at(sinceMs + switchAfterMs, () => {
        if (!worker.heartbeat.hasMessageSince(sinceMs)) this.#callNextWorker(call, 'silent');
        else if (options.waitsWhileAlive) this.#watchCall(call, worker);
        else toEnd();
      });
    });
  }

  #leastBusy(workers: readonly CallableWorker[]): CallableWorker | undefined {
    let chosen: CallableWorker | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (let at = 0; at < workers.length; at++) {
      const worker = workers[(this.#lastId + at) % workers.length] as CallableWorker;
      const count = this.#pendingCount(worker);
      if (count >= fewest) continue;
      chosen = worker;
      fewest = count;
    }
    return chosen;
  }
}

function settle(call: ForwardedCall, outcome: Calls[CallName]['answer'] | CallFailure): void {
  clearTimeout(call.timer);
  call.settle?.(outcome);
  call.settle = undefined;
}
