import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runToEnd } from '../process/processes.js';
import { TempDir } from '../process/temp-dir.js';
import { repositoryRoot } from '../process/tools.js';

/** A command of weir that ends by itself. */
export interface Command {
  /** What stands after `weir`. */
  readonly args: readonly string[];
  /** The working directory. */
  readonly folder: string;
  /** All variables that it sees. */
  readonly environment?: Readonly<Record<string, string>>;
}

export interface CommandResult {
  readonly code: number;
  /** Standard output and standard error as they came, but for the log of a server. */
  readonly printed: string;
}

/**
 * Runs commands one after the other, all in one process: to start one for each takes longer than what most of them do.
 */
export async function runCommands(commands: readonly Command[]): Promise<readonly CommandResult[]> {
  const folder = new TempDir();
  try {
    const answers = folder.join('answers.json');
    const program = join(repositoryRoot, 'build/test/support/weir/run-commands.js');
    const args = [program, folder.write('commands.json', JSON.stringify(commands)), answers];
    const { code, stdout, stderr } = await runToEnd(process.execPath, args, { bareEnvironment: true });
    if (code !== 0) throw new Error(`commands failed:\n${stdout}${stderr}`);
    return JSON.parse(readFileSync(answers, 'utf8')) as CommandResult[];
  } finally {
    folder.remove();
  }
}
