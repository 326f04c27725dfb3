import { EXIT, type Io } from './io.js';

/**
 * Prints the first answer, and asks and prints again after each interval, until standard output has no reader. Ctrl-C
 * ends the process.
 */
export async function watch<T>(
  first: T,
  everyMs: number,
  io: Pick<Io, 'isRead'>,
  ask: () => Promise<T>,
  print: (answer: T) => void,
): Promise<number> {
  for (let answer = first; io.isRead(); answer = await ask()) {
    print(answer);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  return EXIT.OK;
}

/** The local time, such as `12:03:11`, for the line above a repeated table. */
export function timeOfDay(): string {
  return new Date().toTimeString().slice(0, 8);
}
