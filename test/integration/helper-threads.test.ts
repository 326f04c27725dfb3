import { readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { expect, test } from '@jest/globals';
import { startWeir } from '../support/weir/weir.js';

/** Returns the names and nice values of the threads of a process (proc_pid_stat(5), field 19). */
function threadsOf(pid: number): { readonly name: string; readonly niceness: number }[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1');
    const [, name = '', rest = ''] = /\((.*)\) (.*)/.exec(stat) ?? [];
    return { name, niceness: Number(rest.split(' ')[16]) };
  });
}

test("on Linux, V8's helper threads have a low priority, and all others keep theirs", async () => {
  if (process.platform !== 'linux') return;
  const server = await startWeir();
  const threads = threadsOf(server.process.pid);
  await server.stop();
  const helpers = threads.filter(({ name }) => name === 'V8Worker');
  // Before version 24, all threads of Node.js have one name.
  expect(helpers.length > 0).toBe(Number.parseInt(process.versions.node, 10) >= 24);
  const own = getPriority();
  for (const { name, niceness } of threads) {
    expect([name, niceness]).toEqual([name, name === 'V8Worker' ? Math.max(own, 10) : own]);
  }
});
