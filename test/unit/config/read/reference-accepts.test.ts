import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { cases } from '../../../support/assert/cases.js';
import { entries, parse, policyOf } from '../../../support/policy/policies.js';

const node = (fields: string): string => `domain: shop\ndescriptors:\n- { ${fields} }\n`;
const limit = (fields: string): string => node(`key: user, rate_limit: { ${fields} }`);

/** Files that envoyproxy/ratelimit loads, and a part of weir's warning, if there is one. */
const ACCEPTED: readonly (readonly [what: string, text: string, warning?: string])[] = cases<
  [string, string, string?]
>`
  no descriptors => domain: shop\n
  empty descriptors => domain: shop\ndescriptors:\n => "descriptors" is empty and is ignored
  an empty list => domain: shop\ndescriptors: []\n
  an empty rate_limit => ${node('key: a, rate_limit: ~')}
  an empty value => ${node('key: a, value: ')}
  a number of 0 => ${limit('unit: day, requests_per_unit: 0')}
  no number
    ${limit('unit: day')}
    policy.yaml:3:28: descriptors[0].rate_limit.requests_per_unit: "requests_per_unit" is missing and defaults to 0,
      so the rule denies every request; write 0 if this is intended
  the largest number => ${limit('unit: day, requests_per_unit: 4294967295')}
  a number in hexadecimal => ${limit('unit: day, requests_per_unit: 0X1F')}
  a number in octal
    ${limit('unit: day, requests_per_unit: 017')}
    policy.yaml:3:60: descriptors[0].rate_limit.requests_per_unit: YAML reads "017" as an octal number, which is 15
      in decimal; write the number without the leading 0
  a unit in any case => ${limit('unit: MiNuTe, requests_per_unit: 1')}
  unlimited with a number
    ${limit('unlimited: true, requests_per_unit: 5')}
    policy.yaml:3:66: descriptors[0].rate_limit.requests_per_unit: "requests_per_unit" is ignored, because the rule
      is unlimited; remove it
  unlimited with an invalid unit => ${limit('unlimited: true, unit: unknown')} => "unit" is ignored
  unlimited that is false => ${limit('unlimited: no, unit: day, requests_per_unit: 1')}
  an unused name in replaces
    ${limit('unlimited: true, replaces: [{ name: other }]')}
    policy.yaml:3:66: descriptors[0].rate_limit.replaces[0].name: no rule in this domain has the name "other", so
      this item has no effect; correct the name, or remove the item
  an empty list of replaces => ${limit('unlimited: true, replaces: []')}
  a valid key out of place
    ${limit('unlimited: true, shadow_mode: true')}
    "shadow_mode" has no effect here; it belongs in an item of "descriptors"
  anything in metadata out of place => domain: shop\nmetadata: [a, 1.5]\n => "metadata" has no effect here
  share_threshold with a pattern => ${node('key: a, value: "*", share_threshold: true')}
  share_threshold with a pattern in the key
    ${node('key: "a*", share_threshold: true')}
    policy.yaml:3:10: descriptors[0].key: "*" has no special meaning in a key; write the pattern as "value", or
      remove the "*"
  further documents
    domain: shop\n---\nbroken: [\n
    policy.yaml:2:1: only the first document of a file is read; move the documents after this line to separate files
  a byte order mark and CRLF => \ufeffdomain: shop\r\ndescriptors:\r\n- key: a\r\n
  quoted keys => "domain": shop\n'descriptors': []\n
  flow style with a trailing comma => { domain: shop, descriptors: [{ key: a, }, ] }\n
  nodes that differ only in their values
    domain: shop\ndescriptors: [{ key: a }, { key: a, value: "*" }, { key: a, value: b }]\n
`;

describe('a file that envoyproxy/ratelimit accepts', () => {
  test.each(ACCEPTED)('%s', (_, text, warning = '') => {
    const { policy, problems } = parse(text);
    expect(problems.errors.map(formatProblem)).toEqual([]);
    expect(policy?.domain).toBe('shop');
    const warnings = problems.warnings.map(formatProblem).join('\n');
    if (warning === '') expect(warnings).toBe('');
    else expect(warnings).toContain(warning);
  });

  test.each([
    ...['007', 'yes', '0x1F', 'no', 'true', '1_000', '9223372036854775807', '2024-05-15', '12:30:45', 'inf'],
    ...['1e', '1.0.0', '+1'],
  ])('the unquoted %s as domain, key, value and name', (text) => {
    const policy = policyOf(
      `domain: ${text}\ndescriptors: [{ key: ${text}, value: ${text}, rate_limit: { name: ${text}, ` +
        'unlimited: yes } }]\n',
    );
    expect(policy.domain).toBe(text);
    expect(policy.match(entries(`${text}=${text}`)).rules[0]?.name).toBe(text);
  });
});

test('two nodes that only envoyproxy/ratelimit treats as one', () => {
  const policy = policyOf(
    'domain: shop\ndescriptors: [{ key: a_b, rate_limit: { unlimited: true } }, { key: a, value: b, ' +
      'rate_limit: { unlimited: true } }]\n',
  );
  expect(policy.match(entries('a=b')).rules[0]?.path).toBe('a=b');
  expect(policy.match(entries('a_b=c')).rules[0]?.path).toBe('a_b');
});
