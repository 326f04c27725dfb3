import type { TopRequest } from '../../admin/top/top-request.js';
import type { FamilyHead } from '../../telemetry/family.js';
import type { FailureCounts } from '../../telemetry/history/failure-counts.js';
import type { RateCounts } from '../../telemetry/history/rate-counts.js';
import type { TopRow, TopSpanSummary } from '../../telemetry/top/top-buckets.js';

/** Types of a call between the primary process and a worker: question, parts of the answer, and final answer. */
interface Call<Question, Part, Answer> {
  readonly question: Question;
  readonly part: Part;
  readonly answer: Answer;
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
  readonly top: Call<TopRequest, readonly TopRow[], TopSpanSummary>;
  /** Asks a worker for its decisions since the previous call. */
  readonly rates: Call<undefined, readonly RateCounts[], FailureCounts>;
  /** Asks a worker for its metrics. */
  readonly metrics: Call<undefined, MetricsPart, null>;
  /** Asks the primary process for the body of `/metrics` or `/healthcheck?detail`. */
  readonly text: Call<SharedText, never, Uint8Array>;
}

export type CallName = keyof Calls;

/** Messages between processes about calls. */
export type CallMessage =
  | {
      readonly kind: 'call';
      readonly id: number;
      readonly name: CallName;
      readonly question: Calls[CallName]['question'];
    }
  | { readonly kind: 'part'; readonly id: number; readonly part: Calls[CallName]['part'] }
  /** The answer is undefined if the process has none. */
  | { readonly kind: 'answer'; readonly id: number; readonly answer: Calls[CallName]['answer'] | undefined };

/** Sends a part of an answer. Resolves once the part is sent. */
export type SendPart<Name extends CallName> = (part: Calls[Name]['part']) => Promise<void>;

/** Answers calls by name. A handler returns undefined if it has no answer. */
export type CallHandlers = {
  readonly [Name in CallName]?: (
    question: Calls[Name]['question'],
    sendPart: SendPart<Name>,
  ) => Promise<Calls[Name]['answer'] | undefined>;
};

/** Milliseconds without a part after which a call is given up. */
const PART_TIMEOUT_MS = 1000;

/** A call that the other process has not answered. */
interface PendingCall {
  take(part: unknown): void;
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
   * Asks the other process, and passes the parts of its answer to `take`. Resolves with the final answer, or with
   * undefined if the other process has none, exits, or sends nothing for `timeoutMs`. Never rejects.
   */
  ask<Name extends CallName>(
    name: Name,
    question: Calls[Name]['question'],
    take: (part: Calls[Name]['part']) => void = () => {},
    timeoutMs = PART_TIMEOUT_MS,
  ): Promise<Calls[Name]['answer'] | undefined> {
    return new Promise((resolve) => {
      const id = ++this.#lastId;
      const end = (answer: unknown): void => {
        clearTimeout(timer);
        this.#pending.delete(id);
        resolve(answer as Calls[Name]['answer'] | undefined);
      };
      const timer = setTimeout(end, timeoutMs, undefined);
      this.#pending.set(id, {
        end,
        take(part) {
          take(part as Calls[Name]['part']);
          timer.refresh();
        },
      });
      void this.#send({ kind: 'call', id, name, question });
    });
  }

  /** Handles a message of the other process. Rejects if a handler does. */
  async receive(message: CallMessage): Promise<void> {
    const { id } = message;
    if (message.kind === 'part') this.#pending.get(id)?.take(message.part);
    else if (message.kind === 'answer') this.#pending.get(id)?.end(message.answer);
    else {
      // The compiler does not connect the type of the question with the name.
      const handle = this.#handlers[message.name] as CallHandlers['top'];
      const question = message.question as TopRequest;
      const answer = await handle?.(question, (part) => this.#send({ kind: 'part', id, part }));
      await this.#send({ kind: 'answer', id, answer });
    }
  }

  /** Ends the pending calls, because the other process has exited. */
  close(): void {
    for (const { end } of [...this.#pending.values()]) end(undefined);
  }
}

/** Maximum number of rows in a part. */
export const ROWS_PER_PART = 64;

/** Sends rows in parts. */
export async function sendRows<Row>(
  rows: readonly Row[],
  sendPart: (part: readonly Row[]) => Promise<void>,
): Promise<void> {
  for (let at = 0; at < rows.length; at += ROWS_PER_PART) await sendPart(rows.slice(at, at + ROWS_PER_PART));
}
