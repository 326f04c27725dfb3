import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { closeLater } from '../process/close-later.js';
import { environmentOf } from '../process/processes.js';
import { repositoryRoot } from '../process/tools.js';

/** A weir command that exits by itself. */
export interface Command {
  /** Arguments after `weir`. */
  readonly args: readonly string[];
  /** Working directory. */
  readonly folder: string;
  /** Complete environment of the command. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Fixed time of the command's clock, in milliseconds since the epoch. */
  readonly nowMs?: number;
}

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output and standard error, without the log of a server. */
  readonly printed: string;
}

/**
 * A process that runs commands one after another, because starting a process takes longer than most commands do. A
 * command that depends on its process (signals, pipes, a terminal) needs its own.
 */
export class CommandHost {
  private readonly child: ChildProcess;
  private last: Promise<unknown> = Promise.resolve();

  constructor(env: NodeJS.ProcessEnv = {}) {
    this.child = fork(join(repositoryRoot, 'build/test/support/weir/run-commands.js'), {
      env: environmentOf({ bareEnvironment: true, env }),
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    closeLater(this, () => this.stop());
  }

  /** Runs a command after the previous ones have ended. */
  run(command: Command): Promise<CommandResult> {
    const result = this.last.then(() => this.ask(command));
    this.last = result.catch(() => {});
    return result;
  }

  /** Resolves when the process has exited. */
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

/** Runs commands one after another in one process. */
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
