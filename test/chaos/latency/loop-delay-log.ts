import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { preloading } from '../../support/process/preload.js';

/** Returns the time on the monotonic clock that all processes of a machine share, in milliseconds. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * The space for young objects that Node.js 24 chooses in a container of 1 GiB. It is larger on a machine with more
 * memory, where a single collection copies up to 64 MB and can take longer than any task of weir.
 */
const CONTAINER_HEAP = '--max-semi-space-size=16';

/** Returns variables that make weir and each of its workers record their delays in `folder` (loop-delay.ts). */
export function recordingSettings(folder: string): NodeJS.ProcessEnv {
  const NODE_OPTIONS = `${preloading('test/chaos/latency/loop-delay.js')} ${CONTAINER_HEAP}`;
  return { NODE_OPTIONS, WEIR_LOOP_DELAY_DIR: folder };
}

/** Approximate interval between two checks of loop-delay.ts, including the check itself. */
const CHECK_MS = 1.1;

/**
 * Returns a percentile of the event-loop delays since `sinceMs` on the clock of {@link monotonicMs}. `share` is 0.99
 * for the 99th percentile. Returns the highest percentile of all processes, in milliseconds, without the time in which
 * the thread waited for a core. Returns 0 if the delay is too short to be recorded.
 */
export function delayAt(folder: string, sinceMs: number, share: number): number {
  return Math.max(
    ...readdirSync(folder).map((name) => {
      const late: number[] = [];
      let lateMs = 0;
      for (const line of readFileSync(join(folder, name), 'latin1').split('\n')) {
        const [end = 0, wall = 0, own = 0] = line.split(' ').map(Number);
        if (end < sinceMs) continue;
        late.push(own);
        lateMs += wall;
      }
      const checks = late.length + Math.max(0, monotonicMs() - sinceMs - lateMs) / CHECK_MS;
      const beyond = Math.floor(checks * (1 - share));
      return late.sort((one, other) => other - one)[beyond] ?? 0;
    }),
  );
}
