import type { Io } from '../io.js';
import { EXIT } from '../io.js';
import type { EndSignal } from './live-screen.js';

/** Exit codes that shells give to what a signal ended. */
const SIGNAL_CODES: Readonly<Record<EndSignal, number>> = {
  SIGHUP: 129,
  SIGINT: 130,
  SIGQUIT: 131,
  SIGTERM: 143,
};

/** Whether standard output is a terminal that can be drawn on. */
export function canRedraw({ terminal, environment }: Pick<Io, 'terminal' | 'environment'>): boolean {
  return terminal && environment['TERM'] !== 'dumb';
}

/** The exit code of a command whose screen ended so; undefined: its user asked for the end. */
export function screenCode(signal: EndSignal | undefined): number {
  return signal === undefined ? EXIT.OK : SIGNAL_CODES[signal];
}

/** `12:03:11`, the time of day here. */
export function timeOfDay(): string {
  return new Date().toTimeString().slice(0, 8);
}
