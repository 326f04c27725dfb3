/** Environment, streams and signals of the process. main.ts passes the real ones, and tests pass others. */
export interface Io {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Writes to standard output and adds no newline. */
  out(text: string): void;
  /** Writes to standard error and adds no newline. */
  err(text: string): void;
  /** Whether standard output is a terminal. See `showsColours` for whether to print colors. */
  readonly terminal: boolean;
  /** Returns whether standard output still has a reader. If not, commands that print repeatedly exit. */
  isRead(): boolean;
  /** Script that this process runs, and that worker processes run, too. */
  readonly entry: string;
  /** Whether this process is a worker of another `weir serve`. */
  readonly worker: boolean;
  /** Calls `listener` for each SIGTERM, SIGINT and SIGHUP. */
  onSignal(listener: (signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP') => void): void;
}

/** Interval of progress messages, in milliseconds. Commands that finish sooner print none. */
export const PROGRESS_MS = 2000;

/** Exit codes of all commands, as `weir --help` lists them. */
export const EXIT = {
  OK: 0,
  /** The command failed, for example because of an invalid policy, a port in use, or a server that does not answer. */
  FAILED: 1,
  /** The command line is invalid. */
  USAGE: 2,
  /**
   * `weir diff`: a request that the old policy allows could now be denied. `weir replay`: more requests would be newly
   * denied than `--max-newly-denied` allows.
   */
  TIGHTENS: 3,
  /** `weir replay`: the log does not support a verdict about `--max-newly-denied`. */
  UNDECIDED: 4,
} as const;

/** Ends a command with an exit code. Each line is a sentence for the user, without a full stop. */
export class CommandError extends Error {
  readonly code: number;
  readonly lines: readonly string[];

  constructor(code: number, ...lines: readonly string[]) {
    super(lines.join('; '));
    this.code = code;
    this.lines = lines;
  }
}

/** Creates the error of an invalid command line, which names the help of the command. */
export function usageError(command: string, sentence: string): CommandError {
  return new CommandError(EXIT.USAGE, `${sentence}; see weir ${command} --help`);
}

/** Runs a command. If it throws a {@link CommandError}, prints the lines after `name`, and returns the exit code. */
export async function reportErrors(
  name: string,
  io: Pick<Io, 'err'>,
  command: () => Promise<number>,
): Promise<number> {
  try {
    return await command();
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    for (const line of error.lines) io.err(`${name}: ${line}\n`);
    return error.code;
  }
}
