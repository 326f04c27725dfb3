import { type ChildProcess, spawn } from 'node:child_process';
import { waitFor } from './wait-for.js';

/** Exit of a process: `code` is null if a signal ended it. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface StartOptions {
  /** Variables added to the environment of the tests. */
  readonly env?: NodeJS.ProcessEnv;
  /** True: pass only `env`, PATH and the variable that identifies leftover processes. */
  readonly bareEnvironment?: boolean;
  readonly cwd?: string;
  /** False: the output remains in the pipes, which fill up soon; `lines()` and similar methods return nothing. */
  readonly readsOutput?: boolean;
}

export interface StartedProcess {
  readonly pid: number;
  /** Resolves when the process has exited and its output is complete. */
  readonly exited: Promise<Exit>;
  stdout(): string;
  stderr(): string;
  /** Lines of stdout and stderr, in order of arrival. */
  lines(): string[];
  /**
   * Resolves with the first line that matches. Rejects with the output so far if the process exits before, or after
   * `timeoutMs`.
   */
  waitForLine(pattern: RegExp, timeoutMs?: number): Promise<string>;
  /** Returns whether the process is still running. */
  isRunning(): boolean;
  signal(signal: NodeJS.Signals): void;
  /** Sends `signal` (default SIGTERM), and SIGKILL if the process still runs after `graceMs` (default 10,000). */
  stop(signal?: NodeJS.Signals, graceMs?: number): Promise<Exit>;
}

const running = new Set<StartedProcess>();

/** Ends every running process that was started here. */
export async function stopAllProcesses(): Promise<void> {
  await Promise.all([...running].map((started) => started.stop('SIGKILL')));
}

// Under jest, .ci/test-environment.cjs ends the processes that a test file started, even if its tests fail.
(globalThis as { weirTestEnd?: () => Promise<void> }).weirTestEnd = stopAllProcesses;
process.on('exit', () => {
  for (const started of running) started.signal('SIGKILL');
});

/** Returns the environment of a process that is started with these options. */
export function environmentOf({ env, bareEnvironment }: StartOptions): NodeJS.ProcessEnv {
  const { PATH, WEIR_TEST_RUN, NODE_COMPILE_CACHE } = process.env;
  // Node.js passes no variables whose value is undefined.
  const kept = bareEnvironment === true ? { PATH, WEIR_TEST_RUN, NODE_COMPILE_CACHE } : process.env;
  return { ...kept, ...env };
}

/** Starts a program, collects its output, and ensures that it ends with the tests. */
export function startProcess(
  command: string,
  args: readonly string[],
  options: StartOptions = {},
): StartedProcess {
  const child: ChildProcess = spawn(command, args, {
    env: environmentOf(options),
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(options.cwd !== undefined && { cwd: options.cwd }),
  });
  let stdout = '';
  let stderr = '';
  let both = '';
  if (options.readsOutput === false) {
    // A stream that is not read emits no end.
    child.once('exit', () => {
      child.stdout?.destroy();
      child.stderr?.destroy();
    });
  } else {
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      both += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
      both += text;
    });
  }
  let ended = false;
  const exited = new Promise<Exit>((resolve) => {
    child.once('error', (error) => {
      both += `${command}: ${error.message}\n`;
      ended = true;
      running.delete(started);
      resolve({ code: 127, signal: null });
    });
    child.once('close', (code, signal) => {
      ended = true;
      running.delete(started);
      resolve({ code, signal });
    });
  });
  const lines = () => both.split('\n').filter((line) => line !== '');
  const started: StartedProcess = {
    pid: child.pid ?? -1,
    exited,
    stdout: () => stdout,
    stderr: () => stderr,
    lines,
    waitForLine: async (pattern, timeoutMs = 60_000) => {
      let found: string | undefined;
      try {
        await waitFor(
          `a line like ${pattern}`,
          () => {
            found = lines().find((line) => pattern.test(line));
            return found !== undefined || ended ? true : undefined;
          },
          timeoutMs,
        );
      } catch (error) {
        throw new Error(`${(error as Error).message} of ${command}; it printed:\n${both}`);
      }
      if (found === undefined)
        throw new Error(`${command} ended without a line like ${pattern}; it printed:\n${both}`);
      return found;
    },
    isRunning: () => !ended,
    signal: (signal) => {
      if (!ended) child.kill(signal);
    },
    stop: async (signal = 'SIGTERM', graceMs = 10_000) => {
      if (ended) return exited;
      child.kill(signal);
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
      const exit = await exited;
      clearTimeout(timer);
      return exit;
    },
  };
  running.add(started);
  return started;
}

/** Runs a program to its end. Rejects after `timeoutMs`, by default a little earlier than the time limit of a test. */
export async function runToEnd(
  command: string,
  args: readonly string[],
  options: StartOptions & { readonly timeoutMs?: number } = {},
): Promise<Exit & { readonly stdout: string; readonly stderr: string }> {
  const { timeoutMs = 140_000 } = options;
  const started = startProcess(command, args, options);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    started.signal('SIGKILL');
  }, timeoutMs);
  const exit = await started.exited;
  clearTimeout(timer);
  if (late)
    throw new Error(
      `${command} was still running after ${timeoutMs} ms; it printed:\n${started.lines().join('\n')}`,
    );
  return { ...exit, stdout: started.stdout(), stderr: started.stderr() };
}
