import { type ChildProcess, spawn } from 'node:child_process';

/** A program and its arguments. */
export type Command = readonly [program: string, ...args: string[]];

/** Default time limit of a program, in milliseconds. */
export const PROGRAM_TIMEOUT_MS = 5000;
/** Maximum size of its output, in bytes. */
export const MAX_LOGIN_OUTPUT_BYTES = 64 * 1024;

/**
 * Runs a program without a shell, and resolves with its output when it ends. Rejects with an Error that names the
 * program and its result, but contains no output. Kills a program that times out, prints too much, or is running when
 * `signal` is aborted.
 *
 * In all cases, kills the other processes of its group, because each run could otherwise leave one behind. A process
 * that has left the group (setsid) is not killed.
 */
export function runProgram(
  [program, ...args]: Command,
  signal: AbortSignal,
  timeoutMs = PROGRAM_TIMEOUT_MS,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let child: ChildProcess;
    try {
      // A separate process group, so that the processes of a script can be killed with it. execFile cannot create a
      // group.
      child = spawn(program, args, { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
    } catch (error) {
      reject(notStarted(program, error as NodeJS.ErrnoException));
      return;
    }
    const chunks: Buffer[] = [];
    let bytes = 0;
    let isOver = false;
    const settle = (error?: Error): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      killGroup(child);
      child.stdout?.destroy();
      if (error === undefined) resolve(Buffer.concat(chunks).toString());
      else reject(error);
    };
    const onAbort = (): void => settle(new Error(`${program} was stopped`));
    const timer = setTimeout(
      () => settle(new Error(`${program} did not end within ${timeoutMs / 1000} s, and was killed`)),
      timeoutMs,
    );
    child.stdout?.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= MAX_LOGIN_OUTPUT_BYTES) chunks.push(chunk);
      else
        settle(
          new Error(`${program} printed more than ${MAX_LOGIN_OUTPUT_BYTES / 1024} KiB, and was killed`),
        );
    });
    child.on('error', (error) => settle(notStarted(program, error)));
    child.on('exit', (code, killedBy) => {
      const how = code === null ? `was killed by ${killedBy}` : `failed with exit code ${code}`;
      if (code !== 0)
        settle(new Error(`${program} ${how}; to see the reason, run the program as the user that runs weir`));
      // A child process may keep the standard output open.
      else afterPoll(settle);
    });
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** Calls back after the event loop has read everything that is in a pipe now, which happens between two checks. */
function afterPoll(then: () => void): void {
  setImmediate(() => setImmediate(then));
}

function notStarted(program: string, { code, message }: NodeJS.ErrnoException): Error {
  switch (code) {
    case 'ENOENT':
      return new Error(`${program} does not exist; correct its path or the variable PATH`);
    case 'EACCES':
      return new Error(
        `the user that runs weir has no permission to execute ${program}; check the file's owner and mode`,
      );
    default:
      return new Error(`${program} could not be started (${code ?? message})`);
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // All processes have ended.
  }
}
