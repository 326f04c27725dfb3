#!/usr/bin/env node
import cluster from 'node:cluster';
import { run } from './cli/run.js';
import { printableLines } from './printable.js';
import { isWorkingDirectoryGone } from './working-directory.js';

/**
 * The only module that touches argv, signals and process.exit. The second SIGTERM or SIGINT ends at once, with the code
 * a shell gives to a process that the signal killed.
 */
const SIGNAL_CODES = { SIGTERM: 143, SIGINT: 130 } as const;

/**
 * Under npm one press of Ctrl-C arrives twice: the terminal sends SIGINT to the whole foreground group, and npm, a
 * member of it, passes on its own. Nobody presses twice within this time.
 */
const ONE_PRESS_MS = process.env['npm_lifecycle_event'] === undefined ? 0 : 200;

type Signal = 'SIGTERM' | 'SIGINT' | 'SIGHUP';
let listener: ((signal: Signal) => void) | undefined;
/** Signals that came before the command listened. */
const early: Signal[] = [];
let stoppingSince: number | undefined;

function notify(signal: Signal): void {
  if (listener === undefined) early.push(signal);
  else listener(signal);
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

const unread = new Set<NodeJS.WriteStream>();
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that goes away (`weir diff … | head`) is no reason for a stack trace, nor to say that all is well: the
    // command goes on, and its exit code is the answer.
    unread.add(stream);
    if (error.code === 'EPIPE') return;
    if (stream === process.stdout) print(process.stderr, `weir: standard output: ${error.message}\n`);
    process.exit(1);
  });
}

function print(stream: NodeJS.WriteStream, text: string): void {
  if (!unread.has(stream)) stream.write(text);
}

/** Resolves when all that was printed is written: a pipe takes 64 KiB at once, the rest when its reader has read. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength === 0 || unread.has(stream)) return Promise.resolve();
  return new Promise((resolve) => {
    stream.write('', () => resolve());
  });
}

async function exit(code: number): Promise<never> {
  await Promise.all([written(process.stdout), written(process.stderr)]);
  // A write that failed is told of a little later.
  await new Promise(setImmediate);
  // Nothing should be left that holds the process; what is must not.
  process.exit(code);
}

function failureText(error: unknown): string {
  if (isWorkingDirectoryGone(error)) return 'the working directory was removed; change to one that is there';
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

// Before anything is loaded: a signal that comes early must not kill what would drain, or reload.
if (['serve', 'ratelimit'].includes(process.argv[2] ?? '') && !cluster.isWorker) watchSignals();
// The primary decides about the end of its workers; a terminal sends its signals to all of them.
if (cluster.isWorker) for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {});

run(process.argv.slice(2), {
  environment: process.env,
  out: (text) => print(process.stdout, text),
  err: (text) => print(process.stderr, text),
  terminal: process.stdout.isTTY === true,
  isRead: () => !unread.has(process.stdout),
  openScreen: async (screenListener) =>
    (await import('./cli/screen/live-screen.js')).openScreen(process, screenListener),
  entry: process.argv[1] ?? __filename,
  worker: cluster.isWorker,
  onSignal: (callback) => {
    listener = callback;
    for (const signal of early.splice(0)) callback(signal);
  },
}).then(exit, (error: unknown) => {
  print(process.stderr, printableLines(`weir: ${failureText(error)}\n`));
  return exit(1);
});
