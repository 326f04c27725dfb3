/*
 * Runs the examples of the manual, whose form is described in support/docs/page-examples.ts: a real server loads the
 * policy, and the real grpcurl must get the answer that the page shows. `npm run docs:answers` writes the true answers.
 */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ExampleRunner, unusedExamples } from '../support/docs/example-runner.js';
import { type PageSection, pageSections } from '../support/docs/page-examples.js';
import { manualPages, pageText } from '../support/docs/pages.js';
import { WALKTHROUGHS } from '../support/docs/walkthrough.js';
import { optionalToolPath } from '../support/process/tools.js';

const sections = manualPages().flatMap((page) => pageSections(page, pageText(page)));

/** Joins commands and their answers into one text. */
const consoleText = (section: PageSection, answers?: ReadonlyMap<unknown, readonly string[]>) =>
  section.examples
    .flatMap(({ commands }) => commands)
    .flatMap((command) => [
      `$ ${command.text}`,
      ...(answers === undefined ? command.answer : (answers.get(command) ?? [])),
    ])
    .join('\n');

test('every page about policies has an example or is a walkthrough', () => {
  const withExample = sections.filter(({ examples }) => examples.length > 0).map(({ page }) => page);
  const withCommands = [...withExample, ...WALKTHROUGHS];
  const pages = manualPages().filter((page) => page.startsWith('docs/policy/'));
  expect(pages.filter((page) => !withCommands.includes(page))).toEqual([]);
});

test('a command follows every example', () => {
  expect(sections.flatMap(unusedExamples)).toEqual([]);
});

const withExamples = sections.filter(({ examples }) => examples.length > 0);
(optionalToolPath('grpcurl') === undefined ? describe.skip : describe)('what the manual answers', () => {
  let runner: ExampleRunner;
  beforeAll(async () => {
    runner = await ExampleRunner.begin(withExamples);
  });

  test.each(withExamples.map((section) => [section.page, section.title, section] as const))(
    '%s: %s',
    async (_page, _title, section) => {
      const answers = await runner.run(section);
      // Lines with + are missing in the page; npm run docs:answers writes them.
      expect(consoleText(section, answers)).toBe(consoleText(section));
    },
  );
});
