import type { ToWorker } from './messages.js';

/** So many rows go into a message. */
export const ROWS_A_MESSAGE = 64;
/** A worker that does not tell, or tell on, for so long is left out. */
const WAIT_MS = 1000;

/** Whom a question can be sent to. */
export interface Askable {
  send(message: ToWorker): unknown;
}

/** What a worker has told: rows, and something about all of them. */
export interface ToldList<Row, About> {
  readonly rows: readonly Row[];
  readonly about: About;
}

/** What a worker has yet to tell. */
interface WaitingList<Row, About> {
  readonly rows: Row[];
  /** A part of it came. */
  goesOn(): void;
  /** That was all; undefined: it never came. */
  done(told: ToldList<Row, About> | undefined): void;
}

/** Lists that workers are asked for, and tell in parts. */
export class AskedLists<Ask, Row, About> {
  readonly #waiting = new Map<number, WaitingList<Row, About>>();
  readonly #messageOf: (id: number, ask: Ask) => ToWorker;
  readonly #waitMs: number;
  #lastId = 0;

  /** `messageOf` makes the message of a question. */
  constructor(messageOf: (id: number, ask: Ask) => ToWorker, waitMs = WAIT_MS) {
    this.#messageOf = messageOf;
    this.#waitMs = waitMs;
  }

  /** Asks each of them; those that do not answer are left out. */
  async ask(workers: readonly Askable[], ask: Ask): Promise<readonly ToldList<Row, About>[]> {
    const told = await Promise.all(workers.map((worker) => this.#askOne(worker, ask)));
    return told.filter((one) => one !== undefined);
  }

  /** A part of an answer came. */
  add(id: number, rows: readonly Row[]): void {
    const waiting = this.#waiting.get(id);
    waiting?.rows.push(...rows);
    waiting?.goesOn();
  }

  /** That was all of an answer. */
  end(id: number, about: About): void {
    const waiting = this.#waiting.get(id);
    waiting?.done({ rows: waiting.rows, about });
  }

  #askOne(worker: Askable, ask: Ask): Promise<ToldList<Row, About> | undefined> {
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      const done = (told: ToldList<Row, About> | undefined): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(told);
      };
      const timer = setTimeout(() => done(undefined), this.#waitMs);
      this.#waiting.set(id, { rows: [], done, goesOn: () => timer.refresh() });
      worker.send(this.#messageOf(id, ask));
    });
  }
}
