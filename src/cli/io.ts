import type { Screen, ScreenListener } from './screen/live-screen.js';

/** The process as commands see it: main.ts hands in the real one, tests another. */
export interface Io {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Standard output, without a line end added. */
  out(text: string): void;
  /** Standard error, likewise. */
  err(text: string): void;
  /** Whether standard output is a terminal: colours only there, see showsColours. */
  readonly terminal: boolean;
  /** False once the reader of standard output has gone: what prints again and again ends then. */
  isRead(): boolean;
  /** Takes the whole terminal, until the screen is closed. */
  openScreen(listener: ScreenListener): Promise<Screen>;
  /** The script this process runs; worker processes run it too. */
  readonly entry: string;
  /** Whether this process is a worker of another `weir serve`. */
  readonly worker: boolean;
  /** Calls back on each SIGTERM and SIGINT, and on SIGHUP. */
  onSignal(listener: (signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP') => void): void;
}

/** A command that takes longer says how far it is, again and again after as long. Milliseconds. */
export const PROGRESS_MS = 2000;

/** Exit codes of every command, printed by `weir --help`. */
export const EXIT = {
  OK: 0,
  /** The command ran and the answer is no: bad policy, taken port, server not reached. */
  FAILED: 1,
  /** The command line makes no sense. */
  USAGE: 2,
  /** `weir diff`: some request that passed before could now be denied. */
  TIGHTENS: 3,
} as const;
