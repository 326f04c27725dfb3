import { GapFinder } from '../sampling/gap-finder.js';
import { RowBuffer } from './row-buffer.js';

/** A distance in time after which a few requests are taken to have a wrong time. */
export const FAR_SECONDS = 7 * 86_400;
/** Fewer requests than this may have a wrong time. */
export const FEW_REQUESTS = 10;
/** A wrong time is only assumed if another part of the log has at least this many times as many requests. */
const TIMES_MORE = 5;

/** Requests without a distance of {@link FAR_SECONDS} between them. */
class Run {
  readonly rows = new RowBuffer();
  readonly seconds: (readonly [second: number, requests: number])[] = [];
}

/**
 * Hands out sorted requests. A few of them that are far from all others, such as requests of the year 1970, have a
 * wrong time. They get the time of the request before them, so that they change no answer about the others: not the end
 * of a warm-up, the span of the log, or its gaps.
 */
export class TimeRuns {
  readonly gaps = new GapFinder();
  /** Number of requests that were far from all others. */
  far = 0;
  readonly #output: RowBuffer;
  /** Far requests that wait for the next others. */
  readonly #farRows = new RowBuffer();
  /** Runs that wait until one of them is long enough to judge the others. */
  #runs: Run[] = [];
  /** Whether the latest run is long enough. */
  #isLong = false;
  #hadLong = false;
  #lastSecond = Number.NEGATIVE_INFINITY;
  #lastMicros: number | undefined;

  constructor(output: RowBuffer) {
    this.#output = output;
  }

  /** Adds the requests of the next second, and empties `rows`. */
  add(second: number, rows: RowBuffer): void {
    if (second - this.#lastSecond > FAR_SECONDS) {
      this.#isLong = false;
      this.#runs.push(new Run());
    }
    this.#lastSecond = second;
    if (this.#isLong) {
      this.gaps.add(second, rows.count);
      this.#moveOut(rows);
      return;
    }
    const run = this.#runs.at(-1) as Run;
    run.seconds.push([second, rows.count]);
    rows.moveTo(run.rows);
    if (run.rows.count >= FEW_REQUESTS * TIMES_MORE) this.judge();
  }

  /** Moves requests that are far before the latest others. */
  addFar(rows: RowBuffer): void {
    this.far += rows.count;
    rows.moveTo(this.#farRows);
  }

  /** Hands out the runs that wait: because one of them is long enough, or at the end of the log. */
  judge(): void {
    const counts = this.#runs.map(({ rows }) => rows.count);
    const most = this.#hadLong ? Number.POSITIVE_INFINITY : Math.max(...counts);
    for (const { rows, seconds } of this.#runs) {
      if (rows.count < FEW_REQUESTS && rows.count * TIMES_MORE <= most) {
        this.addFar(rows);
        continue;
      }
      for (const [second, requests] of seconds) this.gaps.add(second, requests);
      this.#moveOut(rows);
    }
    this.#runs = [];
    this.#isLong = true;
    this.#hadLong ||= most >= FEW_REQUESTS * TIMES_MORE;
  }

  /** Hands out all requests that wait, at the end of the log. */
  end(): void {
    this.judge();
    if (this.#farRows.count > 0) this.#farRows.moveTo(this.#output, this.#lastMicros);
  }

  #moveOut(rows: RowBuffer): void {
    if (this.#farRows.count > 0) this.#farRows.moveTo(this.#output, this.#lastMicros ?? rows.earliestMicros);
    rows.moveTo(this.#output);
    this.#lastMicros = this.#output.lastMicros;
  }
}
