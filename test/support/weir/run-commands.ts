/* Runs the weir commands that the parent process sends, in this process. See commands.ts. */
import { run } from '../../../src/cli/run.js';
import type { Command, CommandResult } from './commands.js';
import { WEIR_MAIN } from './weir.js';

const realTime = Date.now;

async function runOne({ args, folder, environment = {}, nowMs }: Command): Promise<CommandResult> {
  let stdout = '';
  let stderr = '';
  let printed = '';
  process.chdir(folder);
  Date.now = nowMs === undefined ? realTime : () => nowMs;
  const code = await run(args, {
    environment,
    out: (text) => {
      stdout += text;
      printed += text;
    },
    err: (text) => {
      stderr += text;
      printed += text;
    },
    terminal: false,
    isRead: () => true,
    entry: WEIR_MAIN,
    worker: false,
    onSignal: () => {},
  });
  return { code, stdout, stderr, printed };
}

// Each `serve` adds a listener.
process.setMaxListeners(0);

process.on('message', async (command: Command) => {
  process.send?.(await runOne(command));
});
process.on('disconnect', () => process.exit(0));
