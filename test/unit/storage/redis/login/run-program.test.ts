import { readFileSync } from 'node:fs';
import { afterAll, expect, test } from '@jest/globals';
import {
  PROGRAM_TIMEOUT_MS,
  runProgram,
} from '../../../../../src/storage/redis/connection/login/run-program.js';
import { TempDir } from '../../../../support/process/temp-dir.js';
import { waitFor } from '../../../../support/process/wait-for.js';

const folder = new TempDir();
afterAll(() => folder.remove());

const never = () => new AbortController().signal;

test('the output of a program is read, without a shell', async () => {
  expect(await runProgram(['printf', '%s|', 'a b', '$HOME', '*'], never())).toBe('a b|$HOME|*|');
});

test.each<[string, readonly [string, ...string[]], RegExp]>([
  [
    'does not exist',
    ['/nowhere/login'],
    /^\/nowhere\/login does not exist; correct its path or the variable PATH$/,
  ],
  [
    'cannot be executed',
    ['/etc/passwd'],
    /^the user that runs weir has no permission to execute \/etc\/passwd; check the file's owner and mode$/,
  ],
  ['has an invalid name', ['a\0b'], /could not be started \(ERR_INVALID_ARG_VALUE\)$/],
  [
    'fails',
    ['sh', '-c', 'echo s3cret; echo s3cret >&2; exit 7'],
    /^sh failed with exit code 7; to see the reason, run /,
  ],
  ['is killed', ['sh', '-c', 'kill -9 $$'], /^sh was killed by SIGKILL; to see the reason, run the program/],
  ['prints too much', ['yes', 's3cret'], /^yes printed more than 64 KiB, and was killed$/],
])('a program that %s', async (_name, command, sentence) => {
  await expect(runProgram(command, never())).rejects.toThrow(sentence);
});

test('64 KiB of output are allowed', async () => {
  const text = await runProgram(['head', '-c', String(64 * 1024), '/dev/zero'], never());
  expect(text).toHaveLength(64 * 1024);
});

test('a program that reads stdin gets an end of file', async () => {
  expect(await runProgram(['cat'], never())).toBe('');
});

let scripts = 0;

/** Runs a script that waits for a program that it has started. Resolves with the process id of that program. */
async function hanging(
  signal: AbortSignal,
  timeoutMs?: number,
): Promise<[pid: number, run: Promise<string>]> {
  const file = folder.join(`pid${++scripts}`);
  const run = runProgram(
    ['sh', '-c', `sleep 600 & echo $! > ${file}.new; mv ${file}.new ${file}; wait`],
    signal,
    timeoutMs,
  );
  run.catch(() => {});
  let pid = 0;
  await waitFor('the script', () => {
    try {
      pid = Number(readFileSync(file, 'utf8'));
    } catch {
      return false;
    }
    return pid > 0;
  });
  return [pid, run];
}

test('the output is complete when the program ends, even if other processes hold it open', async () => {
  const file = folder.join('holder');
  // One process stays in the group, and is killed with it. The other one reports when it has left the group.
  const leaves = `setsid sh -c 'echo $$ >> ${file}; exec sleep 601' &`;
  const waits = `until [ $(wc -l < ${file}) = 2 ]; do sleep 0.01; done`;
  const holders = `sleep 600 & echo $! > ${file}; ${leaves} ${waits}`;
  const text = await runProgram(['sh', '-c', `${holders}; head -c 60000 /dev/zero`], never());
  const [inGroup = 0, outside = 0] = readFileSync(file, 'utf8').trim().split('\n').map(Number);
  try {
    expect(text).toHaveLength(60_000);
    await waitFor('the end of the process in the group', () => !runs(inGroup));
    expect(runs(outside)).toBe(true);
  } finally {
    process.kill(outside, 'SIGKILL');
  }
});

/** Returns whether a process runs; a zombie does not. */
function runs(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

test('a script that hangs is killed in time, with its child processes', async () => {
  expect(PROGRAM_TIMEOUT_MS).toBe(5000);
  const [pid, run] = await hanging(never(), 500);
  await expect(run).rejects.toThrow(/^sh did not end within 0.5 s, and was killed$/);
  await waitFor('its end', () => !runs(pid));
});

test('an aborted program is killed at once', async () => {
  const ending = new AbortController();
  const [pid, run] = await hanging(ending.signal);
  ending.abort();
  await expect(run).rejects.toThrow('sh was stopped');
  await waitFor('its end', () => !runs(pid));
});
