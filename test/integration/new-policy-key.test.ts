/*
 * A new key with a single value is one entry in the description of the policy format: the reader, the schema, the page
 * of all keys and the conversion of xDS resources then know it. The test adds such a key to its own copy of the
 * description, and another process creates the schema and the page with it.
 */
import { expect, test } from '@jest/globals';
import type { Field } from '../../src/config/read/field.js';
import { FieldReader } from '../../src/config/read/field-reader.js';
import { readMapping } from '../../src/config/read/field-values.js';
import { POLICY_FIELDS } from '../../src/config/read/policy-fields.js';
import { toDocument } from '../../src/config/xds/rate-limit-config.js';
import { formatProblem, ProblemList } from '../../src/config/yaml/config-problem.js';
import { parseYaml, type YamlMap } from '../../src/config/yaml/yaml-document.js';
import { runToEnd } from '../support/process/processes.js';
import { repositoryRoot } from '../support/process/tools.js';

const PATIENCE: Field = {
  kind: 'count',
  min: 2,
  max: 9,
  default: 3,
  about: 'How often a request waits for a slot.',
  examples: [4],
};

const fields: Record<string, Field> = POLICY_FIELDS.concurrency;
fields['patience'] = PATIENCE;

/** Returns the values of a `concurrency`, and its errors. */
function read(text: string): { readonly values: object; readonly errors: readonly string[] } {
  const problems = new ProblemList('p.yaml');
  const document = parseYaml(Buffer.from(text), problems) as YamlMap;
  const values = readMapping(new FieldReader(document, '', problems), 'concurrency');
  return { values, errors: problems.errors.map(formatProblem) };
}

test('the reader reads it, with its bounds and its default', () => {
  expect(read('max: 1\npatience: 7\n')).toMatchObject({ values: { max: 1, patience: 7 }, errors: [] });
  expect(read('max: 1\n').values).toMatchObject({ patience: 3 });
  expect(read('max: 1\npatience: 10\n').errors).toEqual([
    'p.yaml:2:11: patience: "patience" is 10; write a whole number from 2 to 9',
  ]);
  expect(read('max: 1\npatients: 4\n').errors).toEqual([
    'p.yaml:2:1: patients: unknown key "patients"; did you mean "patience"?',
  ]);
});

test('an xDS resource with it becomes the same document', () => {
  const concurrency = { max: 1, patience: 7 };
  const document = toDocument({ domain: 'd', descriptors: [{ key: 'k', rate_limit: { concurrency } }] });
  expect(JSON.stringify(document, (_, value) => (value instanceof Map ? [...value] : value))).toMatch(
    /"patience",\{"key":"patience",.*?"value":\{"kind":"scalar","text":"7","plain":true/,
  );
});

/** Creates the schema and the page with the key. */
const SCRIPT = `
  import { createRequire } from 'node:module';
  const { POLICY_FIELDS } = createRequire(import.meta.url)('./build/src/config/read/policy-fields.js');
  POLICY_FIELDS.concurrency.patience = ${JSON.stringify(PATIENCE)};
  const { policySchema } = await import('./.ci/policy-schema.mjs');
  const { policyKeys } = await import('./.ci/policy-keys-page.mjs');
  console.log(JSON.stringify({ schema: policySchema(), page: policyKeys() }));
`;

test('the schema and the page of all keys contain it', async () => {
  const args = ['--input-type=module', '--eval', SCRIPT];
  const { stdout, stderr } = await runToEnd(process.execPath, args, { cwd: repositoryRoot });
  expect(stderr).toBe('');
  const { schema, page } = JSON.parse(stdout);
  expect(schema.definitions.concurrency.properties.patience).toEqual({
    description: PATIENCE.about,
    type: ['integer', 'null'],
    minimum: 2,
    maximum: 9,
    default: 3,
    examples: [4],
  });
  expect(page).toContain(
    `| \`patience\` | \`concurrency\` | whole number | \`3\` | 2 to 9 | ${PATIENCE.about} | \`patience: 4\` |`,
  );
});
