import type { TopRequest } from '../../admin/top/top-answer.js';
import type { RateCounts } from '../../telemetry/counted-rule.js';
import type { FamilyHead } from '../../telemetry/family.js';
import type { FailureCounts } from '../../telemetry/history/failure-counts.js';
import type { TopRow, TopSpanSummary } from '../../telemetry/top/top-buckets.js';

/** Types of a call between the primary process and a worker: question, rows of the answer, and the rest of it. */
interface Call<Question, Row, About> {
  readonly question: Question;
  readonly row: Row;
  readonly about: About;
}

/** A sample of a metric: the name with its labels in text format, and the value. */
export type Sample = readonly [series: string, value: number];

/** Samples of a metric family, or of the statistics of `/stats`. Parts of the same family follow each other. */
export interface MetricsPart {
  readonly of: 'metrics' | 'stats';
  readonly family: FamilyHead;
  readonly samples: readonly Sample[];
}

/** A text of the HTTP port that describes all processes. */
export type SharedText = 'metrics' | 'health';

/** All calls between processes, by name. */
export interface Calls {
  /** Asks a worker for its most active buckets. */
  readonly top: Call<TopRequest, TopRow, TopSpanSummary>;
  /** Asks a worker for its decisions since the previous call. */
  readonly rates: Call<undefined, RateCounts, FailureCounts>;
  /** Asks a worker for its metrics. */
  readonly metrics: Call<undefined, MetricsPart, null>;
  /** Asks the primary process for the body of `/metrics` or `/healthcheck?detail`. */
  readonly text: Call<SharedText, never, Uint8Array>;
}

export type CallName = keyof Calls;

export interface Answer<Name extends CallName> {
  readonly rows: readonly Calls[Name]['row'][];
  readonly about: Calls[Name]['about'];
}

/** Answers calls by name, with rows that are sent in parts. A handler returns undefined if it has no answer. */
export type CallHandlers = {
  readonly [Name in CallName]?: (question: Calls[Name]['question']) => Promise<
    | {
        readonly rows?: Iterable<Calls[Name]['row']>;
        readonly about: Calls[Name]['about'];
      }
    | undefined
  >;
};

/** Messages between processes about calls. */
export type CallMessage =
  | {
      readonly kind: 'call';
      readonly id: number;
      readonly name: CallName;
      readonly question: Calls[CallName]['question'];
    }
  | { readonly kind: 'part'; readonly id: number; readonly rows: readonly Calls[CallName]['row'][] }
  /** The end of an answer. Undefined if the process has none. */
  | { readonly kind: 'answer'; readonly id: number; readonly about: Calls[CallName]['about'] | undefined };

/** Milliseconds without a part after which a call is given up. */
const PART_TIMEOUT_MS = 1000;

/** Maximum number of rows in a part, so that a process does other work in between. */
const ROWS_PER_PART: Readonly<Record<CallName, number>> = { top: 64, rates: 64, metrics: 1, text: 0 };

/** A call that the other process has not answered. */
interface PendingCall {
  readonly rows: unknown[];
  readonly timer: NodeJS.Timeout;
  end(answer: unknown): void;
}

/** Calls in both directions between this process and another one. */
export class CallChannel {
  readonly #send: (message: CallMessage) => Promise<void>;
  readonly #handlers: CallHandlers;
  readonly #pending = new Map<number, PendingCall>();
  #lastId = 0;

  /** `send` resolves once the message is sent, or if the other process has exited. */
  constructor(send: (message: CallMessage) => Promise<void>, handlers: CallHandlers) {
    this.#send = send;
    this.#handlers = handlers;
  }

  /**
   * Asks the other process. Resolves with undefined if it has no answer, exits, or sends nothing for `timeoutMs`. Never
   * rejects.
   */
  ask<Name extends CallName>(
    name: Name,
    question: Calls[Name]['question'],
    timeoutMs = PART_TIMEOUT_MS,
  ): Promise<Answer<Name> | undefined> {
    return new Promise((resolve) => {
      const id = ++this.#lastId;
      const end = (answer: unknown): void => {
        clearTimeout(timer);
        this.#pending.delete(id);
        resolve(answer as Answer<Name> | undefined);
      };
      const timer = setTimeout(end, timeoutMs, undefined);
      this.#pending.set(id, { rows: [], timer, end });
      void this.#send({ kind: 'call', id, name, question });
    });
  }

  /** Handles a message of the other process. Rejects if a handler does. */
  async receive(message: CallMessage): Promise<void> {
    if (message.kind === 'call') return this.#answer(message);
    const pending = this.#pending.get(message.id);
    if (message.kind === 'part') {
      pending?.rows.push(...message.rows);
      pending?.timer.refresh();
    } else {
      const { about } = message;
      pending?.end(about === undefined ? undefined : { rows: pending.rows, about });
    }
  }

  /** Ends the pending calls, because the other process has exited. */
  close(): void {
    for (const { end } of [...this.#pending.values()]) end(undefined);
  }

  async #answer({ id, name, question }: Extract<CallMessage, { kind: 'call' }>): Promise<void> {
    // The compiler does not connect the type of the question with the name.
    const handle = this.#handlers[name] as CallHandlers['top'];
    const answer = await handle?.(question as TopRequest);
    let part: TopRow[] = [];
    for (const row of answer?.rows ?? []) {
      part.push(row);
      if (part.length < ROWS_PER_PART[name]) continue;
      await this.#send({ kind: 'part', id, rows: part });
      part = [];
    }
    if (part.length > 0) await this.#send({ kind: 'part', id, rows: part });
    await this.#send({ kind: 'answer', id, about: answer?.about });
  }
}
