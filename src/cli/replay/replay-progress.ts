import type { ReadTotals } from '../../replay/log/logged-request.js';
import { type Io, PROGRESS_MS } from '../io.js';

/** Interval of progress messages without a terminal, in milliseconds. */
const LINE_MS = 10_000;
/** Interval of the progress bar. */
const BAR_MS = 250;
const BAR_WIDTH = 24;

/** Standard error, without escaping of control characters. */
export interface ProgressOutput {
  readonly err: Io['err'];
  readonly isTerminal: boolean;
}

/** Shows how much of a log was read: a bar on a terminal, otherwise a line in ten seconds. */
export class ReplayProgress {
  readonly #output: ProgressOutput;
  readonly #command: string;
  readonly #nowMs: () => number;
  readonly #startMs: number;
  #dueMs: number;
  #hasBar = false;

  constructor(command: string, output: ProgressOutput, nowMs: () => number = () => performance.now()) {
    this.#command = command;
    this.#output = output;
    this.#nowMs = nowMs;
    this.#startMs = nowMs();
    this.#dueMs = this.#startMs + (output.isTerminal ? PROGRESS_MS : LINE_MS);
  }

  show({ lines, bytesRead, bytesTotal }: Pick<ReadTotals, 'lines' | 'bytesRead' | 'bytesTotal'>): void {
    const now = this.#nowMs();
    if (now < this.#dueMs) return;
    this.#dueMs = now + (this.#output.isTerminal ? BAR_MS : LINE_MS);
    const seconds = (now - this.#startMs) / 1000;
    const perSecond = Math.round(lines / seconds);
    const rate = `${perSecond < 1000 ? perSecond : `${Math.round(perSecond / 1000)},000`} lines/s`;
    const share = bytesTotal === undefined || bytesTotal === 0 ? undefined : bytesRead / bytesTotal;
    const left = share === undefined || share === 0 ? '' : `, ${Math.ceil(seconds / share - seconds)} s left`;
    const read = share === undefined ? `${lines} lines` : `${Math.floor(100 * share)}%`;
    if (!this.#output.isTerminal) {
      this.#output.err(`weir ${this.#command}: ${read} read, ${rate}${left}\n`);
      return;
    }
    this.#hasBar = true;
    const full = Math.round(BAR_WIDTH * (share ?? 0));
    this.#output.err(`\r[${'#'.repeat(full)}${'.'.repeat(BAR_WIDTH - full)}] ${read}, ${rate}${left}   `);
  }

  /** Ends the line of the bar. */
  end(): void {
    if (this.#hasBar) this.#output.err('\n');
  }
}
