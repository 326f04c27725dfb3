/* `npm test` itself: it builds what is not built, and a signal ends all of it at once. */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from '@jest/globals';
import { runToEnd } from '../support/process/processes.js';
import { repositoryRoot } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';

interface Member {
  readonly pid: number;
  readonly command: string;
}

/** Processes of a group that have not ended. */
function members(group: number): Member[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        // The name, which may hold anything, stands in parentheses; state, parent and group follow (proc(5)).
        const [state, , processGroup] = readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ');
        if (Number(processGroup) !== group || state === 'Z') return [];
        return [{ pid: Number(pid), command: readFileSync(`/proc/${pid}/cmdline`, 'utf8') }];
      } catch {
        return [];
      }
    });
}

// A run on another Node.js would build anew, under the feet of the tests that run.
test('the sources have the same digest on every Node.js', async () => {
  const prepare = pathToFileURL(join(repositoryRoot, '.ci/prepare.mjs'));
  const script = `process.stdout.write((await import('${prepare}')).sourceDigest())`;
  // prepare.mjs asks for the path of the program, and finds this name.
  const ended = await runToEnd(process.execPath, ['--input-type=module', '-e', script, '--', 'digest']);
  expect(ended.stdout).toBe(readFileSync(join(repositoryRoot, 'build/.sources'), 'utf8'));
});

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s to its group ends a run with servers within two seconds, and leaves no process',
  async (signal) => {
    // A tier that needs no tool that may be missing.
    const args = ['.ci/test.mjs', '--selectProjects', 'stall', '--testPathPatterns', 'through-envoy'];
    const run = spawn(process.execPath, args, {
      cwd: repositoryRoot,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    for (const stream of [run.stdout, run.stderr]) stream.on('data', (text) => (said += text));
    const group = run.pid as number;
    const code = new Promise((resolve) => run.once('close', resolve));
    try {
      await waitFor('a server of a test', () =>
        members(group).some(({ command }) => /main\.js\0serve/.test(command)),
      );
      process.kill(-group, signal);
      await waitFor('all to be gone', () => members(group).length === 0, 2000);
      expect(await code).toBe(signal === 'SIGINT' ? 130 : 143);
      expect(said).toContain(`stopped by ${signal}`);
      expect(said).not.toContain('passed, ');
    } finally {
      for (const { pid } of members(group)) process.kill(pid, 'SIGKILL');
    }
  },
);
