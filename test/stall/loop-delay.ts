/*
 * Records the delays of weir's event loop. Loaded with NODE_OPTIONS=--require. A timer runs every millisecond. If the
 * timer is late, the script appends a line `end late own` to WEIR_LOOP_DELAY_DIR/<pid>. `end` is the time on the
 * monotonic clock that all processes share, and `late` is the delay. `own` is the delay without the time in which the
 * thread waited for a core. All values are in milliseconds.
 */
import { openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';

const TIMER_MS = 1;
/** Minimum delay that is recorded. Timers are not exact enough for shorter delays. */
const MIN_RECORDED_MS = 2;

/**
 * Returns a function for the milliseconds in which this thread waited for a core so far. The function returns 0 if the
 * kernel does not report this time.
 */
function coreWaitReader(): () => number {
  let file: number;
  try {
    file = openSync('/proc/thread-self/schedstat', 'r');
  } catch {
    return () => 0;
  }
  const bytes = Buffer.alloc(80);
  return () => {
    const length = readSync(file, bytes, 0, bytes.length, 0);
    return Number(bytes.toString('latin1', 0, length).split(' ')[1]) / 1e6;
  };
}

const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

function watch(folder: string): void {
  const file = openSync(join(folder, String(process.pid)), 'a');
  const waitedMs = coreWaitReader();
  let before = nowMs();
  let waitedBefore = waitedMs();
  const check = (): void => {
    const now = nowMs();
    const waited = waitedMs();
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
