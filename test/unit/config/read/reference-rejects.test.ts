import { beforeEach, describe, expect, test } from '@jest/globals';
import { isRefusedAtStart, loadPolicies } from '../../../../src/config/files/load-policies.js';
import { ALL_KEYS } from '../../../../src/config/read/field-values.js';
import { keysOf } from '../../../../src/config/read/policy-fields.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { INVALID_FILES } from '../../../integration/reference/cases/invalid-files.js';
import { cases } from '../../../support/assert/cases.js';
import { TempDir } from '../../../support/process/temp-dir.js';

let dir: TempDir;
beforeEach(() => {
  dir = new TempDir();
});

/** Returns a policy with a descriptor with these fields, on line 3. */
const node = (fields: string): string => `domain: shop\ndescriptors:\n- { ${fields} }\n`;
/** Returns a policy with a `rate_limit` with these fields, on line 4. */
const limit = (fields: string): string =>
  `domain: shop\ndescriptors:\n- key: user\n  rate_limit: { ${fields} }\n`;

/** Files that envoyproxy/ratelimit rejects, and weir's messages. */
const REJECTED: readonly (readonly [what: string, text: string, error: string])[] = [
  ...cases<[string, string, string]>`
    an invalid unit
      ${limit('unit: fortnight, requests_per_unit: 5')}
      4:23: descriptors[0].rate_limit.unit: "fortnight" is not a valid unit; write one of second, minute, hour, day,
        week, month, year
    a unit in the plural
      ${limit('unit: minutes, requests_per_unit: 5')}
      4:23: descriptors[0].rate_limit.unit: "minutes" is not a valid unit; did you mean "minute"?
    no unit
      ${limit('requests_per_unit: 5')}
      4:15: descriptors[0].rate_limit: "unit" is missing; write one of second, minute, hour, day, week, month, year
    an empty rate_limit
      ${limit('')}
      4:15: descriptors[0].rate_limit: "rate_limit" is empty; write token_bucket, or unit and requests_per_unit, or
        concurrency, or unlimited: true
    an open quote => domain: 'shop\n => 1:9: this is not valid YAML: Missing closing 'quote
    tabs for indentation
      domain: shop\ndescriptors:\n\t- key: a\n
      3:1: this is not valid YAML: Tabs are not allowed as indentation
    an alias without an anchor
      domain: shop\ndescriptors: *all\n
      2:14: descriptors: "*all" without quotes is an alias, which has no anchor before it; quote the text, or define
        the anchor first
    an alias to itself
      domain: shop\ndescriptors: &all\n- key: a\n  descriptors: *all\n
      4:16: descriptors[0].descriptors: the alias "*all" is inside its own anchor, so its expansion would never end;
        remove the alias
    no domain
      descriptors: []\n
      1:1: domain: "domain" is missing or empty; write the domain that Envoy sends, as in domain: shop
    a list
      - domain: shop\n
      1:1: a policy file must be a mapping, not a list; begin it with "domain: <name>"
    no key
      ${node('value: x')}
      3:3: descriptors[0].key: "key" is missing; write the key of the entry that this descriptor matches
    a node twice
      domain: shop\ndescriptors:\n- { key: a, value: x }\n- { key: b }\n- { key: a, value: x }\n
      5:20: descriptors[2]: "a=x" is defined twice at this level, first in <file>:3:20; merge the two descriptors, or
        remove one of them
    a misspelled rate_limit
      ${node('key: a, ratelimit: { unit: day, requests_per_unit: 5 }')}
      3:13: descriptors[0].ratelimit: unknown key "ratelimit"; did you mean "rate_limit"?
    an unknown key at the top
      domain: shop\nlimits: []\n
      2:1: limits: unknown key "limits"; the keys allowed here are ${keysOf('file').join(', ')}
    a key that is a number
      domain: shop\n0.5: x\n
      2:1: [1]: unknown key (not shown, because it may be a secret); the keys allowed here are
        ${keysOf('file').join(', ')}
    a key that is a boolean
      ${node('key: a, yes: x')}
      3:13: descriptors[0].yes: unknown key "yes"; the keys allowed here are ${keysOf('descriptor').join(', ')}
    a list of strings
      domain: shop\ndescriptors:\n- a\n
      3:3: descriptors[0]: each item of "descriptors" must be a mapping, not a single value; begin it with "- key: "
    a list of lists
      domain: shop\ndescriptors:\n- [a]\n
      3:3: descriptors[0]: each item of "descriptors" must be a mapping, not a list; begin it with "- key: "
    a list with nothing
      domain: shop\ndescriptors: [~]\n
      2:15: descriptors[0]: each item of "descriptors" must be a mapping, not a single value; begin it with "- key: "
    descriptors in a mapping
      domain: shop\ndescriptors: { key: a }\n
      2:14: descriptors: "descriptors" must be a list of mappings with a key; begin each item with "- "
    a rate_limit that is a text
      ${node('key: a, rate_limit: 5/s')}
      3:25: descriptors[0].rate_limit: "rate_limit" must be a mapping, not a single value; write it as { unit: minute,
        requests_per_unit: 10 }, and several limits as "rate_limits"
    an empty replaces
      ${limit('unlimited: true, replaces: [{ name: }]')}
      4:53: descriptors[0].rate_limit.replaces[0].name: "name" is missing; write the name of the rule to replace, or
        remove the item
    a replaces of itself
      ${limit('unlimited: true, name: me, replaces: [{ name: me }]')}
      4:63: descriptors[0].rate_limit.replaces[0].name: "replaces" contains the rule's own name "me"; remove it
    a replaces of texts
      ${limit('unlimited: true, replaces: [other]')}
      4:45: descriptors[0].rate_limit.replaces[0]: each item of "replaces" must be a mapping, not a single value;
        begin it with "- name: "
    unlimited with a unit
      ${limit('unlimited: true, unit: DAY')}
      4:40: descriptors[0].rate_limit.unit: an unlimited rule cannot have "unit"; remove "unit" or "unlimited"
    share_threshold without a pattern
      ${node('key: a, value: x, share_threshold: true')}
      3:40: descriptors[0].share_threshold: "share_threshold" needs a "value" that contains "*", a "value_cidr" or a
        "value_regex"; add one of them, or remove "share_threshold"
    an invalid number
      ${limit('unit: day, requests_per_unit: many')}
      4:47: descriptors[0].rate_limit.requests_per_unit: "requests_per_unit" is "many"; write a whole number from 0 to
        4294967295
    a quoted number
      ${limit('unit: day, requests_per_unit: "5"')}
      4:47: descriptors[0].rate_limit.requests_per_unit: "requests_per_unit" is the string "5"; write a whole
        number from 0 to 4294967295, without quotes
    an invalid number that is ignored
      ${limit('unlimited: true, requests_per_unit: x')}
      4:53: descriptors[0].rate_limit.requests_per_unit: "requests_per_unit" is "x"; write a whole number from 0 to
        4294967295
    a value that is a fraction
      ${node('key: version, value: 1.10')}
      3:26: descriptors[0].value: "value" has an unquoted value, which YAML reads as a number; put the value in quotes
    an invalid boolean
      ${node('key: a, shadow_mode: 1')}
      3:26: descriptors[0].shadow_mode: "shadow_mode" is 1; write true or false
    a quoted boolean
      ${node('key: a, detailed_metric: "true"')}
      3:30: descriptors[0].detailed_metric: "detailed_metric" is the string "true"; write true or false, without
        quotes
    a boolean in unusual case
      ${limit('unlimited: tRUE')}
      4:28: descriptors[0].rate_limit.unlimited: "unlimited" is "tRUE"; write true or false
    a key that is a list
      ${node('key: [a]')}
      3:10: descriptors[0].key: "key" must be a string, not a list; write a single string
    metadata that is a text
      ${node('key: a, metadata: x, rate_limit: { unlimited: true }')}
      3:23: descriptors[0].metadata: "metadata" must be a mapping, not a single value; write its keys below it
    metadata with a mapping for a key
      ${node('key: a, metadata: { x: { ? { y: z } : 1 } }, rate_limit: { unlimited: true }')}
      3:32: descriptors[0].metadata.x: a key must be a string, not a mapping or a list; write a string
    an unknown key below a misplaced one
      ${node('key: a, unit: { size: 5 }')}
      3:21: descriptors[0].unit.size: unknown key "size"; the keys allowed here are ${ALL_KEYS.join(', ')}
    a list of texts below a misplaced key
      domain: shop\nreplaces: [a]\n
      2:12: replaces[0]: each item of a list must be a mapping, not a single value; begin it with a key and a colon
    a fraction below a misplaced key
      ${node('key: a, name: 1.5')}
      3:19: descriptors[0].name: without quotes, YAML reads this as a number; put it in quotes
  `,
  ['an empty file', '\n', ' the file is empty; add a policy, or remove the file'],
];

describe('a file that envoyproxy/ratelimit rejects', () => {
  test.each(REJECTED)('%s', (_, text, error) => {
    const file = dir.write('bad.yaml', text);
    const expected = [`${file}:${error.replace('<file>', file)}`];
    // At the start, without a valid domain.
    const alone = loadPolicies([dir.path]);
    expect(alone.errors.map(formatProblem)).toEqual(expected);
    expect(alone.policySet.domains.size).toBe(0);
    expect(isRefusedAtStart(alone)).toBe(true);
    // At the start, next to a valid domain, which is loaded.
    dir.write('good.yaml', 'domain: good\ndescriptors:\n- { key: a, rate_limit: { unlimited: true } }\n');
    const beside = loadPolicies([dir.path]);
    expect(beside.errors.map(formatProblem)).toEqual(expected);
    expect([...beside.policySet.domains.keys()]).toEqual(['good']);
    expect(isRefusedAtStart(beside)).toBe(false);
    // After a reload, the domain keeps its previous version.
    dir.write('bad.yaml', 'domain: shop\n');
    const before = loadPolicies([dir.path]);
    expect(before.errors).toEqual([]);
    dir.write('bad.yaml', text);
    const reloaded = loadPolicies([dir.path], {}, before);
    expect(reloaded.errors.map(formatProblem)).toEqual(expected);
    expect(reloaded.policySet.domains.get('shop')).toBe(before.policySet.domains.get('shop'));
    expect(reloaded.domains).toEqual([
      { domain: 'good', files: [dir.join('good.yaml')], state: 'ok' },
      { domain: 'shop', files: [file], state: 'kept' },
    ]);
  });

  // integration/reference/ runs the same table against the reference.
  test.each(INVALID_FILES)('$name', ({ text, line }) => {
    const file = dir.write('bad.yaml', text.replaceAll('<domain>', 'shop'));
    const { errors, policySet } = loadPolicies([dir.path]);
    expect(policySet.domains.size).toBe(0);
    expect(errors.map(formatProblem).join('\n')).toContain(line === undefined ? file : `${file}:${line}:`);
  });
});
