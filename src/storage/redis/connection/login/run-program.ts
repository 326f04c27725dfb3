import { type ChildProcess, spawn } from 'node:child_process';

/** A program, and what is given to it. */
export type Command = readonly [program: string, ...args: string[]];

/** Longest that a program may run by default, milliseconds. */
export const PROGRAM_TIMEOUT_MS = 5000;
/** Most that it may print. */
export const MAX_LOGIN_OUTPUT_BYTES = 64 * 1024;

/**
 * Runs a program without a shell, and resolves with what it had printed when it ended. Rejects with an Error that names
 * the program and what became of it, and shows nothing of what it printed. A program is killed that has not ended in
 * time, prints too much, or is under way when `signal` is aborted. However it ends, the processes of its group are
 * killed: each run would leave one more. A process that has left the group (setsid) is not.
 */
export function runProgram(
  [program, ...args]: Command,
  signal: AbortSignal,
  timeoutMs = PROGRAM_TIMEOUT_MS,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let child: ChildProcess;
    try {
      // A process group of its own, which execFile cannot make: what a script has started is killed with it.
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
    const onAbort = (): void => settle(new Error(`${program} was ended`));
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
      const how = code === null ? `was ended by ${killedBy}` : `ended with exit code ${code}`;
      if (code !== 0) settle(new Error(`${program} ${how}; run it as the user of weir to see why`));
      // A process that it has started may hold its standard output open for as long as it likes.
      else afterPoll(settle);
    });
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** Calls back once the event loop has read everything that is in a pipe by now: it polls between two checks. */
function afterPoll(then: () => void): void {
  setImmediate(() => setImmediate(then));
}

function notStarted(program: string, { code, message }: NodeJS.ErrnoException): Error {
  switch (code) {
    case 'ENOENT':
      return new Error(`there is no program ${program}; correct the path, or PATH`);
    case 'EACCES':
      return new Error(`this user may not run ${program}; check its owner and mode`);
    default:
      return new Error(`${program} could not be started (${code ?? message})`);
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // All of them have ended.
  }
}
