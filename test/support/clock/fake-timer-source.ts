import type { TimerSource } from '../../../src/runtime/timers.js';

/** A clock that advances when a test advances it, and then runs the due timers. */
export class FakeTimerSource implements TimerSource {
  /** Number of timers set so far. */
  timersSet = 0;
  #nowMs = 1000;
  readonly #timers = new Map<number, { atMs: number; callback: () => void }>();

  get waiting(): number {
    return this.#timers.size;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  set(callback: () => void, delayMs: number): unknown {
    this.#timers.set(++this.timersSet, { atMs: this.#nowMs + delayMs, callback });
    return this.timersSet;
  }

  clear(timer: unknown): void {
    this.#timers.delete(timer as number);
  }

  nextTurn(callback: () => void): void {
    this.set(callback, 0);
  }

  /** Advances the clock before it runs the due timers, as when one turn of the event loop takes `ms`. */
  stall(ms: number): void {
    this.#nowMs += ms;
    this.advance(0);
  }

  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const due = [...this.#timers].filter(([, { atMs }]) => atMs <= untilMs);
      const [id, timer] = due.sort(([, a], [, b]) => a.atMs - b.atMs)[0] ?? [];
      if (id === undefined || timer === undefined) break;
      this.#timers.delete(id);
      this.#nowMs = Math.max(this.#nowMs, timer.atMs);
      timer.callback();
    }
    this.#nowMs = untilMs;
  }
}
