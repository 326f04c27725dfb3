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
import type { Heartbeat } from './heartbeat.js';
import { machineMicros } from './machine-time.js';
import type { ToWorker } from './messages.js';

/** The part of a worker that calls need. */
export interface CallableWorker {
  readonly heartbeat: Pick<Heartbeat, 'ping' | 'hasMessageSince'>;
  send(message: ToWorker): unknown;
}

/**
 * Reason why a call got no answer. `no_worker`: no worker serves. `too_many`: too many calls are pending. `lost`: the
 * worker exited. `too_late`: the timeout passed. `silent`: the worker does not answer. `read_late`: the worker read the
 * call too late.
 */
export type CallFailure = 'no_worker' | 'too_many' | 'lost' | 'too_late' | 'silent' | 'read_late';

/** Options of a call to one of several workers. */
export interface ForwardOptions<Name extends CallName> {
  /** Returns the workers that can be called now. */
  workers(): readonly CallableWorker[];
  /** Returns the request. A retry with another worker calls it again. */
  ask(): Calls[Name]['ask'];
  /**
   * Whether the worker with the fewest pending calls is called first, in turns among equals. Otherwise the first worker
   * is called.
   */
  readonly balances: boolean;
  /**
   * Maximum number of workers that are called one after the other, each time because the previous one exits or is
   * silent.
   */
  readonly maxWorkers: number;
  /** Whether the call waits, within its timeout, as long as a called worker answers pings. */
  readonly waitsWhileAlive: boolean;
  readonly timeoutMs: number;
  /** Returns whether an answer counts only if it comes from the last worker that was called. */
  onlyFromLast?(answer: Calls[Name]['answer']): boolean;
}

export interface CallTimeouts {
  /** Milliseconds without a part after which a worker's answer is given up. */
  readonly partTimeoutMs: number;
  /** Milliseconds without an answer after which the worker gets a ping. */
  readonly pingAfterMs: number;
  /** Milliseconds without any message of the worker after which another worker is called. */
  readonly switchAfterMs: number;
}

const DEFAULT_TIMEOUTS: CallTimeouts = { partTimeoutMs: 1000, pingAfterMs: 100, switchAfterMs: 500 };

/** A call that a worker has not answered. */
interface PendingCall {
  readonly worker: CallableWorker;
  readonly name: CallName;
  part?(part: unknown): void;
  answered(answer: unknown): void;
  /** Called if the worker discards the call or exits. */
  failed(why: 'read_late' | 'lost'): void;
}

/** State of a forwarded call. */
interface ForwardedCall {
  readonly name: CallName;
  readonly options: ForwardOptions<CallName>;
  /** Deadline in milliseconds, by performance.now(). */
  readonly untilMs: number;
  /** Workers that were called. The last one is expected to answer. */
  readonly asked: CallableWorker[];
  timer: NodeJS.Timeout | undefined;
  /** Undefined once the caller has an answer. */
  settle: ((outcome: Calls[CallName]['answer'] | CallFailure) => void) | undefined;
}

/** Sends the calls of the primary process to its workers, applies timeouts and receives answers. */
export class CallClient {
  readonly #timeouts: CallTimeouts;
  readonly #bounds: typeof CALL_BOUNDS;
  /** Includes calls that have timed out, because they still fill the channel of a worker that hangs. */
  readonly #pending = new Map<number, PendingCall>();
  /** Number of pending calls by name and by worker. */
  readonly #counts = new Map<CallName | CallableWorker, number>();
  #lastId = 0;

  /** The parameters are for tests. */
  constructor(timeouts: Partial<CallTimeouts> = {}, bounds = CALL_BOUNDS) {
    this.#timeouts = { ...DEFAULT_TIMEOUTS, ...timeouts };
    this.#bounds = bounds;
  }

  /** Calls a worker, and another one if that worker exits or is silent. Never rejects. */
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
   * Calls a worker that answers in parts, which are passed to `take`. Resolves with the final answer, or with undefined
   * if the next part is late or the worker exits.
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

  /** Calls several workers that answer with rows in parts. Workers that do not answer are left out. */
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

  /** Handles a message of a worker about a call. */
  received(message: CallAnswer): void {
    if (message.kind === 'part') this.#pending.get(message.id)?.part?.(message.part);
    else if (message.kind === 'late') this.#removePending(message.id)?.failed('read_late');
    else this.#removePending(message.id)?.answered(message.answer);
  }

  /** Fails the pending calls of a worker that has exited. */
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

  /** Removes a pending call and returns it. */
  #removePending(id: number): PendingCall | undefined {
    const owed = this.#pending.get(id);
    if (owed === undefined) return undefined;
    this.#pending.delete(id);
    for (const of of [owed.worker, owed.name]) this.#counts.set(of, this.#pendingCount(of) - 1);
    expectState(
      this.#pendingCount(owed.worker) >= 0 && this.#pendingCount(owed.name) >= 0,
      'a call is removed from the pending calls only once',
    );
    return owed;
  }

  #pendingCount(of: CallName | CallableWorker): number {
    return this.#counts.get(of) ?? 0;
  }

  /** Calls a worker that was not called before. If none is left, the call fails with `otherwise`. */
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
        // A worker that hung and wakes up must not answer for the worker that is called now.
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

  /** Watches a call that was sent to a worker, and calls the next one if it is silent. */
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
