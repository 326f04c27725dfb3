import { expect, test } from '@jest/globals';
import { preloading } from '../../support/process/preload.js';
import { runToEnd, startProcess, stopAllProcesses } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { optionalToolPath, toolPath } from '../../support/process/tools.js';

const node = process.execPath;

test('waitForLine waits for a line, and stop ends the process', async () => {
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

test('waitForLine rejects with the output if the process ends earlier', async () => {
  const started = startProcess(node, ['-e', "console.error('no such thing')"]);
  await expect(started.waitForLine(/ready/)).rejects.toThrow(/ended without a line like .*\n.*no such thing/);
});

test('a program that does not exist returns exit code 127', async () => {
  await expect(runToEnd('/no/such/program', [])).resolves.toMatchObject({ code: 127 });
});

test('preloading supports paths with spaces and quotes', async () => {
  const folder = new TempDir();
  const env = { NODE_OPTIONS: preloading(folder.write('a "b c.js', "console.log('first')")) };
  expect(await runToEnd(node, ['-e', "console.log('then')"], { env })).toMatchObject({
    stdout: 'first\nthen\n',
  });
});

test('stopAllProcesses stops every process', async () => {
  const started = startProcess(node, ['-e', 'setInterval(() => {}, 1000)']);
  await stopAllProcesses();
  expect(started.isRunning()).toBe(false);
});

test('toolPath finds programs on PATH, and explains how to install a missing program', () => {
  expect(optionalToolPath('sh')).toMatch(/\/sh$/);
  expect(() => toolPath('no-such-tool')).toThrow(
    'no-such-tool is missing: run `node .ci/tools.mjs no-such-tool`, or set WEIR_TEST_NO_SUCH_TOOL to the path of one',
  );
});
