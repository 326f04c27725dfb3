#!/usr/bin/env node
import cluster from 'node:cluster';
import { run } from './cli/run.js';
import { printableLines } from './runtime/printable.js';
import { isWorkingDirectoryGone } from './runtime/working-directory.js';

/*
 * The only module that uses argv, signals and process.exit. A second SIGTERM or SIGINT ends the process immediately,
 * with the exit code that a shell reports for a process killed by that signal.
 */

/**
 * Under npm, one Ctrl-C arrives twice: the terminal sends SIGINT to the whole foreground process group, and npm, a
 * member of the group, forwards its own SIGINT. Signals within this time, in milliseconds, count as one.
 */
const ONE_PRESS_MS = process.env['npm_lifecycle_event'] === undefined ? 0 : 200;

/** Exit codes that shells report for processes that a signal ended. */
const SIGNAL_CODES = { SIGINT: 130, SIGTERM: 143 };

type Signal = 'SIGTERM' | 'SIGINT' | 'SIGHUP';
let listener: ((signal: Signal) => void) | undefined;
/** Signals that arrived before the command listened for them. */
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
    // A reader that closes the pipe early (`weir diff … | head`) must not cause a stack trace or a success code. The
    // command continues and returns its own exit code.
    unread.add(stream);
    if (error.code === 'EPIPE') return;
    if (stream === process.stdout)
      print(process.stderr, `weir: cannot write to standard output: ${error.message}\n`);
    process.exit(1);
  });
}

function print(stream: NodeJS.WriteStream, text: string): void {
  if (!unread.has(stream)) stream.write(text);
}

/** Resolves when all output is written. A pipe accepts 64 KiB immediately, and the rest after its reader has read. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength === 0 || unread.has(stream)) return Promise.resolve();
  return new Promise((resolve) => {
    stream.write('', () => resolve());
  });
}

async function exit(code: number): Promise<never> {
  await Promise.all([written(process.stdout), written(process.stderr)]);
  // A failed write is reported slightly later.
  await new Promise(setImmediate);
  // Nothing should keep the process running at this point. Whatever does must not delay the exit.
  process.exit(code);
}

function failureText(error: unknown): string {
  if (isWorkingDirectoryGone(error))
    return 'the working directory was removed; change to an existing directory';
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Commands that a signal does not kill: they drain, reload, or print what they have found. */
const WATCHING_SIGNALS = ['serve', 'ratelimit', 'replay'];
// Watch signals before loading other modules: an early signal must not kill the process.
const [command = ''] = process.argv.slice(2);
if (WATCHING_SIGNALS.includes(command) && !cluster.isWorker) watchSignals();
// A terminal sends its signals to all processes. Workers ignore them, because the primary decides when workers exit.
if (cluster.isWorker) for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {});

run(process.argv.slice(2), {
  environment: process.env,
  out: (text) => print(process.stdout, text),
  err: (text) => print(process.stderr, text),
  terminal: process.stdout.isTTY === true,
  isRead: () => !unread.has(process.stdout),
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
