import type { TimerSource } from '../../../src/runtime/timers.js';

interface Pending {
  readonly callback: () => void;
  readonly delayMs: number;
}

/** Timers that run when a test runs them. */
export class FakeTimers implements Pick<TimerSource, 'set' | 'clear'> {
  private pending: Pending[] = [];

  set(callback: () => void, delayMs: number): unknown {
    const timer = { callback, delayMs };
    this.pending.push(timer);
    return timer;
  }

  clear(timer: unknown): void {
    this.pending = this.pending.filter((other) => other !== timer);
  }

  /** Delays of the pending timers. */
  get delays(): readonly number[] {
    return this.pending.map((timer) => timer.delayMs);
  }

  /** Runs every pending timer with this delay. Returns the number of timers. */
  run(delayMs: number): number {
    const due = this.pending.filter((timer) => timer.delayMs === delayMs);
    this.pending = this.pending.filter((timer) => timer.delayMs !== delayMs);
    for (const timer of due) timer.callback();
    return due.length;
  }
}
