import { CALENDARS } from '../limiter/calendar.js';
import type { Clock } from '../limiter/clock.js';
import { runInTurns } from '../runtime/turns.js';

/**
 * The shortest window of a calendar is most of a day, and what is computed lasts for two: a look now and then is
 * enough.
 */
const INTERVAL_MS = 60_000;

/**
 * Computes the windows of calendars ahead of time, a few in a turn of the event loop, as long as this process runs: at
 * a midnight many begin at once, and the request that meets them must not wait. Holds no process; returns what ends it.
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
