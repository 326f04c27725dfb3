/* A program of the tests: runs commands of weir one after the other in this process. See commands.ts. */
import { readFileSync, writeFileSync } from 'node:fs';
import { run } from '../../../src/cli/run.js';
import type { Command, CommandResult } from './commands.js';
import { WEIR_MAIN } from './weir.js';

async function runAll(commands: readonly Command[]): Promise<readonly CommandResult[]> {
  const results: CommandResult[] = [];
  for (const { args, folder, environment = {} } of commands) {
    let printed = '';
    const write = (text: string): void => {
      printed += text;
    };
    process.chdir(folder);
    const code = await run(args, {
      environment,
      out: write,
      err: write,
      terminal: false,
      isRead: () => true,
      openScreen: () => Promise.reject(new Error('there is no terminal')),
      entry: WEIR_MAIN,
      worker: false,
      onSignal: () => {},
    });
    results.push({ code, printed });
  }
  return results;
}

const [, , questions = '', answers = ''] = process.argv;
void runAll(JSON.parse(readFileSync(questions, 'utf8')) as Command[]).then((results) => {
  writeFileSync(answers, JSON.stringify(results));
  process.exit(0);
});
