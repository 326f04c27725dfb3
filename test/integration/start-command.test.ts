import { chmodSync, cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { freePorts } from '../support/process/free-port.js';
import { httpRequest } from '../support/process/http-client.js';
import { runToEnd, startProcess } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { repositoryRoot } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir } from '../support/weir/weir.js';
import { isAlive } from '../support/weir/workers.js';

test('npm start passes arguments and signals to the server', async () => {
  const [grpcPort = 0, httpPort = 0, debugPort = 0] = await freePorts(3);
  const ports = [
    '--grpc-port',
    String(grpcPort),
    '--port',
    String(httpPort),
    '--debug-port',
    String(debugPort),
  ];
  const npm = startProcess('npm', ['start', '--', ...ports], { cwd: repositoryRoot });
  await waitFor(
    'npm start to serve',
    async () => {
      if (!npm.isRunning()) return true;
      return (await httpRequest(httpPort, '/healthcheck')).status === 200 ? true : undefined;
    },
    120_000,
  );
  expect(npm.lines().join('\n')).toContain(`127.0.0.1:${grpcPort}`);
  npm.signal('SIGTERM');
  await npm.exited;
  // npm exits only after the server.
  expect(npm.lines().join('\n')).toContain('drained');
  await expect(httpRequest(httpPort, '/healthcheck')).rejects.toThrow(/ECONNREFUSED/);
});

/** Files that git does not track. */
const NOT_CLONED = ['.git', '.tools', 'build', 'coverage', 'dist', 'node_modules'];

test('npm start in a fresh clone installs and builds only what serving needs; npm test asks for the rest', async () => {
  const clone = new TempDir();
  for (const name of readdirSync(repositoryRoot).filter((one) => !NOT_CLONED.includes(one)))
    cpSync(join(repositoryRoot, name), clone.join(name), { recursive: true });
  const [httpPort = 0] = await freePorts(1);
  const ports = ['--grpc-port', '0', '--port', String(httpPort), '--debug-port', '0'];
  const npm = startProcess('npm', ['start', '--', ...ports], { cwd: clone.path });
  await waitFor(
    'npm start to serve',
    async () => !npm.isRunning() || (await httpRequest(httpPort, '/healthcheck')).status === 200,
    240_000,
  );
  npm.signal('SIGTERM');
  await npm.exited;
  const printed = npm.lines().join('\n');
  expect(printed).toMatch(/^weir: first start: installing the \d+ npm packages that the server needs$/m);
  expect(printed).toContain('drained');
  const unneeded = ['node_modules/jest', 'node_modules/@biomejs', 'build/test', 'build/.ci', 'build/serving'];
  expect(unneeded.filter((path) => existsSync(clone.join(path)))).toEqual([]);
  // Only the upstream that docs/start.md starts.
  expect(readdirSync(clone.join('build/deploy/demo')).filter((name) => name.endsWith('.js'))).toEqual([
    'echo-upstream.js',
  ]);
  const lock = 'package-lock.json';
  expect(readFileSync(clone.join(lock), 'utf8')).toBe(readFileSync(join(repositoryRoot, lock), 'utf8'));
  // A full build produces the same files.
  const compiled = readdirSync(clone.join('build/src'), { recursive: true, encoding: 'utf8' });
  for (const name of compiled.filter((one) => one.endsWith('.js'))) {
    const made = readFileSync(clone.join('build/src', name), 'utf8');
    expect({ name, made }).toEqual({
      name,
      made: readFileSync(join(repositoryRoot, 'build/src', name), 'utf8'),
    });
  }

  chmodSync(clone.write('bin/npm', '#!/bin/sh\necho "asked: $*"\nexit 1\n'), 0o755);
  const runIn = (line: string) =>
    runToEnd('sh', ['-c', line], {
      cwd: clone.path,
      env: { PATH: [clone.join('bin'), process.env['PATH']].join(':') },
    });
  expect(await runIn('node .ci/prepare.mjs --serving')).toMatchObject({ code: 0, stderr: '' });
  const { scripts } = JSON.parse(readFileSync(clone.join('package.json'), 'utf8'));
  for (const name of ['test', 'build', 'lint', 'typecheck', 'docs', 'bench']) {
    const { code, stdout, stderr } = await runIn(scripts[name]);
    const said = expect.stringMatching(/asked: .*--include=dev/);
    expect({ name, code, said: stdout + stderr }).toEqual({ name, code: 1, said });
  }
}, 300_000);

test('under npm, one Ctrl-C drains even if it arrives twice, and a second Ctrl-C ends immediately', async () => {
  const npm = { npm_lifecycle_event: 'start' };
  const pressOnce = async () => {
    const once = await startWeir({ env: { ...npm, SHUTDOWN_DRAIN_DELAY: '1s' } });
    once.process.signal('SIGINT');
    await once.process.waitForLine(/draining/);
    once.process.signal('SIGINT');
    return once.process.exited;
  };
  let ended = await pressOnce();
  // On a busy machine, the second signal may arrive too late to belong to the same press.
  for (let again = 0; again < 4 && ended.code === 130; again++) ended = await pressOnce();
  expect(ended).toEqual({ code: 0, signal: null });

  const twice = await startWeir({ env: { ...npm, SHUTDOWN_DRAIN_DELAY: '1h' } });
  twice.process.signal('SIGINT');
  await twice.process.waitForLine(/draining/);
  await waitFor('the second press to end it', () => {
    twice.process.signal('SIGINT');
    return twice.process.isRunning() ? undefined : true;
  });
  await expect(twice.process.exited).resolves.toEqual({ code: 130, signal: null });
});

test('Ctrl-C during the installation of packages ends npm, so that the next start is not disturbed', async () => {
  const clone = new TempDir();
  for (const name of ['.ci', 'package.json', 'package-lock.json'])
    cpSync(join(repositoryRoot, name), clone.join(name), { recursive: true });
  // Like npm, it continues after the first signal.
  chmodSync(
    clone.write('bin/npm', '#!/bin/sh\ntrap "" INT\necho $$ > ../../npm.pid\nexec sleep 3600\n'),
    0o755,
  );
  const start = startProcess('node', ['.ci/prepare.mjs', '--serving'], {
    cwd: clone.path,
    env: { PATH: [clone.join('bin'), process.env['PATH']].join(':') },
  });
  const pid = await waitFor('npm to run', () => {
    const file = clone.join('npm.pid');
    return (existsSync(file) && Number(readFileSync(file, 'utf8'))) || undefined;
  });
  start.signal('SIGINT');
  await expect(start.exited).resolves.toEqual({ code: null, signal: 'SIGINT' });
  await waitFor('npm to end', () => (isAlive(pid) ? undefined : true));
});

test('of two concurrent first starts, the second waits for the first, unless that has ended', async () => {
  const clone = new TempDir();
  cpSync(join(repositoryRoot, '.ci/shell.mjs'), clone.join('.ci/shell.mjs'));
  // The script holds the lock until it gets a signal.
  const script = `import { alone } from './.ci/shell.mjs';
    await alone(() => new Promise((end) => { process.once('SIGUSR2', end); console.log('alone'); }));
    console.log('through');`;
  const start = () => startProcess('node', ['--input-type=module', '--eval', script], { cwd: clone.path });
  const first = start();
  await first.waitForLine(/^alone/);
  const second = start();
  await second.waitForLine(/waiting for another command that installs or builds in this checkout/);
  expect(second.stdout()).toBe('');
  first.signal('SIGUSR2');
  await second.waitForLine(/^alone/);
  await expect(first.exited).resolves.toEqual({ code: 0, signal: null });
  await second.stop('SIGKILL');
  const third = start();
  await third.waitForLine(/^alone/);
  third.signal('SIGUSR2');
  await expect(third.exited).resolves.toEqual({ code: 0, signal: null });
  expect(existsSync(clone.join('.tools/preparing'))).toBe(false);
});
