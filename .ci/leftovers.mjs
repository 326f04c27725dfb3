// Finds processes that a test run left behind, orphans included: every child inherits a mark in its environment.
import { existsSync, readdirSync, readFileSync } from 'node:fs';

export const MARK = 'WEIR_TEST_RUN';
/** How long processes may take to end by themselves after a run. */
const END_MS = 2000;
const POLL_MS = 50;

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function marked(mark) {
  const found = [];
  for (const pid of readdirSync('/proc').filter(
    (name) => /^\d+$/.test(name) && Number(name) !== process.pid,
  )) {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`${MARK}=${mark}`)) continue;
      found.push({
        pid: Number(pid),
        command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim(),
      });
    } catch {
      // gone meanwhile, or another user's
    }
  }
  return found;
}

function kill(processes) {
  for (const { pid } of processes) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // ended by itself
    }
  }
}

const canFind = existsSync('/proc/self/environ');

/** Ends what is still there two seconds after the run and returns one line for each; none where there is no /proc. */
export async function endLeftovers(mark) {
  if (!canFind) return [];
  for (let waited = 0; waited < END_MS && marked(mark).length > 0; waited += POLL_MS) await wait(POLL_MS);
  const left = marked(mark);
  kill(left);
  return left.map(({ pid, command }) => `left behind by the tests: process ${pid}: ${command}`);
}

/**
 * Kills all that bear the mark, and what they start meanwhile; resolves when all are gone, or after `ms`. Does nothing
 * where there is no /proc.
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
