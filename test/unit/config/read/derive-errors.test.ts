import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { cases } from '../../../support/assert/cases.js';
import { parse } from '../../../support/policy/policies.js';

const A = 'a'.repeat(64);

function errorsOf(derive: string, files: Readonly<Record<string, string>> = {}): string[] {
  const { policy, problems, tableFiles } = parse(`domain: d\nderive:\n- ${derive}\n`, files);
  const errors = [problems, ...tableFiles].flatMap((list) => list.errors.map(formatProblem));
  expect(policy === undefined).toBe(errors.length > 0);
  return errors;
}

describe('errors of derive', () => {
  test.each(cases`
    { from: [a], sha256: {} } => 3:3: derive[0].entry: "entry" is missing; write the key of the new entry
    { entry: e, sha256: {} }
      3:3: derive[0].from: "from" is missing; list the keys of the entries to derive from
    { entry: e, from: [], sha256: {} }
      3:21: derive[0].from: the list "from" is empty; add an item, or remove the list
    { entry: e, from: [a, a], rules: [{ value: x }] }
      3:25: derive[0].from[1]: "a" is listed twice in "from"; remove one
    { entry: e, from: [a, b], sha256: {} }
      3:21: derive[0].from: a SHA-256 table derives from exactly one entry; keep only one key in "from"
    { entry: e, from: [a] }
      3:3: derive[0]: an item of "derive" must have either "rules" or a key table ("sha256", "sha256_file" or both);
        use exactly one of the two
    { entry: e, from: [a], sha256: {}, rules: [] }
      3:3: derive[0]: an item of "derive" must have either "rules" or a key table ("sha256", "sha256_file" or both);
        use exactly one of the two|3:45: derive[0].rules: the list "rules" is empty; add an item, or remove the list
    { entry: e, from: [a], rules: [] }
      3:33: derive[0].rules: the list "rules" is empty; add an item, or remove the list
    { entry: e, from: [a], rules: }
      3:33: derive[0].rules: "rules" is empty; write a value after it, or remove the key
    { entry: e, from: [a], rules: [{ a: x }] }
      3:34: derive[0].rules[0].value: "value" is missing; write the value of the new entry
    { entry: e, from: [a], rules: [{ b: x, value: v }] }
      3:36: derive[0].rules[0][0]: unknown key (not shown, because it may be a secret); the keys allowed here are a,
        value
    { entry: e, from: [method], rules: [{ path: /x, value: v }] }
      3:41: derive[0].rules[0][0]: unknown key (not shown, because it may be a secret); the keys allowed here are
        method, value
    { entry: e, from: [value], rules: [{ value: v }] }
      3:47: derive[0].rules[0].value: rules cannot derive from an entry with the key "value"; configure Envoy to
        send the entry with another key
    { entry: e, from: [a], rules: [{ a: "/{x", value: v }] }
      3:39: derive[0].rules[0].a: "/{x" is not a valid path pattern: a "{" is not closed; add "}", or write "\\{" to
        match a literal "{"
    { entry: e, from: [a], sha_256: {} }
      3:3: derive[0]: an item of "derive" must have either "rules" or a key table ("sha256", "sha256_file" or both);
        use exactly one of the two|3:26: derive[0][2]: unknown key (not shown, because it may be a secret); did you
        mean "sha256"?
    { entry: e, from: [a], sha256: { my-secret-key: acme } }
      3:36: derive[0].sha256[0]: this is not a SHA-256 digest (64 hex digits); write the digest of the API key,
        never the key itself
    { entry: e, from: [a], sha256: { ${A}: } }
      3:102: derive[0].sha256[0]: the tenant of this digest is missing; write the name of the tenant as a string
    { entry: e, from: [a], sha256: { ${A}: "sha256:x" } }
      3:102: derive[0].sha256[0]: a tenant must not begin with "sha256:", which is reserved for keys that are not
        listed; rename the tenant
    { entry: e, from: [a], sha256: { ${A}: x, ${A.toUpperCase()}: y } }
      3:105: derive[0].sha256[1]: the key with the digest aaaaaaaa… has two tenants, "x" and "y"; keep only one
        tenant
    { entry: e, from: [a], sha256_file: gone.yaml }
      3:39: derive[0].sha256_file: "gone.yaml" does not exist; check the path
    { entry: e, from: [a], sha256: {} }\n- { entry: f, from: [a], sha256: {} }
      4:21: derive[1].from: an earlier item replaces the entry "a", so the entry never reaches this item; remove the
        key of that entry from "from"
  `)('%s', (derive, errors) => {
    expect(errorsOf(derive)).toEqual(errors.split('|').map((error) => `policy.yaml:${error}`));
  });
});

describe('errors of a key table file', () => {
  const derive = `{ entry: e, from: [a], sha256: { ${A}: acme }, sha256_file: keys.yaml }`;
  test.each([
    ...cases`
      - x\n
        keys.yaml:1:1: the table must be a mapping; write <SHA-256 of an API key>: <tenant> on each line
      ${A}: other\n
        keys.yaml:1:1: [0]: the key with the digest aaaaaaaa… has two tenants, "acme" and "other"; keep only one
          tenant
      my-secret-key: acme\n
        keys.yaml:1:1: [0]: this is not a SHA-256 digest (64 hex digits); write the digest of the API key, never the
          key itself
      my-secret: a\nmy-secret: b\n
        keys.yaml:1:1: [0]: this is not a SHA-256 digest (64 hex digits); write the digest of the API key, never the
          key itself|keys.yaml:2:1: [1]: this key occurs twice in one mapping; remove one of the two
      my-secret: "\n => keys.yaml:1:12: this is not valid YAML: Missing closing "quote
    `,
    ['', 'keys.yaml: the file is empty; write {} for a table without keys'],
  ])('%j', (content, error) => {
    const errors = errorsOf(derive, { 'keys.yaml': content });
    expect(errors).toEqual(error.split('|'));
    expect(errors.join()).not.toContain('my-secret');
  });

  test('a repeated tenant is not a conflict, and JSON is YAML', () => {
    expect(
      errorsOf(derive, { 'keys.yaml': `{"${A.toUpperCase()}": "acme", "${'b'.repeat(64)}": "globex"}` }),
    ).toEqual([]);
  });
});
