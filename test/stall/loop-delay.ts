/*
 * Put before weir with NODE_OPTIONS=--require: writes down how long the event loop of the process was busy with one
 * thing. It looks every millisecond, and each look that came late is a line `end late own` in
 * WEIR_LOOP_DELAY_DIR/<pid>: the monotonic clock of all processes at the look, in milliseconds, how late it was, and
 * how much of that was the loop's own, that is without the time for which the kernel let the thread wait for a core.
 */
import { openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';

const LOOK_MS = 1;
/** Looks that come less late say nothing: timers are no better. */
const NOTED_MS = 2;

/**
 * Milliseconds that this thread stood ready to run and had no core, since it began; 0 where the kernel does not say.
 */
function waiting(): () => number {
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
  const waitedMs = waiting();
  let before = nowMs();
  let waitedBefore = waitedMs();
  const look = (): void => {
    const now = nowMs();
    const waited = waitedMs();
    const late = now - before - LOOK_MS;
    if (late >= NOTED_MS) {
      const own = Math.max(0, late - (waited - waitedBefore));
      writeSync(file, `${now.toFixed(2)} ${late.toFixed(2)} ${own.toFixed(2)}\n`);
    }
    before = now;
    waitedBefore = waited;
    setTimeout(look, LOOK_MS).unref();
  };
  look();
}

const folder = process.env['WEIR_LOOP_DELAY_DIR'];
if (isMainThread && folder !== undefined) watch(folder);
