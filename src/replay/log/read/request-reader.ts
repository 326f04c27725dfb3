import type { LineFault, LineFields } from '../lines/line-fields.js';
import { LogError, type ReadTotals } from '../logged-request.js';
import type { PackedRequests } from '../order/row-buffer.js';
import { RowBuffer } from '../order/row-buffer.js';
import { StartOrder } from '../order/start-order.js';
import { SamplingEvidence } from '../sampling/sampling.js';
import type { LineSink, LogFile } from './log-file.js';
import { UnreadableCounts } from './unreadable-lines.js';

/** Requests, or bytes of their values, that are handed out together. */
const BATCH_REQUESTS = 8192;
const BATCH_BYTES = 1024 * 1024;
/** Chunks after which totals are handed out, even without requests. */
const BATCH_CHUNKS = 16;

/** Requests in the order of their start, with the totals so far. */
export interface PackedBatch extends PackedRequests {
  readonly totals: ReadTotals;
}

/** Options of {@link RequestReader}. */
export interface ReadOptions {
  /** Number of values of each request. */
  readonly columns: number;
  /** Longest time from the start of a request to the moment when its line is written. */
  readonly windowMicros: number;
  /** Largest share of lines that cannot be read. */
  readonly maxUnreadable: number;
  /** Share of the requests that the log contains, if the user named it. */
  readonly statedShare?: number;
}

/**
 * Reads files into one sequence of requests by start. The file whose clock is the earliest is read next, and a second
 * is released when the clocks of all files have passed it.
 */
export class RequestReader implements LineSink {
  readonly #files: readonly LogFile[];
  readonly #output = new RowBuffer();
  readonly #order: StartOrder;
  readonly #unreadable: UnreadableCounts;
  readonly sampling: SamplingEvidence;
  #requests = 0;
  #skipped = 0;

  constructor(files: readonly LogFile[], options: ReadOptions) {
    this.#files = files;
    this.#order = new StartOrder(options.windowMicros, options.columns, this.#output);
    this.#unreadable = new UnreadableCounts(options.maxUnreadable, files.length);
    this.sampling = new SamplingEvidence(options.statedShare);
  }

  /** Reads all files. The last batch may be empty. Throws {@link LogError}. */
  async *read(): AsyncGenerator<PackedBatch> {
    const open = new Set(this.#files);
    let chunks = 0;
    try {
      while (open.size > 0) {
        const file = earliest(open);
        if (!(await file.read(this))) {
          open.delete(file);
          file.source.close();
        }
        this.#unreadable.check(this.#lines, false);
        const clock = open.size === 0 ? Number.POSITIVE_INFINITY : earliest(open).clockMicros;
        while (this.#order.release(clock)) if (this.#isFull) yield this.#take();
        if (++chunks % BATCH_CHUNKS === 0 || this.#isFull) yield this.#take();
      }
      this.#unreadable.check(this.#lines, true);
      if (this.#lines === 0) throw new LogError(`${names(this.#files)} has no lines`);
      yield this.#take();
    } finally {
      for (const { source } of this.#files) source.close();
    }
  }

  add(startMicros: number, precisionMicros: number, lines: Buffer, base: number, fields: LineFields): void {
    this.#requests++;
    this.#order.add(startMicros, precisionMicros, lines, base, fields);
  }

  addUnreadable(fault: LineFault, file: LogFile, line: string): void {
    this.#unreadable.add(fault, file.source.name, file.lineNumber, line);
  }

  addSkipped(): void {
    this.#skipped++;
  }

  get #lines(): number {
    return this.#files.reduce((sum, { lines }) => sum + lines, 0);
  }

  get #isFull(): boolean {
    return this.#output.count >= BATCH_REQUESTS || this.#output.length >= BATCH_BYTES;
  }

  #take(): PackedBatch {
    return { ...this.#output.take(), totals: this.#totals() };
  }

  /** Returns what one of the files shows of each value. */
  #seen(): readonly number[] {
    const [first, ...others] = this.#files.map(({ seen }) => [...seen]);
    return (first ?? []).map((known, i) => Math.max(known, ...others.map((seen) => seen[i] ?? 0)));
  }

  #totals(): ReadTotals {
    let bytesTotal: number | undefined = 0;
    for (const { source } of this.#files)
      bytesTotal =
        source.size === undefined || bytesTotal === undefined ? undefined : bytesTotal + source.size;
    return {
      lines: this.#lines,
      requests: this.#requests,
      late: this.#order.late,
      far: this.#order.runs.far,
      skipped: this.#skipped,
      unreadable: this.#unreadable.list,
      holdEnds: this.#files.reduce((sum, { holdEnds }) => sum + holdEnds, 0),
      seen: this.#seen(),
      incomplete: this.sampling.found(this.#order.runs.gaps),
      bytesRead: this.#files.reduce((sum, { source }) => sum + source.bytesRead, 0),
      bytesTotal,
    };
  }
}

function earliest(files: Iterable<LogFile>): LogFile {
  let first: LogFile | undefined;
  for (const file of files) if (first === undefined || file.clockMicros < first.clockMicros) first = file;
  return first as LogFile;
}

function names(files: readonly LogFile[]): string {
  return files.map(({ source }) => source.name).join(', ');
}
