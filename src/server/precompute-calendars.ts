import { CALENDARS } from '../limiter/calendar.js';
import type { Clock } from '../limiter/clock.js';
import { runInTurns } from '../runtime/turns.js';

/**
 * Milliseconds between two runs. The shortest calendar window is most of a day and two windows are computed ahead, so a
 * run per minute is enough.
 */
const INTERVAL_MS = 60_000;

/**
 * Computes calendar windows ahead of time, a few in each turn of the event loop. Many windows begin at midnight, and
 * requests must not wait for the computation. The timer does not keep the process alive. Returns a function that stops
 * it.
 */
export function precomputeCalendars(clock: Pick<Clock, 'wallMicros'>): () => void {
  let isBusy = false;
  const prepare = async (): Promise<void> => {
    if (isBusy) return;
    isBusy = true;
    await runInTurns(CALENDARS.prepare(clock.wallMicros()));
    isBusy = false;
  };
  const timer = setInterval(() => void prepare(), INTERVAL_MS).unref();
  return () => clearInterval(timer);
}
