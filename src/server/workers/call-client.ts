import { expectState } from '../../invariant.js';
import { MAX_TIMER_MS } from '../../limiter/clock.js';
import {
  CALL_BOUNDS,
  type CallAnswer,
  type CallMessage,
  type CallName,
  type Calls,
  type ToldRows,
} from './calls.js';
import { machineMicros } from './channel.js';
import type { Pulse } from './heartbeat.js';
import type { ToWorker } from './messages.js';

/** A worker process, as far as calls need it. */
export interface AskedWorker {
  readonly pulse: Pick<Pulse, 'ask' | 'heardSince'>;
  send(message: ToWorker): unknown;
}

/** Why a call got no answer; no worker was asked where none serves (`nobody`), or too many answers are owed. */
export type CallFailure = 'nobody' | 'too_many' | 'lost' | 'too_late' | 'silent' | 'read_late';

/** How a call is forwarded to one of several workers. */
export interface Forwarding<Name extends CallName> {
  /** Those that may be asked now. */
  workers(): readonly AskedWorker[];
  /** What is asked, as of now. */
  ask(): Calls[Name]['ask'];
  /** Whether the worker that owes fewest answers comes first, of equals in turn; else the first of them does. */
  readonly isSpread: boolean;
  /** So many are asked, one after the other, where the one before ends or is silent. */
  readonly maxWorkers: number;
  /** Whether it goes on for as long as a worker that was asked is there: an answer may come late. */
  readonly isPatient: boolean;
  readonly longestMs: number;
  /** Whether an answer counts only if it comes from the worker that was asked last. */
  isOfLast?(answer: Calls[Name]['answer']): boolean;
}

export interface CallTimes {
  /** A worker that does not tell the next part for so long is not waited for; milliseconds. */
  readonly partsWithinMs: number;
  /** A worker that has not answered after this long is asked whether it is there; milliseconds. */
  readonly askedAfterMs: number;
  /** After this long another one is asked, if nothing was heard of the first one meanwhile. */
  readonly unheardMs: number;
}

const TIMES: CallTimes = { partsWithinMs: 1000, askedAfterMs: 100, unheardMs: 500 };

/** What a worker has yet to answer. */
interface Owed {
  readonly worker: AskedWorker;
  readonly name: CallName;
  part?(part: unknown): void;
  answered(answer: unknown): void;
  /** The worker has left it alone, or has ended. */
  failed(why: 'read_late' | 'lost'): void;
}

/** A call that is forwarded. */
interface Forwarded {
  readonly name: CallName;
  readonly how: Forwarding<CallName>;
  /** By performance.now(). */
  readonly untilMs: number;
  /** Who was asked, the last of whom is expected to answer. */
  readonly asked: AskedWorker[];
  timer: NodeJS.Timeout | undefined;
  /** Undefined once the caller has an answer. */
  settle: ((outcome: Calls[CallName]['answer'] | CallFailure) => void) | undefined;
}

/** The calls of the primary process to its workers: the one place that sends them, times out, and takes answers. */
export class SentCalls {
  readonly #times: CallTimes;
  readonly #bounds: typeof CALL_BOUNDS;
  /** Also what nobody waits for any more: it still fills the channel of a worker that hangs. */
  readonly #owed = new Map<number, Owed>();
  /** How many answers are owed under each name, and by each worker. */
  readonly #counts = new Map<CallName | AskedWorker, number>();
  #lastId = 0;

  /** `times` and `bounds`: for tests. */
  constructor(times: Partial<CallTimes> = {}, bounds = CALL_BOUNDS) {
    this.#times = { ...TIMES, ...times };
    this.#bounds = bounds;
  }

  /** Asks a worker, then another where that one ends or is silent. Never rejects. */
  forward<Name extends CallName>(
    name: Name,
    how: Forwarding<Name>,
  ): Promise<Calls[Name]['answer'] | CallFailure> {
    return new Promise((resolve) => {
      const untilMs = performance.now() + how.longestMs;
      const call = { name, how, untilMs, asked: [], timer: undefined, settle: resolve };
      this.#give(call as Forwarded, 'nobody');
    });
  }

  /**
   * Asks a worker for what it tells in parts, which `take` is handed. Resolves with the answer, which ends them; with
   * undefined once the worker does not tell on, or has ended.
   */
  collect<Name extends CallName>(
    worker: AskedWorker,
    name: Name,
    ask: Calls[Name]['ask'],
    take: (part: Calls[Name]['part']) => void,
  ): Promise<Calls[Name]['answer'] | undefined> {
    return new Promise((resolve) => {
      const end = (answer: unknown): void => {
        clearTimeout(timer);
        this.#take(id);
        resolve(answer as Calls[Name]['answer'] | undefined);
      };
      const timer = setTimeout(end, this.#times.partsWithinMs, undefined);
      const part = (told: unknown): void => {
        take(told as Calls[Name]['part']);
        timer.refresh();
      };
      const id = this.#send(worker, name, ask, { part, answered: end, failed: () => end(undefined) });
    });
  }

  /** Asks workers for rows, which they tell in parts; those that do not answer are left out. */
  async collectRows<Name extends 'top' | 'rates'>(
    workers: readonly AskedWorker[],
    name: Name,
    ask: Calls[Name]['ask'],
  ): Promise<readonly ToldRows<Name>[]> {
    const told = workers.map(async (worker) => {
      const rows: unknown[] = [];
      const about = await this.collect(worker, name, ask, (part) => rows.push(...part));
      return about === undefined ? [] : [{ rows: rows as unknown as Calls[Name]['part'], about }];
    });
    return (await Promise.all(told)).flat();
  }

  /** What a worker says to a call. */
  received(message: CallAnswer): void {
    if (message.kind === 'part') this.#owed.get(message.id)?.part?.(message.part);
    else if (message.kind === 'late') this.#take(message.id)?.failed('read_late');
    else this.#take(message.id)?.answered(message.answer);
  }

  /** Nothing more comes from this worker. */
  lost(worker: AskedWorker): void {
    for (const [id, owed] of [...this.#owed]) if (owed.worker === worker) this.#take(id)?.failed('lost');
    this.#counts.delete(worker);
  }

  #send(worker: AskedWorker, name: CallName, ask: unknown, to: Omit<Owed, 'worker' | 'name'>): number {
    const id = ++this.#lastId;
    this.#owed.set(id, { worker, name, ...to });
    for (const of of [worker, name]) this.#counts.set(of, this.#owes(of) + 1);
    worker.send({ kind: 'call', id, name, ask, sentMicros: machineMicros() } as CallMessage);
    return id;
  }

  /** What a worker owed, and does not any more. */
  #take(id: number): Owed | undefined {
    const owed = this.#owed.get(id);
    if (owed === undefined) return undefined;
    this.#owed.delete(id);
    for (const of of [owed.worker, owed.name]) this.#counts.set(of, this.#owes(of) - 1);
    expectState(this.#owes(owed.worker) >= 0 && this.#owes(owed.name) >= 0, 'an answer is owed once');
    return owed;
  }

  #owes(of: CallName | AskedWorker): number {
    return this.#counts.get(of) ?? 0;
  }

  /** Asks a worker that was not asked before. If there is none, the call fails for the reason `otherwise`. */
  #give(call: Forwarded, otherwise: CallFailure): void {
    const { name, how, asked } = call;
    const able = how.workers();
    const others = asked.length < how.maxWorkers ? able.filter((one) => !asked.includes(one)) : [];
    const worker = how.isSpread ? this.#leastBusy(others) : others[0];
    const awaited = how.isPatient ? able.find((one) => asked.includes(one)) : undefined;
    if (worker === undefined) {
      if (awaited === undefined) settle(call, otherwise);
      else this.#follow(call, awaited);
      return;
    }
    if (this.#owes(name) >= this.#bounds[name].most) {
      settle(call, asked.length === 0 ? 'too_many' : otherwise);
      return;
    }
    asked.push(worker);
    this.#send(worker, name, how.ask(), {
      answered: (answer) => {
        const told = answer as Calls[CallName]['answer'];
        // One that has woken up does not speak for the other who is asked now.
        if (asked.at(-1) === worker || how.isOfLast?.(told) !== true) settle(call, told);
      },
      failed: (why) => {
        if (call.settle === undefined || asked.at(-1) !== worker) return;
        if (why === 'lost' && asked.length < how.maxWorkers) this.#give(call, why);
        else settle(call, why);
      },
    });
    this.#follow(call, worker);
  }

  /** Looks after a call that a worker was asked. */
  #follow(call: Forwarded, worker: AskedWorker): void {
    const { how } = call;
    const sinceMs = performance.now();
    const at = (whenMs: number, then: () => void): void => {
      const isLast = whenMs >= call.untilMs;
      const delayMs = Math.min((isLast ? call.untilMs : whenMs) - performance.now(), MAX_TIMER_MS);
      clearTimeout(call.timer);
      call.timer = setTimeout(isLast ? () => settle(call, 'too_late') : then, Math.max(delayMs, 0));
    };
    const toEnd = (): void => at(Number.POSITIVE_INFINITY, () => {});
    if (how.maxWorkers === 1) {
      toEnd();
      return;
    }
    const { askedAfterMs, unheardMs } = this.#times;
    at(sinceMs + Math.min(askedAfterMs, unheardMs), () => {
      worker.pulse.ask();
      at(sinceMs + unheardMs, () => {
        if (!worker.pulse.heardSince(sinceMs)) this.#give(call, 'silent');
        else if (how.isPatient) this.#follow(call, worker);
        else toEnd();
      });
    });
  }

  #leastBusy(workers: readonly AskedWorker[]): AskedWorker | undefined {
    let chosen: AskedWorker | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (let at = 0; at < workers.length; at++) {
      const worker = workers[(this.#lastId + at) % workers.length] as AskedWorker;
      const count = this.#owes(worker);
      if (count >= fewest) continue;
      chosen = worker;
      fewest = count;
    }
    return chosen;
  }
}

function settle(call: Forwarded, outcome: Calls[CallName]['answer'] | CallFailure): void {
  clearTimeout(call.timer);
  call.settle?.(outcome);
  call.settle = undefined;
}
