// Finds processes that a test run left behind, including orphans: all child processes inherit a mark in their
// environment. A mark that begins with another one belongs to a part of that run.
import { existsSync, readdirSync, readFileSync } from 'node:fs';

export const MARK = 'WEIR_TEST_RUN';
/** Time for processes to exit on their own after a run. */
const END_MS = 2000;
const POLL_MS = 50;

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function marked(mark) {
  const found = [];
  for (const pid of readdirSync('/proc').filter(
    (name) => /^\d+$/.test(name) && Number(name) !== process.pid,
  )) {
    try {
      const variables = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
      if (!variables.some((text) => text.startsWith(`${MARK}=${mark}`))) continue;
      found.push({
        pid: Number(pid),
        command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim(),
      });
    } catch {
      // The process has ended, or belongs to another user.
    }
  }
  return found;
}

function kill(processes) {
  for (const { pid } of processes) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process ended on its own.
    }
  }
}

const canFind = existsSync('/proc/self/environ');

/** Kills the processes that still run two seconds after the tests. Returns one line for each, or none without /proc. */
export async function endLeftovers(mark) {
  if (!canFind) return [];
  for (let waited = 0; waited < END_MS && marked(mark).length > 0; waited += POLL_MS) await wait(POLL_MS);
  const left = marked(mark);
  kill(left);
  return left.map(({ pid, command }) => `the tests left process ${pid} running: ${command}`);
}

/**
 * Kills all processes with the mark, including new ones. Resolves when all have ended, or after `ms` milliseconds. Has
 * no effect without /proc.
 */
export async function killMarked(mark, ms) {
  if (!canFind) return;
  for (let waited = 0; waited < ms; waited += POLL_MS) {
    const left = marked(mark);
    if (left.length === 0) return;
    kill(left);
    await wait(POLL_MS);
  }
}
