/** Policies in ConfigMaps: which keys are read, and the positions of errors in the manifest. */
import { expect, test } from '@jest/globals';
import { openConfigMaps } from '../../../../src/config/manifests/config-maps.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';

const open = (text: string) => openConfigMaps('m.yaml', Buffer.from(text));
const domains = (text: string) => open(text)?.flatMap(({ opened }) => opened.source?.domain ?? []);
const said = (text: string) =>
  open(text)?.flatMap(({ opened: { problems } }) =>
    [...problems.errors, ...problems.warnings].map(formatProblem),
  );

const HEAD = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: limits }\n';

test.each([
  ['a block', `${HEAD}data:\n  a.yaml: |\n    domain: a\n`, ['a']],
  ['any name, as in the directory of the reference', `${HEAD}data:\n  config: |-\n    domain: a\n`, ['a']],
  ['several keys', `${HEAD}data:\n  a: |\n    domain: a\n  b: |\n    domain: b\n`, ['a', 'b']],
  ['quotes', `${HEAD}data:\n  a.yaml: "domain: a\\ndescriptors: []\\n"\n`, ['a']],
  ['folded', `${HEAD}data:\n  a.yaml: >\n    domain: a\n`, ['a']],
  ['Windows', `${HEAD}data:\n  a.yaml: |\n    domain: a\n`.replaceAll('\n', '\r\n'), ['a']],
  [
    'several documents',
    `# all\n---\n${HEAD}data:\n  a: |\n    domain: a\n--- # next\n${HEAD}data:\n  b: |\n    domain: b\n`,
    ['a', 'b'],
  ],
  [
    'a list, in JSON',
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'List',
      items: [{ apiVersion: 'v1', kind: 'ConfigMap', data: { a: 'domain: a\n' } }],
    }),
    ['a'],
  ],
])('%s', (_name, text, found) => {
  expect(domains(text)).toEqual(found);
  expect(said(text)).toEqual([]);
});

test.each([
  ['domain: a\n'],
  ['domain: a\ndescriptors:\n  - key: kind\n    metadata:\n      kind: x\n'],
  ['kind: ConfigMap\n'],
])('not a manifest: %j', (text) => expect(open(text)).toBeUndefined());

test.each([
  [
    'a block',
    'data:\n  a.yaml: |\n    descriptors: []\n    domain: ""\n',
    'm.yaml:8:13: data["a.yaml"].domain: ',
  ],
  [
    'a block with its own indentation',
    'data:\n  a.yaml: |2-\n      domain: a\n      x: [\n',
    'm.yaml:8:10: data["a.yaml"]: this is not',
  ],
  ['quotes', 'data:\n  a.yaml: "descriptors: []\\ndomain:\\n"\n', 'm.yaml:6:11: data["a.yaml"].domain: '],
  [
    'no policy',
    'data:\n  a.yaml: |\n    b: 1\n',
    'm.yaml:6:11: data["a.yaml"]: this key does not contain a policy',
  ],
  [
    'no text',
    'data:\n  a.yaml: { domain: a }\n',
    'm.yaml:6:11: data["a.yaml"]: this key does not contain a policy',
  ],
  [
    'other files',
    'data:\n  nginx.conf: "server {"\n',
    'm.yaml:6:15: data["nginx.conf"]: this key does not contain a policy',
  ],
])('positions: %s', (_name, data, start) => {
  const lines = said(`---\n${HEAD}${data}`) ?? [];
  expect(lines.filter((line) => line.startsWith(start))).toHaveLength(1);
});

test.each([
  [
    `${HEAD}data:\n  a: x\n`,
    'm.yaml: no key under "data" in the ConfigMaps of the file contains a policy; specify ',
  ],
  [
    'apiVersion: v1\nkind: Service\n',
    'm.yaml: the file has no ConfigMap, only manifests of kind Service; specify ',
  ],
  [`${HEAD}---\n`.repeat(1001), 'm.yaml: the file has 1001 documents, more than the maximum of 1000'],
])('no policy: %#', (text, start) => {
  expect(said(text)).toContainEqual(expect.stringContaining(start));
});
