// Kills all descendants of this process when a signal ends this process.
import { constants } from 'node:os';
import { killMarked, MARK } from './leftovers.mjs';
import { say } from './shell.mjs';

/** Maximum time for killed processes to end. */
const GONE_MS = 1500;

let stopping = false;

/** Resolves immediately, but never while a signal ends this process, because failures are then meaningless. */
export const unlessStopping = () => (stopping ? new Promise(() => {}) : undefined);

/**
 * Marks all future child processes. SIGINT, SIGTERM and SIGHUP kill all processes with the mark: an interrupted test
 * run ends within two seconds and leaves no process.
 */
export function stopOnSignals() {
  process.env[MARK] = `${process.pid}-${Date.now()}`;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => void stop(signal));
}

async function stop(signal) {
  if (stopping) return;
  stopping = true;
  say(`stopped by ${signal}`);
  await killMarked(process.env[MARK], GONE_MS);
  process.exit(128 + constants.signals[signal]);
}
