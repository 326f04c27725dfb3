/*
 * `npm run docs:answers [section or example…]`: runs the examples of README.md and writes the true answers below their
 * commands. Names may be parts of them; without any, all are run.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../process/tools.js';
import { type ReadmeCommand, readmeSections, withAnswers } from './readme-examples.js';
import { runSection } from './readme-runner.js';

const path = join(repositoryRoot, 'README.md');
const wanted = process.argv.slice(2);

async function main(): Promise<void> {
  const text = readFileSync(path, 'utf8');
  const answers = new Map<ReadmeCommand, readonly string[]>();
  const chosen = readmeSections(text).filter(({ title, examples }) => {
    const names = [title, ...examples.map(({ name }) => name)];
    return (
      examples.length > 0 &&
      (wanted.length === 0 || wanted.some((part) => names.some((name) => name.includes(part))))
    );
  });
  for (const section of chosen) {
    for (const [command, answer] of await runSection(section)) answers.set(command, answer);
    console.log(`ran ${section.examples.map(({ name }) => name).join(', ')}`);
  }
  writeFileSync(path, withAnswers(text, answers));
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
