import { EXIT, type Io, SIGNAL_CODES } from '../io.js';
import type { EndSignal } from './live-screen.js';

/** Returns whether standard output is a terminal that supports redrawing. */
export function canRedraw({ terminal, environment }: Pick<Io, 'terminal' | 'environment'>): boolean {
  return terminal && environment['TERM'] !== 'dumb';
}

/** Returns the exit code of a command whose screen `signal` ended; undefined means that the user quit. */
export function screenCode(signal: EndSignal | undefined): number {
  return signal === undefined ? EXIT.OK : SIGNAL_CODES[signal];
}

/** Returns the local time of day, such as `12:03:11`. */
export function timeOfDay(): string {
  return new Date().toTimeString().slice(0, 8);
}
