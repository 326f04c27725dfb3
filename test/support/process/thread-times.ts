import { openSync, readSync } from 'node:fs';

/**
 * Returns a function for the times, in milliseconds, that this thread has run, and waited for a core, since its start.
 * The times are 0 if the kernel does not provide them.
 */
export function threadTimes(): () => readonly [ranMs: number, waitedMs: number] {
  let file: number;
  try {
    file = openSync('/proc/thread-self/schedstat', 'r');
  } catch {
    return () => [0, 0];
  }
  const bytes = Buffer.alloc(80);
  return () => {
    const [ran, waited] = bytes.toString('latin1', 0, readSync(file, bytes, 0, 80, 0)).split(' ');
    return [Number(ran) / 1e6, Number(waited) / 1e6];
  };
}
