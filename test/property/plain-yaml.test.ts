/*
 * Compares the fast reader of plain YAML with the parser. If the fast reader accepts a text, both must return the same
 * result, including columns.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assetPath } from '../../src/assets.js';
import { readAnyYaml } from '../../src/config/yaml/any-yaml.js';
import { ProblemList } from '../../src/config/yaml/config-problem.js';
import { readPlainYaml } from '../../src/config/yaml/plain-yaml.js';
import { parseYaml } from '../../src/config/yaml/yaml-document.js';
import type { ShowKey } from '../../src/config/yaml/yaml-value.js';
import { expectEqual } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';

const showKey: ShowKey = (path, key) => !key.startsWith('b') && !path.endsWith('c');

/** Texts that end a scalar or begin another token, and texts that resemble them. */
const SCALARS = [
  'text',
  'two words',
  'a:b',
  'a: b',
  'a:',
  ':a',
  '#a',
  'a #b',
  'a#b',
  '-5',
  '- a',
  '-',
  '--',
  '---',
  '...',
  '? a',
  '?a',
  '~',
  '',
  '007',
  '0x1F',
  '*',
  '*a',
  '&a x',
  '!t x',
  '<<',
  '|',
  '>-',
  '%a',
  '@a',
  '`a',
  "'q'",
  "'it''s'",
  "'a' b",
  "'a'#b",
  "'a' #b",
  "'a':",
  "'open",
  '"q"',
  '"a\\n"',
  '""',
  '"a": b',
  '"open',
  '{}',
  '[]',
  '{ a: b }',
  '{a: b,c: d}',
  '{ a: b, }',
  '{ a: , b: c }',
  '{ a: b, a: c }',
  '{ a:b }',
  '{ a }',
  '{ "a": b, c: \'d\' }',
  '[a, b]',
  '[a b, c]',
  '[a, ]',
  '[a: b]',
  '[[a], {b: [c]}]',
  '[a]b',
  '[ a ] # b',
  '{ a: 00:00Z, b: a:b }',
  '{ a: "b"}',
  '{ a: b#c }',
  '{ a: b #c }',
  '{ a: -5, b: - }',
  '[a:, b]',
  '[?a]',
  '[-a]',
  '{a: *}',
  '/open/{v4,v5}/**',
  'é ü — 漢字 😀',
  'a\tb',
  'a\u00a0b',
  'a\u2028b',
  'a\r',
  ' lead',
  'trail  ',
  'x'.repeat(300),
];

const KEYS = [
  'a',
  'b',
  'c',
  'key',
  'a-b',
  'a_b.c',
  '007',
  '<<',
  'a b',
  "'a'",
  '?',
  '-a',
  'é',
  '',
  'a/b',
  '/a',
  'k'.repeat(250),
];

interface Node {
  readonly kind: 'scalar' | 'map' | 'list';
  readonly text: string;
  readonly items: readonly (readonly [string, Node])[];
  /** Number of spaces by which a nested block is indented. 0 may be an error, or a list below a key. */
  readonly step: number;
  readonly noise: string;
}

const { node: anyNode } = fc.letrec<{ node: Node; leaf: Node }>((tie) => {
  const text = fc.oneof({ weight: 20, arbitrary: fc.constant('text') }, fc.constantFrom(...SCALARS));
  const key = fc.oneof(
    { weight: 30, arbitrary: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h') },
    fc.constantFrom(...KEYS),
  );
  const step = fc.oneof({ weight: 30, arbitrary: fc.constantFrom(2, 4) }, fc.constantFrom(0, 1, 3));
  const noise = fc.oneof(
    { weight: 20, arbitrary: fc.constant('') },
    fc.constantFrom('# note\n', '\n', '   \n', '      # deep\n', ' ', ' # end', '\t'),
  );
  const make = (kind: Node['kind'], items: fc.Arbitrary<[string, Node][]>): fc.Arbitrary<Node> =>
    fc.record({ kind: fc.constant(kind), text, items, step, noise });
  const items = (min: number): fc.Arbitrary<[string, Node][]> =>
    fc.array(fc.tuple(key, tie('node')), { minLength: min, maxLength: 4 });
  return {
    leaf: make('scalar', fc.constant([])),
    node: fc.oneof(
      { maxDepth: 5, depthSize: 'small' },
      { weight: 2, arbitrary: tie('leaf') },
      { weight: 2, arbitrary: make('map', items(1)) },
      { weight: 2, arbitrary: make('list', items(1)) },
    ),
  };
});

/**
 * Renders block YAML. `indent` is the indentation of the node's lines; `first` tells whether its first line continues
 * an existing line.
 */
function render(node: Node, indent: number, first: boolean): string {
  if (node.kind === 'scalar') return `${node.text}${node.noise.includes('\n') ? '' : node.noise}\n`;
  const pad = ' '.repeat(indent);
  return node.items
    .map(([key, value], i) => {
      const noise = i > 0 && node.noise.includes('\n') ? node.noise : '';
      const before = `${noise}${i === 0 && first ? '' : pad}`;
      if (node.kind === 'list') return `${before}- ${render(value, indent + 2, true)}`;
      if (value.kind === 'scalar') return `${before}${key}: ${render(value, indent, false)}`;
      return `${before}${key}:\n${render(value, indent + value.step, false)}`;
    })
    .join('');
}

let plain = 0;
let all = 0;

/** Expects that both readers return the same result, unless the fast reader leaves the text to the parser. */
function expectAgreement(text: string): void {
  all++;
  const value = readPlainYaml(text, showKey, false);
  if (value === undefined) return;
  plain++;
  const problems = new ProblemList('f');
  const expected = readAnyYaml(text, problems, {}, showKey);
  if (problems.errors.length + problems.warnings.length > 0 || !isDeepStrictEqual(value, expected)) {
    expectEqual(
      { text, value, said: [] },
      {
        text,
        value: expected,
        said: [...problems.errors, ...problems.warnings],
      },
    );
  }
}

test('documents in block style', () => {
  plain = 0;
  all = 0;
  const start = fc.constantFrom('', '---\n', '# note\n', '\n', '--- \n', '%YAML 1.2\n---\n');
  fc.assert(
    fc.property(anyNode, start, fc.constantFrom('', '---\na: b\n', '...\n'), (node, begin, end) => {
      const tail = end === '' || node.step === 4 ? '' : end;
      expectAgreement(begin + render(node, 0, false) + tail);
    }),
    runs(3000),
  );
  // The fast reader must accept enough texts.
  expect(plain).toBeGreaterThan(all / 100);
});

test('policies with characters added, removed and doubled', () => {
  plain = 0;
  all = 0;
  const policy = [
    'domain: d # the domain',
    'response_headers: [x-ratelimit, retry-after]',
    'descriptors:',
    '  - key: a',
    '    value: "x y"',
    '    descriptors:',
    '    - key: b',
    "      value: 'it*'",
    '      rate_limit: { token_bucket: { max_tokens: 3, fill_interval: 1s }, name: n }',
    '',
    '# between',
    '  - key: c',
    '    rate_limit:',
    '      unit: minute',
    '      requests_per_unit: 007',
    '',
  ].join('\n');
  const edit = fc.record({
    at: fc.nat(policy.length),
    remove: fc.nat(3),
    insert: fc.constantFrom(
      '',
      ' ',
      '  ',
      '\n',
      ':',
      ': ',
      '-',
      '- ',
      '#',
      ' #',
      '{',
      '}',
      '[',
      ']',
      ',',
      "'",
      '"',
      '&a ',
      '*a',
      '!',
      '|',
      '>',
      '?',
      '? ',
      '\t',
      '\\',
      '---\n',
      'x',
      '%',
    ),
  });
  fc.assert(
    fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), (edits) => {
      let text = policy;
      for (const { at, remove, insert } of edits) text = text.slice(0, at) + insert + text.slice(at + remove);
      expectAgreement(text);
    }),
    runs(3000),
  );
  expect(plain).toBeGreaterThan(all / 100);
});

test('the shipped policies are read without the parser', () => {
  const folder = assetPath('deploy/policies');
  for (const name of readdirSync(folder).filter((one) => one.endsWith('.yaml'))) {
    const bytes = readFileSync(join(folder, name));
    const value = readPlainYaml(bytes.toString(), showKey, false);
    expectEqual({ name, plain: value !== undefined }, { name, plain: true });
    expectAgreement(bytes.toString());
    expectEqual(parseYaml(bytes, new ProblemList(name), { showKey }), value);
  }
});

test('a text is hidden wherever the parser would hide it', () => {
  const text = 'a: { bb: { k: [ { x: y } ] } }\nc:\n  d:\n    - e: f\n';
  expectAgreement(text);
  const hidden = readPlainYaml(text, () => true, true);
  expectEqual(
    hidden,
    readAnyYaml(text, new ProblemList('f'), { secret: true }, () => true),
  );
});
