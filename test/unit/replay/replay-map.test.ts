import { expect, test } from '@jest/globals';
import { formatProblem } from '../../../src/config/yaml/config-problem.js';
import { type LogMap, type MemberPath, readReplayMap, textAt } from '../../../src/replay/replay-map.js';
import { TempDir } from '../../support/process/temp-dir.js';

const folder = new TempDir();

function errorsOf(text: string): readonly string[] {
  const map = readReplayMap(folder.write('map.yaml', text));
  if ('domain' in map) throw new Error('the map is valid');
  return map.map((problem) => formatProblem({ ...problem, file: 'map.yaml' }));
}

const GOOD = 'domain: shop\ntime: start\ndescriptors: [[{ key: tenant, from: tenant }]]\n';

test('reads all keys', () => {
  const map = readReplayMap(
    folder.write(
      'map.yaml',
      `${GOOD}method: method
status: code
flags: flags
details: details
duration: took
duration_unit: ms
hits: { from: weight }
at_end: { hits: { from: usage.tokens }, descriptors: [[{ key: tenant, from: tenant }, { key: kind, value: tokens }]] }
`,
    ),
  ) as LogMap;
  expect(map).toMatchObject({ domain: 'shop', time: { text: 'start' }, durationUnitMicros: 1000 });
  expect(map.start.hits).toEqual({ text: 'weight', steps: ['weight'] });
  expect(map.end).toMatchObject({
    hits: { steps: ['usage', 'tokens'] },
    descriptors: [
      [
        { key: 'tenant', or: undefined },
        { key: 'kind', from: undefined, or: 'tokens' },
      ],
    ],
  });
});

test.each([
  ['', 'map.yaml: the file is empty; add a policy, or remove the file'],
  ['[]', 'map.yaml:1:1: a map must be a mapping, not a list; begin it with "domain: <name>"'],
  [GOOD.replace('domain: shop\n', ''), '"domain" is missing; write the domain that Envoy sends'],
  [GOOD.replace('time: start\n', ''), '"time" is missing; write the member with the start of the request'],
  ['domain: shop\ntime: start\n', '"descriptors" is missing; write descriptors, each of which is a list'],
  [`${GOOD}tim: x\n`, 'map.yaml:4:1: tim: unknown key "tim"; did you mean "time"?'],
  [`${GOOD}duration: took\nduration_unit: min\n`, 'map.yaml:5:16: duration_unit: '],
  [`${GOOD}duration_unit: ms\n`, '"duration_unit" needs "duration"'],
  [`${GOOD}at_end: { descriptors: [] }\n`, '"at_end" needs "duration"'],
  [`${GOOD}hits: -1\n`, 'map.yaml:4:7: hits: '],
  [`${GOOD}hits: { form: x }\n`, 'map.yaml:4:9: hits.form: unknown key "form"; did you mean "from"?'],
  [GOOD.replace('[[', '[').replace(']]', ']'), 'map.yaml:3:15: descriptors[0]: a descriptor must be a list'],
  [GOOD.replace('{ key: tenant, from: tenant }', 'tenant'), 'an entry must be a mapping, not a single value'],
  [GOOD.replace('key: tenant, ', ''), '"key" is missing; write the key of the entry that Envoy sends'],
  [GOOD.replace(', from: tenant', ''), 'an entry needs either "from" (a member of the log) or "value"'],
  [
    GOOD.replace('from: tenant', 'frm: tenant'),
    'descriptors[0][0].frm: unknown key "frm"; did you mean "from"?',
  ],
  [GOOD.replace('from: tenant', 'value: a, or: b'), '"or" cannot be combined with "value"'],
])('rejects %j', (text, message) => {
  expect(errorsOf(text).join('\n')).toContain(message);
});

test('names a file that does not exist', () => {
  expect(readReplayMap('gone.yaml')).toMatchObject([
    { file: 'gone.yaml', message: expect.stringContaining('does not exist') },
  ]);
});

const path = (text: string): MemberPath => ({ text, steps: text.split('.') });

test.each([
  ['tenant', 'acme'],
  ['headers.x-tenant', 'nested'],
  ['a.b', 'whole name'],
  ['count', '7'],
  ['flag', 'false'],
  ['empty', ''],
  ['none', undefined],
  ['dash', undefined],
  ['missing', undefined],
  ['headers', undefined],
  ['headers.x-tenant.more', undefined],
  ['tenant.length', undefined],
  ['constructor', undefined],
  ['__proto__.toString', undefined],
])('reads the member %s', (name, value) => {
  const line = JSON.parse(
    '{"tenant":"acme","headers":{"x-tenant":"nested"},"a.b":"whole name","a":{"b":"nested"},"count":7,' +
      '"flag":false,"empty":"","none":null,"dash":"-"}',
  ) as Record<string, unknown>;
  expect(textAt(line, path(name))).toBe(value);
});
