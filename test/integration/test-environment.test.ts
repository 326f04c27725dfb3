/*
 * Runs unit/support/environment.test.ts in an unusual terminal, locale and shell, and tests that leave things behind.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from '@jest/globals';
import { runToEnd } from '../support/process/processes.js';
import { repositoryRoot } from '../support/process/tools.js';

const run = (command: string) =>
  runToEnd('bash', ['-c', command], { cwd: repositoryRoot, env: { JEST_WORKER_ID: '' } });

test('npx jest gives tests the same environment with odd variables and a umask of 077', async () => {
  const odd = 'FORCE_COLOR=1 COLUMNS=20 TERM=dumb LC_ALL=de_DE.UTF-8 TZ=Pacific/Chatham NODE_ENV=production';
  const ofWeir = 'LOG_LEVEL=odd REDIS_URL=odd PORT=1 GRPC_PORT=1 CONFIG_PATH=/nowhere RUNTIME_ROOT=/nowhere';
  const jest = 'npx jest --selectProjects unit --testPathPatterns unit/support/environment unit/limiter/rate';
  // jest gives workers for two files extra variables; --runInBand starts no workers.
  for (const how of ['--maxWorkers 2', '--runInBand']) {
    const ended = await run(`umask 077; env -u HOME ${odd} ${ofWeir} ${jest} ${how}`);
    expect(ended).toMatchObject({ code: 0, stderr: expect.stringContaining('2 passed') });
  }
});

test('the run that .ci/run adds leaves nothing odd, in a checkout whose path contains a space', async () => {
  const url = pathToFileURL(join(repositoryRoot, '.ci/hostile.mjs'));
  const args = JSON.stringify(['--selectProjects', 'unit', '--testPathPatterns', 'unit/support/environment']);
  const script = `const { jestAmongOddThings: run } = await import('${url}');
    const { tests, ...counts } = await run(process.execPath, ${args}, {});
    process.stdout.write(JSON.stringify(counts));`;
  // Without its own mark, it would take the enclosing run for leftovers, and end it.
  const env = { WEIR_TEST_RUN: `among-odd-things-${process.pid}` };
  const ended = await runToEnd(process.execPath, ['--input-type=module', '-e', script, '--', 'ask'], { env });
  expect(ended.stdout).toMatch(/\{"passed":3,"failed":0,"notes":\[\]\}$/);
});

test('a test file that leaves a timer open fails, and processes end after the hooks of their file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-left-open-'));
  const processes = pathToFileURL(join(repositoryRoot, 'build/test/support/process/processes.js'));
  const files = {
    timer: `test('passes', () => { setInterval(() => {}, 60_000); });`,
    process: `const { startProcess } = require('${processes.pathname}');
      afterAll(() => { if (!started.isRunning()) throw new Error('the process ended before this hook'); });
      const started = startProcess('sleep', ['60']);
      test('passes', () => {});`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, `${name}.test.js`), text);
  const testEnvironment = join(repositoryRoot, '.ci/test-environment.cjs');
  writeFileSync(join(folder, 'jest.config.json'), JSON.stringify({ testEnvironment, transform: {} }));
  // Two workers, because jest itself has timers in the first process.
  const ended = await run(
    `npx jest --forceExit --maxWorkers 2 --rootDir '${folder}' --config '${folder}/jest.config.json'`,
  );
  rmSync(folder, { recursive: true, force: true });
  expect(ended.stderr).toContain('the tests left open: Timeout;');
  expect(ended.stderr).toMatch(/PASS \S*process\.test\.js/);
});
