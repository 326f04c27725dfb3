/** Policies in ConfigMaps: which keys are read, and the positions of errors in the manifest. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { type LoadedPolicies, loadParts, loadPolicies } from '../../../../src/config/files/load-policies.js';
import { openConfigMaps } from '../../../../src/config/manifests/config-maps.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { keyOfRow, rowsOf } from '../../../../src/policy/plans/plan-table.js';
import { cases } from '../../../support/assert/cases.js';
import { TempDir } from '../../../support/process/temp-dir.js';

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
  ...cases`
    a block with its own indentation
      data:\n  a.yaml: |2-\n      domain: a\n      x: [\n
      m.yaml:8:10: data["a.yaml"]: this is not
    no policy
      data:\n  a.yaml: |\n    b: 1\n
      m.yaml:6:11: data["a.yaml"]: this key does not contain a policy
    no text
      data:\n  a.yaml: { domain: a }\n
      m.yaml:6:11: data["a.yaml"]: this key does not contain a policy
    other files
      data:\n  nginx.conf: "server {"\n
      m.yaml:6:15: data["nginx.conf"]: this key does not contain a policy
  `,
  [
    'a block',
    'data:\n  a.yaml: |\n    descriptors: []\n    domain: ""\n',
    'm.yaml:8:13: data["a.yaml"].domain: ',
  ],
  ['quotes', 'data:\n  a.yaml: "descriptors: []\\ndomain:\\n"\n', 'm.yaml:6:11: data["a.yaml"].domain: '],
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
])('no policy: %#', (text, start) => {
  expect(said(text)).toContainEqual(expect.stringContaining(start));
});

describe('a table of plans in the ConfigMap of its policy', () => {
  const POLICY = `    domain: shop
    plans: { by: tenant, from: FROM, default: free, define: { free: { burst: 1 }, gold: { burst: 3 } } }
    descriptors:
      - key: tenant
        rate_limit: { unit: minute, requests_per_unit: { plan: burst } }
`;
  const ROWS = 'tenant,plan\nacme,gold\n';
  const FROM = 'm.yaml:7:32: data["policy.yaml"].plans.from';
  const block = (key: string, text: string): string => `  ${key}: |\n${text.replaceAll(/^(?=.)/gm, '    ')}`;
  const binary = (text: string): string => `binaryData:\n  plans.csv: ${text}\n`;

  let dir: TempDir;
  beforeEach(() => {
    dir = new TempDir();
    dir.write('plans.csv', 'tenant,plan\nother,gold\nfile,gold\n');
  });

  function load(others: string, from = 'plans.csv'): LoadedPolicies {
    const file = dir.write(
      'm.yaml',
      `${HEAD}data:\n  policy.yaml: |\n${POLICY.replace('FROM', from)}${others}`,
    );
    return loadPolicies([file], { configMaps: true, badRowsAreErrors: true });
  }
  const problemsOf = ({ errors, warnings }: LoadedPolicies): readonly string[] =>
    [...errors, ...warnings].map((one) => formatProblem(one).replaceAll(`${dir.path}/`, ''));
  const customersOf = ({ policySet }: LoadedPolicies): readonly string[] => {
    const plans = policySet.domains.get('shop')?.plans;
    return plans === undefined ? [] : Array.from(rowsOf(plans), (row) => keyOfRow(plans, row));
  };

  test.each([
    ['data', block('plans.csv', ROWS), 'plans.csv'],
    ['binaryData', binary(Buffer.from(ROWS).toString('base64')), './plans.csv'],
    ['a table that could be a policy', block('plans.yaml', 'domain: gold\n'), 'plans.yaml'],
    ['a path to another directory', '', '../DIR/plans.csv'],
  ])('%s', (_name, others, from) => {
    const loaded = load(others, from.replace('DIR', basename(dir.path)));
    expect(problemsOf(loaded)).toEqual([]);
    expect(loaded.files).toHaveLength(others === '' ? 2 : 1);
    const expected = others === '' ? ['other', 'file'] : [from === 'plans.yaml' ? 'domain' : 'acme'];
    expect(customersOf(loaded)).toEqual(expected);
  });

  test.each([
    [
      'a missing key, in spite of a file with this name',
      '',
      `${FROM}: the ConfigMap "limits" has no key "plans.csv"; add the table to its "data" under this key`,
    ],
    [
      'a misspelt key',
      block('plan.csv', ROWS),
      `${FROM}: the ConfigMap "limits" has no key "plans.csv"; did you mean "plan.csv"?`,
      'm.yaml:11:13: data["plan.csv"]: this key does not contain a policy, and is skipped',
    ],
    [
      'text that is not base64',
      binary('tenant,plan'),
      `${FROM}: "plans.csv" in "binaryData" of the ConfigMap "limits" is not base64; ` +
        'encode the table, or move it to "data"',
    ],
    [
      'an invalid row',
      block('plans.csv', `${ROWS}bad,silver\n`),
      expect.stringMatching(
        /^m\.yaml ConfigMap limits\/plans\.csv:3:5: plan: the row does not name a plan of "define"/,
      ),
    ],
  ])('%s', (_name, others, ...problems) => {
    expect(problemsOf(load(others))).toEqual(problems);
  });

  test('in a manifest whose path is not normalized', () => {
    const text = `${HEAD}data:\n  policy.yaml: |\n${POLICY.replace('FROM', 'plans.csv')}`;
    dir.write('m.yaml', `${text}${block('plans.csv', ROWS)}`);
    const loaded = loadPolicies([`${dir.path}/./m.yaml`], { configMaps: true });
    expect([problemsOf(loaded), customersOf(loaded)]).toEqual([[], ['acme']]);
  });

  test.each([
    ['in one file', (file: string) => loadPolicies([file], { configMaps: true })],
    [
      'as parts, as in weir migrate',
      (file: string) => loadParts(openConfigMaps(file, readFileSync(file)) ?? [], {}),
    ],
  ])('belongs to one of two ConfigMaps with the same name, %s', (_name, loaded) => {
    const maps = ['shop', 'other'].map((domain) => {
      const policy = POLICY.replace('FROM', 'plans.csv').replace('shop', domain);
      return `${HEAD}data:\n  policy.yaml: |\n${policy}${block('plans.csv', `tenant,plan\nof-${domain},gold\n`)}`;
    });
    const both = loaded(dir.write('m.yaml', maps.join('---\n')));
    expect([problemsOf(both), customersOf(both)]).toEqual([[], ['of-shop']]);
  });

  test('belongs to this ConfigMap only', () => {
    const [first, second] = ['a', 'b'].map((namespace) => {
      const policy = POLICY.replace('FROM', 'plans.csv').replace('shop', namespace);
      return `${HEAD.replace(' }', `, namespace: ${namespace} }`)}data:\n  policy.yaml: |\n${policy}`;
    });
    const file = dir.write('m.yaml', `${first}${block('plans.csv', ROWS)}---\n${second}`);
    const loaded = loadPolicies([file], { configMaps: true });
    expect(problemsOf(loaded)).toEqual([
      expect.stringContaining('the ConfigMap "b/limits" has no key "plans.csv"'),
    ]);
    expect([...loaded.policySet.domains.keys()]).toEqual(['a']);
  });
});
