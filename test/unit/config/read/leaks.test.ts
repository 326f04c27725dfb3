import { beforeEach, describe, expect, test } from '@jest/globals';
import { loadPolicies } from '../../../../src/config/files/load-policies.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { parse } from '../../../support/policy/policies.js';
import { TempDir } from '../../../support/process/temp-dir.js';

/** An API key that a user wrote instead of its digest. */
const RAW = 'RAWSECRET9';

describe('an API key in the wrong place never appears in a message', () => {
  test.each([
    ['twice in a table', `- { entry: t, from: [k], sha256: { ${RAW}: a, ${RAW}: b } }`],
    ['as a mapping', `- { entry: t, from: [k], sha256: { ${RAW}: { a: 1, a: 2 } } }`],
    ['one indent too shallow', `- entry: t\n  from: [k]\n  sha256:\n  ${RAW}: a\n  ${RAW}: b`],
    ['two indents too shallow', `- entry: t\n  from: [k]\n  sha256:\n${RAW}: a\n${RAW}: { b: 1, b: 2 }`],
    ['under a mistyped name', `- { entry: t, from: [k], sha_256: { ${RAW}: a, ${RAW}: b } }`],
    ['without the dash', `  { entry: t, from: [k], sha256: { ${RAW}: a, ${RAW}: b } }`],
    ['as the key of a rule', `- { entry: t, from: [k], rules: [{ ${RAW}: a, ${RAW}: b, value: v }] }`],
    ['as an alias', `- { entry: t, from: [k], sha256: { *${RAW} : a } }`],
    ['as an alias at the top', `- { entry: t, from: [k], sha256: {} }\n*${RAW} : a`],
    ['as an alias within itself', `- { entry: t, from: [k], sha256: &${RAW} { a: *${RAW} } }`],
    ['as a tag', `- { entry: t, from: [k], sha256: { !${RAW}!x : a } }`],
    ['with an escape', `- { entry: t, from: [k], sha256: { "${RAW}\\qRAWSECRET9": a } }`],
    ['after a block indicator', `- entry: t\n  from: [k]\n  sha256: |${RAW}\n    x`],
    ['after a closed quote', `- entry: t\n  from: [k]\n  sha256:\n    "a"${RAW}: x`],
    [
      'brought elsewhere by an anchor',
      `- { entry: t, from: [k], sha256: &x { ${RAW}: a, ${RAW}: b } }\ndescriptors: [*x, { <<: *x }]`,
    ],
    ['in a descriptor', `[]\ndescriptors: [{ key: k, derive: [{ sha256: { ${RAW}: a, ${RAW}: b } }] }]`],
  ])('%s', (_name, derive) => {
    const { policy, problems } = parse(`domain: d\nderive:\n${derive}\n`);
    const texts = [...problems.errors, ...problems.warnings].map(formatProblem);
    expect(policy).toBeUndefined();
    expect(texts).not.toEqual([]);
    expect(texts.join('\n')).not.toContain('RAWSECRET');
  });

  test('nor does one in a key table file with an alias without an anchor', () => {
    const { tableFiles } = parse('domain: d\nderive: [{ entry: t, from: [k], sha256_file: keys.yaml }]\n', {
      'keys.yaml': `*${RAW} : acme\n`,
    });
    expect(tableFiles.flatMap((file) => file.errors.map(formatProblem))).toEqual([
      'keys.yaml:1:1: this alias has no anchor before it; quote the text, or define the anchor first',
    ]);
  });
});

describe('a key table next to an unreadable policy', () => {
  let dir: TempDir;
  beforeEach(() => {
    dir = new TempDir();
  });

  test.each([`${RAW}: a\n${RAW}: b\n`, `${RAW}: { a: 1, a: 2 }\n`, `"${RAW}"x: a\n`, `*${RAW} : a\n`])(
    '%j is an error that contains no key',
    (table) => {
      dir.write('keys.yaml', table);
      dir.write('policy.yaml', 'domain: d\nderive: [{ entry: t, from: [k], sha256_file: keys.yaml }\n');
      const { errors, warnings } = loadPolicies([dir.path]);
      expect(new Set(errors.map((error) => error.file)).size).toBe(2);
      expect(JSON.stringify([errors, warnings])).not.toContain('RAWSECRET');
    },
  );
});

test('positions count the fields as written, including repeated ones', () => {
  const { problems } = parse('domain: d\nderive: [{ entry: t, from: [k], sha256: { a: x, a: y, b: z } }]\n');
  expect(problems.errors.map((error) => error.path)).toEqual([
    'derive[0].sha256[0]',
    'derive[0].sha256[1]',
    'derive[0].sha256[2]',
  ]);
});
