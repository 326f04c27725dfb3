// Ends everything that this process has started, and what that has started, when a signal ends this process.
import { constants } from 'node:os';
import { killMarked, MARK } from './leftovers.mjs';
import { say } from './shell.mjs';

/** How long what is killed may take to be gone. */
const GONE_MS = 1500;

let stopping = false;

/** Resolves at once, but never while a signal ends this process: what then fails says nothing. */
export const unlessStopping = () => (stopping ? new Promise(() => {}) : undefined);

/**
 * From here on every child inherits a mark, and SIGINT, SIGTERM and SIGHUP kill all that bear it: an interrupted test
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
