// Runs jest once, counts its tests, and makes sure that it ends and leaves no processes.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endLeftovers, MARK } from './leftovers.mjs';
import { root } from './shell.mjs';
import { unlessStopping } from './stop.mjs';

const EXIT_GRACE_MS = 10_000;
/** Maximum delay between a child and its parent when both receive the same signal. */
const SIGNAL_MS = 300;
/**
 * Tests create much short-lived garbage. A larger young generation makes them faster. Servers do not use this setting.
 */
const NODE_OPTIONS = ['--max-semi-space-size=32'];
/**
 * Code that Node.js has compiled, for all processes of all runs: most of the start time of weir is compilation. A new
 * build removes it.
 */
const COMPILE_CACHE = join(root, 'build/compile-cache');

/**
 * Runs jest with `args` and the Node.js at `node`. Resolves with {passed, failed, notes, tests}. `notes` lists skipped
 * tests, and failures outside of tests, which count as failed. `tests` contains {file, name, status}.
 */
export async function jest(node, args, env) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-test-'));
  const file = join(folder, 'counts.json');
  // A mark of its own, because tools may be fetched at the same time.
  const mark = `${process.env[MARK] ?? `${process.pid}-${Date.now()}`}/jest`;
  const child = spawn(node, [...NODE_OPTIONS, 'node_modules/jest/bin/jest.js', ...args], {
    cwd: root,
    env: { ...process.env, ...env, NODE_COMPILE_CACHE: COMPILE_CACHE, WEIR_TEST_COUNTS: file, [MARK]: mark },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const result = { passed: 0, failed: 0, notes: [], tests: [] };
  const fail = (note) => {
    result.failed += 1;
    result.notes.push(note);
  };
  let doneAt;
  const watch = setInterval(() => {
    if (!existsSync(file)) return;
    doneAt ??= Date.now();
    if (Date.now() - doneAt < EXIT_GRACE_MS || child.killed) return;
    fail(
      'jest did not exit, because a test left a timer, socket or process open; run jest with ' +
        '--detectOpenHandles to find the cause',
    );
    child.kill('SIGKILL');
  }, 500);
  const code = await new Promise((resolve) => child.once('close', (status) => resolve(status ?? 1)));
  clearInterval(watch);
  // A signal to the whole group may end jest before this process receives the signal.
  if (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, SIGNAL_MS));
  await unlessStopping();
  for (const line of await endLeftovers(mark)) fail(line);
  if (existsSync(file)) {
    const counts = JSON.parse(readFileSync(file, 'utf8'));
    result.passed += counts.passed;
    result.failed += counts.failed;
    result.tests = counts.tests;
    const left = counts.tests.filter(({ status }) => status !== 'passed' && status !== 'failed');
    result.notes.push(...left.map(({ name }) => `skipped: ${name}`));
  }
  rmSync(folder, { recursive: true, force: true });
  if (result.passed + result.failed === 0) fail('no tests ran');
  else if (code !== 0 && result.failed === 0) fail(`jest exited with code ${code}`);
  return result;
}
