import { closeAll } from '../support/process/close-later.js';
import { stopAllProcesses } from '../support/process/processes.js';
import { fetchTools } from '../support/process/tools.js';

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Returns a random seed, for a run without `--seed`. */
export function randomSeed(): number {
  return Math.floor(Math.random() * 2 ** 32);
}

/**
 * Fetches tools, and runs a command that returns its failures. Prints the failures, with the command that repeats the
 * run, and stops all processes.
 */
export async function runAndReport(
  tools: readonly string[],
  repeat: string,
  run: () => Promise<readonly string[]>,
): Promise<void> {
  fetchTools(tools);
  try {
    const failures = await run();
    if (failures.length === 0) return;
    print(`FAILED:\n  ${failures.join('\n  ')}\nTo repeat: ${repeat}`);
    process.exitCode = 1;
  } finally {
    await closeAll();
    await stopAllProcesses();
  }
}
