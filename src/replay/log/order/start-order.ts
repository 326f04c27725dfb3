import { type Due, DueHeap } from '../../../runtime/due-heap.js';
import type { LineFields } from '../lines/line-fields.js';
import { RowBuffer } from './row-buffer.js';
import { FAR_SECONDS, FEW_REQUESTS, TimeRuns } from './time-runs.js';

/** Maximum number of requests that wait, and of their bytes. Beyond them, the oldest second is released. */
export const MAX_WAITING_REQUESTS = 1_000_000;
export const MAX_WAITING_BYTES = 256 * 1024 * 1024;

const SECOND_MICROS = 1_000_000;

/** The requests that started in one second. */
class Second implements Due {
  /** The second, since 1970. */
  dueAt = 0;
  heapIndex = -1;
  readonly rows = new RowBuffer();
}

/**
 * Sorts requests by the time at which they started. Proxies write a line when a request ends, so a request waits until
 * the log has passed its second by the window. A request whose second was released before is late: it is handed out at
 * once.
 */
export class StartOrder {
  /** Number of requests that were late. */
  late = 0;
  readonly runs: TimeRuns;
  readonly #windowSeconds: number;
  readonly #columns: number;
  readonly #output: RowBuffer;
  readonly #seconds = new Map<number, Second>();
  readonly #heap = new DueHeap<Second>();
  readonly #free: Second[] = [];
  /** Seconds before this one were released. */
  #released = Number.NEGATIVE_INFINITY;
  #latest: Second | undefined;
  #requests = 0;
  #bytes = 0;
  /** Requests in succession that are far before the others. */
  #farInSuccession = 0;

  /** Sorted requests are added to `output`. */
  constructor(windowMicros: number, columns: number, output: RowBuffer) {
    this.#windowSeconds = Math.ceil(windowMicros / SECOND_MICROS);
    this.#columns = columns;
    this.#output = output;
    this.runs = new TimeRuns(output);
  }

  /** Adds the request of a line, which begins at `base` in `lines`. */
  add(startMicros: number, precisionMicros: number, lines: Buffer, base: number, fields: LineFields): void {
    const second = Math.floor(startMicros / SECOND_MICROS);
    if (second < this.#released) {
      // After many of them, the clock of the log was probably set back.
      const isFar = this.#released - second > FAR_SECONDS && ++this.#farInSuccession < FEW_REQUESTS;
      const rows = isFar ? new RowBuffer() : this.#output;
      rows.add(startMicros, precisionMicros, lines, base, fields, this.#columns);
      if (isFar) this.runs.addFar(rows);
      else this.late++;
      return;
    }
    this.#farInSuccession = 0;
    const { rows } = this.#latest?.dueAt === second ? this.#latest : this.#secondOf(second);
    const before = rows.length;
    rows.add(startMicros, precisionMicros, lines, base, fields, this.#columns);
    this.#requests++;
    this.#bytes += rows.length - before;
    if (this.#requests > MAX_WAITING_REQUESTS || this.#bytes > MAX_WAITING_BYTES) this.#releaseFirst();
  }

  /**
   * Releases the earliest second if a log with this clock has passed it by the window. Returns false if none is due.
   * A clock of infinity releases all seconds.
   */
  release(clockMicros: number): boolean {
    const { first } = this.#heap;
    if (first === undefined) {
      if (clockMicros === Number.POSITIVE_INFINITY) this.runs.end();
      return false;
    }
    if (first.dueAt >= Math.floor(clockMicros / SECOND_MICROS) - this.#windowSeconds) return false;
    this.#releaseFirst();
    return true;
  }

  #releaseFirst(): void {
    const second = this.#heap.first as Second;
    this.#heap.remove(second);
    this.#seconds.delete(second.dueAt);
    if (this.#latest === second) this.#latest = undefined;
    this.#released = second.dueAt + 1;
    this.#requests -= second.rows.count;
    this.#bytes -= second.rows.length;
    this.runs.add(second.dueAt, second.rows);
    if (this.#free.length < MAX_FREE) this.#free.push(second);
  }

  #secondOf(number: number): Second {
    let second = this.#seconds.get(number);
    if (second === undefined) {
      second = this.#free.pop() ?? new Second();
      second.dueAt = number;
      this.#seconds.set(number, second);
      this.#heap.add(second);
    }
    this.#latest = second;
    return second;
  }
}

/** Buffers of released seconds that are kept for others. */
const MAX_FREE = 8;
