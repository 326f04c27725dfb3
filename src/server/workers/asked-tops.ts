import type { TopRow, TopSpanAbout } from '../../telemetry/top/top-buckets.js';
import type { TopAsk, TopTold } from '../top/top-ask.js';
import type { FromWorker, ToWorker } from './messages.js';

/** So many rows go into a message. */
export const ROWS_A_MESSAGE = 64;
/** A worker that does not tell, or tell on, for so long is left out. */
const WAIT_MS = 1000;

/** What a worker has yet to tell. */
interface WaitingTop {
  readonly rows: TopRow[];
  /** A part of it came. */
  goesOn(): void;
  /** That was all; without `about` it never came. */
  done(about?: TopSpanAbout): void;
}

/** What workers are asked about buckets. */
export class AskedTops {
  readonly #waiting = new Map<number, WaitingTop>();
  readonly #waitMs: number;
  #lastId = 0;

  constructor(waitMs = WAIT_MS) {
    this.#waitMs = waitMs;
  }

  /** Asks each of them; those that do not answer are left out. */
  async ask(
    workers: readonly { send(message: ToWorker): unknown }[],
    ask: TopAsk,
  ): Promise<readonly TopTold[]> {
    const told = await Promise.all(workers.map((worker) => this.#askOne(worker, ask)));
    return told.filter((one) => one !== undefined);
  }

  add(message: Extract<FromWorker, { kind: 'top_part' | 'top_end' }>): void {
    const waiting = this.#waiting.get(message.id);
    if (message.kind === 'top_end') waiting?.done(message.about);
    else {
      waiting?.rows.push(...message.rows);
      waiting?.goesOn();
    }
  }

  #askOne(worker: { send(message: ToWorker): unknown }, ask: TopAsk): Promise<TopTold | undefined> {
    const id = ++this.#lastId;
    const rows: TopRow[] = [];
    return new Promise((resolve) => {
      const done = (about?: TopSpanAbout): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(about === undefined ? undefined : { rows, about });
      };
      const timer = setTimeout(done, this.#waitMs);
      this.#waiting.set(id, { rows, done, goesOn: () => timer.refresh() });
      worker.send({ kind: 'top', id, ask });
    });
  }
}
