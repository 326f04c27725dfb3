/*
 * Runs unit/support/environment.test.ts in an unusual terminal, locale and shell, and tests that leave things behind.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from '@jest/globals';
import { runToEnd } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
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

test('what tests and blocks open is closed after their hooks, and a file that leaves a timer open fails', async () => {
  const folder = new TempDir();
  const processes = pathToFileURL(join(repositoryRoot, 'build/test/support/process/processes.js'));
  const later = pathToFileURL(join(repositoryRoot, 'build/test/support/process/close-later.js'));
  const files = {
    timer: `test('passes', () => { setInterval(() => {}, 60_000); });`,
    failure: `test('fails', () => { setInterval(() => {}, 60_000); throw new Error('the cause'); });`,
    process: `const { startProcess } = require('${processes.pathname}');
      afterAll(() => { if (!started.isRunning()) throw new Error('the process ended before this hook'); });
      const started = startProcess('sleep', ['60']);
      test('passes', () => {});`,
    later: `const { closeLater } = require('${later.pathname}');
      const closed = [];
      const open = (name) => closeLater(name, () => closed.push(name));
      describe('a block', () => {
        beforeAll(() => ['first', 'second'].forEach(open));
        test('opens', () => void open('by a test'));
        test('finds closed what the test before it opened', () => expect(closed).toEqual(['by a test']));
      });
      test('finds the block closed', () => expect(closed).toEqual(['by a test', 'second', 'first']));`,
    failing: `const { closeLater } = require('${later.pathname}');
      test('fails', () => void closeLater(1, () => { throw new Error('it cannot be closed'); }));`,
  };
  for (const [name, text] of Object.entries(files)) folder.write(`${name}.test.js`, text);
  const testEnvironment = join(repositoryRoot, '.ci/test-environment.cjs');
  const config = folder.write('jest.config.json', JSON.stringify({ testEnvironment, transform: {} }));
  // Two workers, because jest itself has timers in the first process.
  const ended = await run(
    `npx jest --forceExit --maxWorkers 2 --rootDir '${folder.path}' --config '${config}'`,
  );
  expect(ended.stderr).toContain('the tests left open: Timeout;');
  expect(ended.stderr).toContain('the cause');
  expect(ended.stderr).toMatch(/PASS \S*process\.test\.js/);
  expect(ended.stderr).toMatch(/PASS \S*later\.test\.js/);
  expect(ended.stderr).toMatch(/● fails\s+it cannot be closed/);
});
