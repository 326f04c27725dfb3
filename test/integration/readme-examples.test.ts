/*
 * README's examples (support/readme/readme-examples.ts says what they look like) are run: a real server has the policy,
 * and the real grpcurl must get the answer that stands there. `npm run docs:answers` writes the true answers.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { optionalToolPath, repositoryRoot } from '../support/process/tools.js';
import { type ReadmeSection, readmeSections } from '../support/readme/readme-examples.js';
import { runSection, unusedExamples } from '../support/readme/readme-runner.js';

const sections = readmeSections(readFileSync(join(repositoryRoot, 'README.md'), 'utf8'));
const beyond = sections.filter(
  ({ chapter, title }) => chapter === 'Beyond the reference' && title !== chapter,
);

/** Commands with their answers, one after the other. */
const consoleText = (section: ReadmeSection, answers?: ReadonlyMap<unknown, readonly string[]>) =>
  section.examples
    .flatMap(({ commands }) => commands)
    .flatMap((command) => [
      `$ ${command.text}`,
      ...(answers === undefined ? command.answer : (answers.get(command) ?? [])),
    ])
    .join('\n');

test('every section of "Beyond the reference" has an example', () => {
  expect(beyond.length).toBeGreaterThan(5);
  // A heading with nothing below it has none, either.
  const without = beyond.filter(({ examples }) => examples.length === 0);
  expect(without.map(({ title }) => title)).toEqual([]);
});

test('below every example stands a command', () => {
  expect(sections.flatMap(unusedExamples)).toEqual([]);
});

const withExamples = sections.filter(({ examples }) => examples.length > 0);
(optionalToolPath('grpcurl') === undefined ? describe.skip : describe)('what README answers', () => {
  test.each(withExamples.map((section) => [section.title, section] as const))(
    '%s',
    async (_, section) => {
      const answers = await runSection(section);
      // Lines with + are what README should say: npm run docs:answers writes them.
      expect(consoleText(section, answers)).toBe(consoleText(section));
    },
    120_000,
  );
});
