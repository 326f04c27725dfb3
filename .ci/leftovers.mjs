// Finds processes that a test run left behind, orphans included: every child inherits a mark in its environment.
import { existsSync, readdirSync, readFileSync } from 'node:fs';

export const MARK = 'WEIR_TEST_RUN';

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function marked(mark) {
  const found = [];
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
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

/** Ends what is still there two seconds after the run and returns one line for each; none where there is no /proc. */
export async function endLeftovers(mark) {
  if (!existsSync('/proc/self/environ')) return [];
  for (let tries = 0; tries < 20 && marked(mark).length > 0; tries += 1) await wait(100);
  const lines = [];
  for (const { pid, command } of marked(mark)) {
    lines.push(`left behind by the tests: process ${pid}: ${command}`);
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // ended by itself
    }
  }
  return lines;
}
