/* Tests the messages of `weir replay` about files. */
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  constants,
  createWriteStream,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { startProcess } from '../../support/process/processes.js';
import { waitFor } from '../../support/process/wait-for.js';
import { commandFolder } from '../../support/weir/command-folder.js';
import { WEIR_MAIN } from '../../support/weir/weir.js';

const { folder, host } = commandFolder();

folder.write(
  'new.yaml',
  'domain: shop\ndescriptors: [{ key: tenant, rate_limit: { unit: minute, requests_per_unit: 1 } }]\n',
);
const LINE = '{"time":"2026-11-26T08:00:00Z","domain":"shop","descriptors":[{"tenant":"acme"}]}\n';
folder.write('a.log', LINE);
folder.write('b.log', LINE);
folder.write(
  'mapping.yaml',
  'domain: shop\nlog: { time: time }\nrate_limits: [{ actions: [{ generic_key: { descriptor_value: all } }] }]\n',
);
symlinkSync('a.log', join(folder.path, 'link.log'));
symlinkSync('mapping.yaml', join(folder.path, 'link.yaml'));
linkSync(join(folder.path, 'a.log'), join(folder.path, 'hard.log'));
mkdirSync(join(folder.path, 'logs'));

const replay = (...args: readonly string[]) =>
  host.run({ args: ['replay', '--policy', 'new.yaml', ...args], folder: folder.path });
const path = (name: string) => join(folder.path, name);
const relative = (name: string) =>
  `: the path is relative to the working directory "${folder.path}", so weir tried "${path(name)}"`;

describe('a file that cannot be read', () => {
  test.each([
    [['no.log'], `"no.log" does not exist${relative('no.log')}; check the path`],
    [['a.log/x'], '"a.log/x" cannot be read (ENOTDIR); check the path'],
    [['logs'], 'logs is a directory; pass its files: logs/*.log'],
    [['--envoy', 'no.yaml', 'a.log'], `"no.yaml" does not exist${relative('no.yaml')}; check the path`],
    [['--envoy', 'logs', 'a.log'], '"logs" is not a regular file; specify a regular file'],
    [
      ['--log-format', 'no.txt', 'a.log'],
      '--log-format "no.txt" is neither a format string, such as "%START_TIME% %REQ(:PATH)%", nor a file: "no.txt" ' +
        `does not exist${relative('no.txt')}; check the path`,
    ],
  ])('%j', async (args, message) => {
    expect(await replay(...args)).toMatchObject({ code: 1, stderr: `weir replay: ${message}\n` });
  });
});

describe('a file that is named twice', () => {
  test.each([
    [['a.log', 'b.log', 'a.log'], 'a.log is named twice; name each log once'],
    [['a.log', 'logs/../a.log'], 'a.log and logs/../a.log are the same file; name only one of them'],
    [['a.log', 'link.log'], 'a.log and link.log are the same file; name only one of them'],
    [['hard.log', 'a.log'], 'hard.log and a.log are the same file; name only one of them'],
    [
      ['--envoy', 'mapping.yaml', '--envoy', 'mapping.yaml', 'a.log'],
      '--envoy names "mapping.yaml" twice; name each file once',
    ],
    [
      ['--envoy', 'mapping.yaml', '--envoy', 'link.yaml', 'a.log'],
      '--envoy names "mapping.yaml" and "link.yaml", which are the same file; name only one of them',
    ],
  ])('%j', async (args, message) => {
    expect(await replay(...args)).toMatchObject({ code: 1, stderr: `weir replay: ${message}\n` });
  });

  test('for two reports', async () => {
    const { code, stderr } = await replay('--json', 'out', '--html', 'logs/../out', 'a.log');
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'weir replay: --json and --html name the same file; choose two names; see weir replay --help\n',
    });
  });

  test('as both policies is a warning', async () => {
    const { code, stderr } = await replay('--against', 'logs/../new.yaml', 'a.log');
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: 'weir replay: warning: both policies are new.yaml, so the change has no effect\n',
    });
  });
});

describe('a report that cannot be written ends the command before the replay', () => {
  test.each([
    [
      'no/x.json',
      'the folder "no" of the report "no/x.json" does not exist; create the folder, or choose another path',
    ],
    ['a.log/x', '"a.log" is not a folder; choose another path for the report "a.log/x"'],
    ['logs', '"logs" is not a regular file; choose another path for the report'],
    ['link.log', '"link.log" is an input file and is never overwritten; choose another path for the report'],
  ])('%s', async (target, message) => {
    for (const option of ['--json', '--html'])
      expect(await replay(option, target, 'a.log')).toMatchObject({
        ...{ code: 1, stdout: '', stderr: `weir replay: ${message}\n` },
      });
  });
});

test('an archive that is damaged after some requests fails, and keeps an older report', async () => {
  const start = Date.parse('2026-11-26T08:00:00Z');
  const line = (at: number) => LINE.replace('2026-11-26T08:00:00Z', new Date(start + at * 10).toISOString());
  const lines = Array.from({ length: 200_000 }, (_, at) => line(at)).join('');
  const packed = gzipSync(lines, { level: 1 });
  writeFileSync(path('cut.gz'), packed.subarray(0, Math.floor(packed.length * 0.9)));
  folder.write('old.json', 'old');
  const { code, stderr, stdout } = await replay('--json', 'old.json', 'cut.gz');
  // On a busy machine, there is also a line about the progress.
  expect({ code, stderr: stderr.replaceAll(/^weir replay: \d+% read.*\n/gm, '') }).toEqual({
    code: 1,
    stderr: expect.stringMatching(
      /^(?:weir replay: \d+% read, [^\n]*\n)*weir replay: cut\.gz: the archive is damaged[^\n]*\n$/,
    ),
  });
  expect(stdout).toContain('the archive is damaged');
  expect(readFileSync(path('old.json'), 'utf8')).toBe('old');
});

test('the hint for a damaged archive on standard input names no file', () => {
  const { stderr } = spawnSync(process.execPath, [WEIR_MAIN, 'replay', '--policy', 'new.yaml', '-'], {
    cwd: folder.path,
    encoding: 'utf8',
    input: gzipSync(LINE.repeat(10)).subarray(0, -4),
  });
  expect(stderr).toMatch(/standard input: the archive is damaged .*: … \| zcat \| weir replay … -\n/);
});

test('weir diff --replay ends with a report after Ctrl-C', async () => {
  const fifo = startProcess('mkfifo', [path('pipe')]);
  await fifo.exited;
  const args = ['diff', 'new.yaml', 'new.yaml', '--replay', path('pipe')];
  const diff = startProcess(process.execPath, [WEIR_MAIN, ...args], { cwd: folder.path });
  const writer = createWriteStream(path('pipe'));
  // More than a pipe holds, so the command has begun to read.
  await new Promise((resolve) => writer.write(LINE.repeat(20_000), resolve));
  expect(await diff.stop('SIGINT')).toEqual({ code: 130, signal: null });
  writer.destroy();
});

test.each([['replay', ['--policy', 'new.yaml'], 'interrupted before the log had a line']])(
  'weir %s ends after Ctrl-C while it waits for the first line of a pipe',
  async (command, options, message) => {
    const pipe = path(`${command}.pipe`);
    await startProcess('mkfifo', [pipe]).exited;
    const waiting = startProcess(process.execPath, [WEIR_MAIN, command, ...options, pipe], {
      cwd: folder.path,
    });
    // Without a reader, the pipe cannot be opened in this way.
    const writer = await waitFor('the command to open the pipe', () =>
      openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK),
    );
    expect(await waiting.stop('SIGINT')).toEqual({ code: 130, signal: null });
    expect(waiting.lines()).toEqual([`weir ${command}: ${message}`]);
    closeSync(writer);
  },
);
