import { describe, expect, test } from '@jest/globals';
import { readmeSections, withAnswers, withTimesOf } from '../../support/readme/readme-examples.js';
import { unusedExamples } from '../../support/readme/readme-runner.js';

const README = `# weir
\`\`\`yaml
some: file
\`\`\`
## Beyond
### One
Words.
\`\`\`yaml
# readme: one
domain: d
\`\`\`
\`\`\`console
$ grpcurl -d '{}' \\
  127.0.0.1:8081
{
  "a": 1
}

$ weir explain one.yaml
\`\`\`
### Two
### Three
\`\`\`yaml
# readme: old
domain: d
\`\`\`
\`\`\`yaml
# readme: new
domain: d
\`\`\`
\`\`\`console
$ weir diff old.yaml new.yaml
\`\`\`
`;
const sections = readmeSections(README);

describe('finds', () => {
  test('sections, and how many examples stand in them', () => {
    expect(sections.map(({ chapter, title, examples }) => [chapter, title, examples.length])).toEqual([
      ['', '', 0],
      ['Beyond', 'Beyond', 0],
      ['Beyond', 'One', 1],
      ['Beyond', 'Two', 0],
      ['Beyond', 'Three', 2],
    ]);
  });

  test('policies, and the commands below them with their answers', () => {
    expect(sections[2]?.examples).toEqual([
      {
        name: 'one',
        section: 'One',
        policy: '# readme: one\ndomain: d\n',
        line: 7,
        commands: [
          {
            text: "grpcurl -d '{}' \\\n  127.0.0.1:8081",
            line: 12,
            answer: ['{', '  "a": 1', '}', ''],
            answerLine: 14,
          },
          { text: 'weir explain one.yaml', line: 18, answer: [], answerLine: 19 },
        ],
      },
    ]);
  });

  test('policies that no command is about', () => {
    expect(sections.flatMap(unusedExamples)).toEqual([]);
    expect(readmeSections(README.replace('old.yaml', '')).flatMap(unusedExamples)).toEqual([
      'README.md:23: no command in a console block stands below example old',
    ]);
  });
});

describe('refuses', () => {
  test.each([
    [
      'a name twice',
      README.replace('readme: old', 'readme: one'),
      'README.md:24: there is another example one',
    ],
    ['a block without end', `${README}\`\`\`yaml\n`, 'README.md:34: this block is not closed'],
    ['an answer first', README.replace('$ weir diff', 'weir diff'), 'README.md:32: no command above this'],
  ])('%s', (_, text, problem) => {
    expect(() => readmeSections(text)).toThrow(problem);
  });
});

test('writes answers below their commands', () => {
  const [first, second] = sections[2]?.examples[0]?.commands ?? [];
  if (first === undefined || second === undefined) throw new Error('no commands');
  const answers = new Map([
    [first, ['{}']],
    [second, ['rule one', 'rule two']],
  ]);
  const after = readmeSections(withAnswers(README, answers))[2]?.examples[0]?.commands;
  expect(after?.map(({ answer }) => answer)).toEqual([['{}'], ['rule one', 'rule two']]);
  expect(withAnswers(README, new Map())).toBe(README);
});

describe('an answer with the times of README', () => {
  const readme = [
    '"durationUntilReset": "3600s"',
    '"key": "x-ratelimit-reset",',
    '  "value": "1795233601"',
    '"key": "ratelimit",',
    '  "value": "\\"default\\";r=5;t=10"',
    '"limit": 5',
    'since 2026-11-21T10:00:00Z',
  ];
  const later = readme
    .join('\n')
    .replace('3600', '59')
    .replace('1795233601', '1795239999')
    .replace('t=10', 't=7')
    .replace('10:00:00Z', '10:00:07.5Z');

  test('equals README where only the time differs', () => {
    expect(withTimesOf(readme, later)).toEqual(readme);
  });

  test('shows any other difference', () => {
    for (const [from, to] of [
      ['limit": 5', 'limit": 6'],
      ['r=5', 'r=4'],
      ['ratelimit-reset', 'ratelimit-remaining'],
    ] as const) {
      expect(withTimesOf(readme, later.replace(from, to))).not.toEqual(readme);
    }
    expect(withTimesOf(readme, `${later}\nmore`)).not.toEqual(readme);
    expect(withTimesOf(readme, later.split('\n').slice(1).join('\n'))).not.toEqual(readme);
  });
});
