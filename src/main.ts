#!/usr/bin/env node
import { run } from './cli/run.js';

/**
 * The only module that touches argv, signals and process.exit. The second SIGTERM or SIGINT ends at once, with the code a shell gives
 * to a process that the signal killed.
 */
const SIGNAL_CODES = { SIGTERM: 143, SIGINT: 130 } as const;

/**
 * Under npm one press of Ctrl-C arrives twice: the terminal sends SIGINT to the whole foreground group, and npm, a member of it, passes on
 * its own. Nobody presses twice within this time.
 */
const ONE_PRESS_MS = process.env['npm_lifecycle_event'] === undefined ? 0 : 200;

const listeners: ((signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP') => void)[] = [];
let stoppingSince: number | undefined;

function notify(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): void {
  for (const listener of listeners) listener(signal);
}

function watchSignals(): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stoppingSince !== undefined) {
        if (signal === 'SIGINT' && performance.now() - stoppingSince < ONE_PRESS_MS) return;
        process.exit(SIGNAL_CODES[signal]);
      }
      stoppingSince = performance.now();
      notify(signal);
    });
  }
  process.on('SIGHUP', () => notify('SIGHUP'));
}

// A reader of our output that goes away (`weir explain … | head`) is no reason for a stack trace.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
}

run(process.argv.slice(2), {
  environment: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  terminal: process.stdout.isTTY === true,
  onSignal: (listener) => {
    if (listeners.length === 0) watchSignals();
    listeners.push(listener);
  },
}).then(
  (code) => {
    // Nothing should be left that holds the process; what is must not.
    process.exit(code);
  },
  (error: unknown) => {
    process.stderr.write(
      `weir: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    process.exit(1);
  },
);
