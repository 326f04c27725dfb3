import { expect, test } from '@jest/globals';
import { preloading } from '../../support/process/preload.js';
import { runToEnd, startProcess, stopAllProcesses } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { optionalToolPath, toolPath } from '../../support/process/tools.js';

const node = process.execPath;

test('waits for a line and stops by its own process id', async () => {
  const started = startProcess(node, ['-e', "console.log('ready'); setInterval(() => {}, 1000)"]);
  await expect(started.waitForLine(/^ready$/)).resolves.toBe('ready');
  expect(started.isRunning()).toBe(true);
  await expect(started.stop()).resolves.toEqual({ code: null, signal: 'SIGTERM' });
  expect(started.isRunning()).toBe(false);
});

test('a process that ignores SIGTERM is killed after the grace time', async () => {
  const started = startProcess(node, [
    '-e',
    "process.on('SIGTERM', () => {}); console.log('ready'); setInterval(() => {}, 1000)",
  ]);
  await started.waitForLine(/ready/);
  await expect(started.stop('SIGTERM', 50)).resolves.toEqual({ code: null, signal: 'SIGKILL' });
});

test('a process that ends before the awaited line is told with what it printed', async () => {
  const started = startProcess(node, ['-e', "console.error('no such thing')"]);
  await expect(started.waitForLine(/ready/)).rejects.toThrow(/ended without a line like .*\n.*no such thing/);
});

test('a program that does not exist ends with 127', async () => {
  await expect(runToEnd('/no/such/program', [])).resolves.toMatchObject({ code: 127 });
});

test('a module whose path holds spaces and quotes is run first', async () => {
  const folder = new TempDir();
  try {
    const env = { NODE_OPTIONS: preloading(folder.write('a "b c.js', "console.log('first')")) };
    expect(await runToEnd(node, ['-e', "console.log('then')"], { env })).toMatchObject({
      stdout: 'first\nthen\n',
    });
  } finally {
    folder.remove();
  }
});

test('stopAllProcesses leaves nothing running', async () => {
  const started = startProcess(node, ['-e', 'setInterval(() => {}, 1000)']);
  await stopAllProcesses();
  expect(started.isRunning()).toBe(false);
});

test('toolPath finds programs on PATH and says how to get a missing one', () => {
  expect(optionalToolPath('sh')).toMatch(/\/sh$/);
  expect(() => toolPath('no-such-tool')).toThrow(
    'no-such-tool is missing: run `node .ci/tools.mjs no-such-tool`, or set WEIR_TEST_NO_SUCH_TOOL to the path of one',
  );
});
