import type { HealthVerdict, StoreNode } from '../../admin/health-detail.js';
import type { TopRequest } from '../../admin/top/top-answer.js';
import type { PolicyHandover, XdsUpdate } from '../../config/policy-provider.js';
import type { TlsMaterial } from '../../h2/tls-material.js';
import type { FamilyHead } from '../../telemetry/family-registry.js';
import type { FailureCounts } from '../../telemetry/history/rate-history.js';
import type { RateCounts } from '../../telemetry/rule-series.js';
import type { TopRow, TopSpanSummary } from '../../telemetry/top/top-buckets.js';
import type { ServingAddresses } from '../server-core.js';
import type { Settings } from '../settings/settings-table.js';

/** Messages from the primary process to a worker. */
export type ToWorker =
  | {
      readonly kind: 'start';
      readonly settings: Settings;
      readonly version: string;
      readonly terminal: boolean;
      readonly policies: PolicyHandover;
      /** Certificates in effect, which the worker uses while their files are invalid. Undefined for plain text. */
      readonly tls: TlsMaterial | undefined;
      readonly health: HealthVerdict;
    }
  /** A block of the rows at an address of a table in Redis. `at` counts the blocks. The next `load` uses the rows. */
  | { readonly kind: 'rows'; readonly address: string; readonly at: number; readonly bytes: Uint8Array }
  /** The worker loads the policies, and answers with `loaded`. `updates`: those of management servers. */
  | { readonly kind: 'load'; readonly round: number; readonly updates: readonly XdsUpdate[] }
  /** The policies of this round take effect. */
  | { readonly kind: 'switch'; readonly round: number }
  /** Whether the server as a whole should get requests. */
  | { readonly kind: 'health'; readonly verdict: HealthVerdict }
  /** Checks whether the worker answers, with `pong`. */
  | { readonly kind: 'ping' }
  /** The worker finishes its calls, answers with `drained`, and refuses further calls. */
  | { readonly kind: 'drain'; readonly why: string }
  /** All workers have drained. */
  | { readonly kind: 'end' }
  | CallMessage;

export interface WorkerHealth {
  /** Reason why the worker should get no requests; undefined if it should. */
  readonly reason: string | undefined;
  readonly store: string;
  readonly storeUp: boolean;
  readonly redis: readonly StoreNode[];
  /** Version of the policies in effect, or `none`. */
  readonly policy: string;
}

/** Messages from a worker to the primary process. */
export type FromWorker =
  /** The worker is ready for the `start` message. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'pong' }
  /** The ports are open at these addresses. */
  | { readonly kind: 'listening'; readonly addresses: ServingAddresses; readonly health: WorkerHealth }
  /** The worker cannot start. The lines are those of a StartError. */
  | { readonly kind: 'failed'; readonly lines: readonly string[] }
  /**
   * The worker could not reach Redis in time. The lines are those of a StartError. The worker runs until it receives
   * `drain`.
   */
  | { readonly kind: 'givenUp'; readonly lines: readonly string[] }
  /** The policies of this round are loaded. They take effect with `switch`. */
  | { readonly kind: 'loaded'; readonly round: number }
  | { readonly kind: 'health'; readonly health: WorkerHealth }
  | { readonly kind: 'drained' }
  | CallMessage;

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

type CallName = keyof Calls;

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
