import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { preloading } from '../support/process/preload.js';

/** Longest that event loops were busy with one thing, in milliseconds. */
export interface LoopDelay {
  /** By the clock. */
  readonly wallMs: number;
  /** Without the time in which the thread had no core. */
  readonly ownMs: number;
}

/** The monotonic clock that all processes of a machine share, in milliseconds. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Settings that make weir, and each of its workers, write down its delays in `folder` (loop-delay.ts). */
export function recordingSettings(folder: string): NodeJS.ProcessEnv {
  return { NODE_OPTIONS: preloading('test/stall/loop-delay.js'), WEIR_LOOP_DELAY_DIR: folder };
}

/** The processes that write to `folder`. */
export function recordedPids(folder: string): number[] {
  return readdirSync(folder).map(Number);
}

/** The longest delay of any process that ended after `sinceMs` of {@link monotonicMs}. */
export function longestDelay(folder: string, sinceMs: number): LoopDelay {
  let wallMs = 0;
  let ownMs = 0;
  for (const name of readdirSync(folder)) {
    for (const line of readFileSync(join(folder, name), 'latin1').split('\n')) {
      const [end = 0, late = 0, own = 0] = line.split(' ').map(Number);
      if (end < sinceMs) continue;
      wallMs = Math.max(wallMs, late);
      ownMs = Math.max(ownMs, own);
    }
  }
  return { wallMs, ownMs };
}

/** What loop-delay.ts waits between two looks at an event loop, and a look itself takes, about. */
const LOOK_MS = 1.1;

/**
 * The delay that a share of all looks, such as 0.99, did not exceed since `sinceMs` of {@link monotonicMs}, in the
 * worst of the processes; without the time in which the thread had no core. Milliseconds; 0 where it is too short to be
 * noted.
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
      const looks = late.length + Math.max(0, monotonicMs() - sinceMs - lateMs) / LOOK_MS;
      const beyond = Math.floor(looks * (1 - share));
      return late.sort((one, other) => other - one)[beyond] ?? 0;
    }),
  );
}
