import { describe, expect, test } from '@jest/globals';
import { unusedExamples } from '../../support/docs/example-runner.js';
import { HoldTokens, pageSections, withAnswers, withShown } from '../../support/docs/page-examples.js';

const PAGE = `# weir
\`\`\`yaml
some: file
\`\`\`
## Beyond
### One
Words.
\`\`\`yaml
# example: one
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
# example: old
domain: d
\`\`\`
\`\`\`yaml
# example: new
domain: d
\`\`\`
\`\`\`console
$ weir diff old.yaml new.yaml
\`\`\`
`;
const sections = pageSections('docs/page.md', PAGE);

describe('finds', () => {
  test('sections and their examples', () => {
    expect(sections.map(({ page, title, examples }) => [page, title, examples.length])).toEqual([
      ['docs/page.md', '', 0],
      ['docs/page.md', 'weir', 0],
      ['docs/page.md', 'Beyond', 0],
      ['docs/page.md', 'One', 1],
      ['docs/page.md', 'Two', 0],
      ['docs/page.md', 'Three', 2],
    ]);
  });

  test('policies, and the commands below them with their output', () => {
    expect(sections[3]?.examples).toEqual([
      {
        page: 'docs/page.md',
        name: 'one',
        section: 'One',
        policy: '# example: one\ndomain: d\n',
        line: 7,
        commands: [
          {
            page: 'docs/page.md',
            text: "grpcurl -d '{}' \\\n  127.0.0.1:8081",
            line: 12,
            answer: ['{', '  "a": 1', '}', ''],
            answerLine: 14,
          },
          { page: 'docs/page.md', text: 'weir explain one.yaml', line: 18, answer: [], answerLine: 19 },
        ],
      },
    ]);
  });

  test('policies that no command uses', () => {
    expect(sections.flatMap(unusedExamples)).toEqual([]);
    expect(pageSections('docs/page.md', PAGE.replace('old.yaml', '')).flatMap(unusedExamples)).toEqual([
      'docs/page.md:23: no command in a console block stands below example old',
    ]);
  });
});

describe('rejects', () => {
  test.each([
    [
      'a duplicate name',
      PAGE.replace('example: old', 'example: one'),
      'docs/page.md:24: there is another example one',
    ],
    ['a block that is not closed', `${PAGE}\`\`\`yaml\n`, 'docs/page.md:34: this block is not closed'],
    [
      'output without a command',
      PAGE.replace('$ weir diff', 'weir diff'),
      'docs/page.md:32: no command above this',
    ],
  ])('%s', (_, text, problem) => {
    expect(() => pageSections('docs/page.md', text)).toThrow(problem);
  });
});

test('writes output below the commands', () => {
  const [first, second] = sections[3]?.examples[0]?.commands ?? [];
  if (first === undefined || second === undefined) throw new Error('no commands');
  const answers = new Map([
    [first, ['{}']],
    [second, ['rule one', 'rule two']],
  ]);
  const after = pageSections('docs/page.md', withAnswers(PAGE, answers))[3]?.examples[0]?.commands;
  expect(after?.map(({ answer }) => answer)).toEqual([['{}'], ['rule one', 'rule two']]);
  expect(withAnswers(PAGE, new Map())).toBe(PAGE);
});

describe('withShown', () => {
  const shown = [
    '"durationUntilReset": "3600s"',
    '"key": "x-ratelimit-reset",',
    '  "value": "1795233601"',
    '"key": "ratelimit",',
    '  "value": "\\"default\\";r=5;t=10"',
    '  "time":"2026-11-21T10:00:00Z"}',
    '  "micros":212}',
    'exact; only 1.2s of data so far',
  ];
  const again = shown.join('\n').replace('212', '97').replace('for 1.2s', 'for 0s');

  test('ignores measured values and ids', () => {
    expect(withShown(shown, again)).toEqual(shown);
  });

  test.each([
    ['a duration', '"3600s"', '"0s"'],
    ['the value of a header', '1795233601', '1795233602'],
    ['the time in a header', 't=10', 't=7'],
    ['the remaining requests', 'r=5', 'r=4'],
    ['a time', '10:00:00Z', '10:00:07.5Z'],
    ['a name', 'ratelimit-reset', 'ratelimit-remaining'],
    ['an additional line', '"micros":97}', '"micros":97}\nmore'],
    ['a missing line', '"durationUntilReset": "3600s"\n', ''],
  ])('finds a difference in %s', (_what, from, to) => {
    expect(withShown(shown, again.replace(from, to))).not.toEqual(shown);
  });
});

describe('hold tokens', () => {
  const [shown, real] = ['A'.repeat(60), 'B'.repeat(60)] as const;
  const answer = (token: string) => `"hold": "${token}"`;
  const tokens = new HoldTokens();
  tokens.note([answer(shown)], answer(real));

  test('of the page are replaced with those of the run in later commands', () => {
    const command = (token: string) => `grpcurl -d '{"key":"hold","value":"${token}"}'`;
    expect(tokens.inCommand(command(shown))).toBe(command(real));
    expect(tokens.inCommand(command('other'))).toBe(command('other'));
  });

  test('of an answer are not compared', () => {
    expect(withShown([answer(shown)], answer(real))).toEqual([answer(shown)]);
    expect(withShown([answer(shown)], '"hold": "short"')).toEqual(['"hold": "short"']);
  });
});
