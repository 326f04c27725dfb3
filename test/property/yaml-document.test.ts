/*
 * Compares parseYaml with the plain values that the parser returns for the same text, and checks positions and hidden
 * keys.
 */
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseDocument } from 'yaml';
import { ProblemList } from '../../src/config/yaml/config-problem.js';
import { joinPath, parseYaml } from '../../src/config/yaml/yaml-document.js';
import type { ShowKey, YamlValue } from '../../src/config/yaml/yaml-value.js';
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

/** Returns a value without positions. */
function plainValue(value: YamlValue): unknown {
  if (value.kind === 'scalar') return value.text;
  if (value.kind === 'list') return value.items.map(plainValue);
  return Object.fromEntries([...value.fields].map(([key, field]) => [key, plainValue(field.value)]));
}

/** Returns the value that the parser returns for the first document; undefined if it is invalid or empty. */
function parsedValue(text: string): unknown {
  const document = parseDocument(text, {
    schema: 'failsafe',
    resolveKnownTags: false,
    uniqueKeys: false,
    logLevel: 'error',
    stringKeys: false,
  });
  if (document.errors.some(({ code }) => code !== 'MULTIPLE_DOCS')) return undefined;
  return JSON.parse(JSON.stringify(document.toJS(), (_key, value) => value ?? ''));
}

/** Expects that every scalar of a value is in the text at its position, and that a hidden key hides all below it. */
function expectPlaces(value: YamlValue, lines: readonly string[], path: string, hidden: boolean): void {
  const { line, column } = value.at;
  const written = lines[line - 1]?.slice(column - 1) ?? '';
  if (value.kind === 'scalar') {
    const [word = ''] = value.text.split(/[\s'"\\]/, 1);
    if (value.plain) expectEqual(written.startsWith(word), true);
  } else if (value.kind === 'list') {
    for (const [i, item] of value.items.entries()) expectPlaces(item, lines, `${path}[${i}]`, hidden);
  } else {
    for (const field of value.fields.values()) {
      const shown = !hidden && showKey(path, field.key);
      expectEqual(field.shown, shown);
      expectPlaces(field.value, lines, shown ? joinPath(path, field.key) : `${path}[${field.index}]`, !shown);
    }
  }
}

let valid = 0;
let all = 0;

/** Expects the value of the parser if the text is valid, and problems with positions otherwise. */
function expectValue(text: string): void {
  all++;
  const problems = new ProblemList('f');
  const value = parseYaml(Buffer.from(text), problems, { showKey });
  const lines = text.split('\n');
  for (const { line } of problems.errors) expect(line).toBeLessThanOrEqual(lines.length);
  if (value === undefined) {
    expect(problems.errors).not.toEqual([]);
    return;
  }
  expectPlaces(value, lines, '', false);
  if (problems.errors.length > 0) return;
  valid++;
  // The parser reads merge keys only in other schemas.
  if (!text.includes('<<'))
    expectEqual({ text, value: plainValue(value) }, { text, value: parsedValue(text) });
}

test('documents in block style', () => {
  valid = 0;
  all = 0;
  const start = fc.constantFrom('', '---\n', '# note\n', '\n', '--- \n', '%YAML 1.2\n---\n');
  fc.assert(
    fc.property(anyNode, start, fc.constantFrom('', '---\na: b\n', '...\n'), (node, begin, end) => {
      const tail = end === '' || node.step === 4 ? '' : end;
      expectValue(begin + render(node, 0, false) + tail);
    }),
    runs(3000),
  );
  // Enough texts must be valid.
  expect(valid).toBeGreaterThan(all / 100);
});

test('policies with characters added, removed and doubled', () => {
  valid = 0;
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
      expectValue(text);
    }),
    runs(3000),
  );
  expect(valid).toBeGreaterThan(all / 100);
});
