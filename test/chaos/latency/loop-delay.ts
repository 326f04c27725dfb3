/*
 * Records the delays of weir's event loop. Loaded with NODE_OPTIONS=--require. A timer runs every millisecond. If the
 * timer is late, the script appends a line `end late own` to WEIR_LOOP_DELAY_DIR/<pid>. `end` is the time on the
 * monotonic clock that all processes share, and `late` is the delay. `own` is the delay without the time in which the
 * thread waited for a core. All values are in milliseconds.
 */
import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { threadTimes } from '../../support/process/thread-times.js';

const TIMER_MS = 1;
/** Minimum delay that is recorded. Timers are not exact enough for shorter delays. */
const MIN_RECORDED_MS = 2;

const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

function watch(folder: string): void {
  const file = openSync(join(folder, String(process.pid)), 'a');
  const times = threadTimes();
  let before = nowMs();
  let waitedBefore = times()[1];
  const check = (): void => {
    const now = nowMs();
    const waited = times()[1];
    const late = now - before - TIMER_MS;
    if (late >= MIN_RECORDED_MS) {
      const own = Math.max(0, late - (waited - waitedBefore));
      writeSync(file, `${now.toFixed(2)} ${late.toFixed(2)} ${own.toFixed(2)}\n`);
    }
    before = now;
    waitedBefore = waited;
    setTimeout(check, TIMER_MS).unref();
  };
  check();
}

const folder = process.env['WEIR_LOOP_DELAY_DIR'];
if (isMainThread && folder !== undefined) watch(folder);
