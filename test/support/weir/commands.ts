import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { environmentOf } from '../process/processes.js';
import { repositoryRoot } from '../process/tools.js';

/** A command of weir that ends by itself. */
export interface Command {
  /** What stands after `weir`. */
  readonly args: readonly string[];
  /** The working directory. */
  readonly folder: string;
  /** All variables that it sees. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch, where the clock must stand still. */
  readonly nowMs?: number;
}

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output and standard error as they came, but for the log of a server. */
  readonly printed: string;
}

/**
 * A process that runs commands one after the other: to start one for each takes longer than what most of them do.
 * A command that is about the process itself (signals, pipes, a terminal) needs one of its own.
 */
export class CommandHost {
  private readonly child: ChildProcess;
  private last: Promise<unknown> = Promise.resolve();

  constructor() {
    this.child = fork(join(repositoryRoot, 'build/test/support/weir/run-commands.js'), {
      env: environmentOf({ bareEnvironment: true }),
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
  }

  /** Runs a command when those before it have ended. */
  run(command: Command): Promise<CommandResult> {
    const result = this.last.then(() => this.ask(command));
    this.last = result.catch(() => {});
    return result;
  }

  /** Resolves when the process has ended. */
  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.child.once('exit', () => resolve());
      if (!this.child.kill('SIGKILL')) resolve();
    });
  }

  private ask(command: Command): Promise<CommandResult> {
    return new Promise((resolve, reject) => {
      const failed = (): void => reject(new Error(`the process ended in weir ${command.args.join(' ')}`));
      this.child.once('exit', failed);
      this.child.once('message', (result) => {
        this.child.off('exit', failed);
        resolve(result as CommandResult);
      });
      this.child.send(command, (error) => error !== null && reject(error));
    });
  }
}

/** Runs commands one after the other, all in one process. */
export async function runCommands(commands: readonly Command[]): Promise<readonly CommandResult[]> {
  const host = new CommandHost();
  try {
    const results: CommandResult[] = [];
    for (const command of commands) results.push(await host.run(command));
    return results;
  } finally {
    await host.stop();
  }
}
