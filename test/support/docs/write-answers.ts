/*
 * `npm run docs:answers [section or example…]` runs the examples of the manual and writes their answers below the
 * commands. An argument may be a part of a name, also of a page. Without arguments, all examples run.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { closeAll } from '../process/close-later.js';
import { repositoryRoot } from '../process/tools.js';
import { ExampleRunner } from './example-runner.js';
import { type PageCommand, pageSections, withAnswers } from './page-examples.js';
import { manualPages } from './pages.js';
import { stepsOf, WALKTHROUGHS, Walkthrough } from './walkthrough.js';

const wanted = process.argv.slice(2);

async function answerPage(page: string): Promise<void> {
  const path = join(repositoryRoot, page);
  const text = readFileSync(path, 'utf8');
  const answers = new Map<PageCommand, readonly string[]>();
  const chosen = pageSections(page, text).filter(({ title, examples }) => {
    const names = [page, title, ...examples.map(({ name }) => name)];
    return (
      examples.length > 0 &&
      (wanted.length === 0 || wanted.some((part) => names.some((name) => name.includes(part))))
    );
  });
  if (chosen.length === 0) return;
  const runner = await ExampleRunner.begin(chosen);
  for (const section of chosen) {
    for (const [command, answer] of await runner.run(section)) answers.set(command, answer);
    console.log(`${page}: ran ${section.examples.map(({ name }) => name).join(', ')}`);
  }
  await closeAll();
  writeFileSync(path, withAnswers(text, answers));
}

async function answerWalkthrough(page: string): Promise<void> {
  const path = join(repositoryRoot, page);
  const text = readFileSync(path, 'utf8');
  const answers = new Map<PageCommand, readonly string[]>();
  const walkthrough = await Walkthrough.begin();
  try {
    for (const step of stepsOf(page, text)) {
      const printed = await walkthrough.take(step);
      if (!('file' in step)) answers.set(step, printed);
    }
  } finally {
    await walkthrough.end();
  }
  console.log(`${page}: ran`);
  writeFileSync(path, withAnswers(text, answers));
}

async function main(): Promise<void> {
  for (const page of manualPages()) await answerPage(page);
  for (const page of WALKTHROUGHS) {
    if (wanted.length === 0 || wanted.some((part) => page.includes(part))) await answerWalkthrough(page);
  }
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
