/** Likely mistakes of new users, and the remedies that messages suggest. */
import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { cases } from '../../../support/assert/cases.js';
import { parse } from '../../../support/policy/policies.js';

/** Returns errors and warnings, without the name of the file. */
function problemsOf(text: string): readonly string[] {
  const { errors, warnings } = parse(text).problems;
  return [...errors, ...warnings].map((problem) => formatProblem(problem).slice('policy.yaml:'.length));
}

const node = (fields: string): string => `domain: d\ndescriptors:\n- { key: k, ${fields} }\n`;
const limit = (fields: string): string => `domain: d\ndescriptors:\n- key: k\n  rate_limit: { ${fields} }\n`;
const bucket = (interval: string): string =>
  limit(`token_bucket: { max_tokens: 1, fill_interval: ${interval} }`);
const RATE_LIMIT = 'descriptors[0].rate_limit';

test('many patterns with one key on one level', () => {
  const nodes = (count: number, item: (at: number) => string): string =>
    `domain: d\ndescriptors:\n${Array.from({ length: count }, (_, at) => `- { key: path, ${item(at)} }\n`).join('')}`;
  expect(problemsOf(nodes(200, (at) => `value: "a${at}*"`))).toEqual([]);
  expect(problemsOf(nodes(1000, (at) => `value: a${at}`))).toEqual([]);
  const warning =
    'this level has more than 200 patterns or regular expressions with the key "path", which weir tries one ' +
    'after the ' +
    'other, up to MAX_MATCH_WORK for a request; write exact values, address blocks, or path rules of "derive" ' +
    'instead ' +
    'where you can';
  expect(problemsOf(nodes(300, (at) => `value: "a${at}*"`))).toEqual([`203:3: descriptors[200]: ${warning}`]);
  expect(problemsOf(nodes(101, (at) => `value_regex: [a${at}, b${at}]`))).toEqual([
    `103:3: descriptors[100]: ${warning}`,
  ]);
});

describe('a file of another kind', () => {
  test.each(cases`
    apiVersion: v1\nkind: ConfigMap\nmetadata: { name: p }\ndata: { p.yaml: "domain: d" }\n
      1:1: this is a Kubernetes ConfigMap, not a policy; mount the ConfigMap as a directory and specify this
        directory, or save each value under "data" as a separate policy file
    kind: Deployment\napiVersion: apps/v1\nspec: {}\n
      1:1: this is a Kubernetes Deployment, not a policy; move this file out of the policy directory (a policy file
        begins with "domain: <name>")
    static_resources: { listeners: [] }\n
      1:1: this is Envoy's configuration, not a policy; move this file out of the policy directory (a policy file
        begins with "domain: <name>")
    services: { weir: { image: weir } }\n
      1:1: this is a Docker Compose file, not a policy; move this file out of the policy directory (a policy file
        begins with "domain: <name>")
    // Text that may be secret is not repeated.
    apiVersion: v1\nkind: SECRET-key-1\n
      1:1: the file is not a policy, because none of its keys are known; begin it with "domain: <name>", or move it
        to another directory
  `)('%j', (text, error) => {
    expect(problemsOf(text)).toEqual([error]);
  });
});

describe('a misspelled key', () => {
  test.each(cases`
    Domain: d\n
      1:1: domain: "domain" is missing or empty; write the domain that Envoy sends, as in domain: shop|1:1: Domain:
        unknown key "Domain"; did you mean "domain"?
    domain: d\nonStoreFailure: deny\n
      2:1: onStoreFailure: unknown key "onStoreFailure"; did you mean "on_store_failure"?
    ${node('vlaue: a')} => 3:13: descriptors[0].vlaue: unknown key "vlaue"; did you mean "value"?
    ${limit('token_bucket: { max_token: 1, fill_interval: 1s }')}
      4:31: ${RATE_LIMIT}.token_bucket: "max_tokens" is missing; write the capacity of the bucket, such as 100|4:33:
        ${RATE_LIMIT}.token_bucket.max_token: unknown key "max_token"; did you mean "max_tokens"?
    domain: d\nphase: { actve: 2030-01-01T00:00:00Z }\n
      2:8: phase: the schedule is empty; write the time of grace_period, of active, or of both|2:10: phase.actve:
        unknown key "actve"; did you mean "active"?
    ${limit('unit:day, requests_per_unit: 1')}
      4:15: ${RATE_LIMIT}: "unit" is missing; write one of second, minute, hour, day, week, month, year|4:17:
        ${RATE_LIMIT}["unit:day"]: unknown key "unit:day"; write a space after the colon, as in "unit: …"
    domain: d\n\u00a0\u00a0phase: active\n
      2:1: [1]: unknown key (not shown, because it may be a secret); it begins with a character that looks like a
        space but is not one in YAML (U+00A0 or similar); use plain spaces
    ${node('actions: []')}
      3:13: descriptors[0].actions: this key belongs to a route in the Envoy configuration, where it defines
        descriptors; move the key to that route, and limit the descriptors here with "key" and "rate_limit"
    // A key that resembles no key of this mapping may resemble one of another mapping.
    ${node('tokn_bucket: {}')}
      3:13: descriptors[0].tokn_bucket: unknown key "tokn_bucket"; did you mean "token_bucket"? It belongs in
        "rate_limit"
  `)('%j', (text, errors) => {
    expect(problemsOf(text)).toEqual(errors.split('|'));
  });
});

describe('a misspelled word', () => {
  test.each([
    [limit('unit: mintue, requests_per_unit: 1'), 'did you mean "minute"?'],
    ['domain: d\nphase: montoring\n', 'did you mean "monitoring"?'],
    ['domain: d\non_store_failure: dney\n', 'did you mean "deny"?'],
    ['domain: d\nalgorithm: token-bucket\n', 'did you mean "token_bucket"?'],
    [
      'domain: d\nresponse_headers: [retry_after]\n',
      '"retry_after" is not valid in "response_headers"; did you mean "retry-after"?',
    ],
    [
      limit('name: daily, unlimited: true') +
        '- { key: b, rate_limit: { unlimited: true, replaces: [{ name: dialy }] } }\n',
      'no rule in this domain has the name "dialy", so this item has no effect; did you mean "daily"?',
    ],
  ])('%j', (text, said) => {
    expect(problemsOf(text)).toEqual([expect.stringContaining(said)]);
  });
});

describe('a duration', () => {
  test.each(['5m', '300s', '5 minutes', '1h30m', '7d', 'fortnight'])('unit: %s', (text) => {
    expect(problemsOf(limit(`unit: ${text}, requests_per_unit: 1`))).toEqual([
      `4:23: ${RATE_LIMIT}.unit: "${text}" is not a valid unit; write one of second, minute, hour, day, week, month, ` +
        'year',
    ]);
  });

  test.each(['1d', '2 days', '5min', '60', 'soon'])('fill_interval: %s', (text) => {
    expect(problemsOf(bucket(text))).toEqual([
      `4:63: ${RATE_LIMIT}.token_bucket.fill_interval: "${text}" is not a valid duration; write a number and a unit, ` +
        'such as 150ms, 1s or 1h30m',
    ]);
  });
});

describe('a value that is not what it looks like', () => {
  const regex = 'and this looks like a regular expression; if it is one, use "value_regex"';
  test.each([
    [
      '"10.0.0.0/8"',
      'is compared literally, so it does not match the addresses in this block; use "value_cidr" to match them',
    ],
    ['"^/v1/.*$"', `is a pattern in which only "*" has a special meaning, ${regex}`],
    ['"/v[0-9]+"', `is compared literally, ${regex}`],
    ['"(GET|HEAD)"', `is compared literally, ${regex}`],
  ])('%s', (value, said) => {
    expect(problemsOf(node(`value: ${value}`))).toEqual([`3:20: descriptors[0].value: "value" ${said}`]);
  });

  test.each([
    '/v1/*',
    'www.*',
    '*.example.com',
    '10.0.0.1',
    '10.0.0.0/33',
    'a/8',
    'US$',
    '(none)',
    'a|b',
    '[x]',
  ])('%s is accepted', (value) => {
    expect(problemsOf(node(`value: "${value}"`))).toEqual([]);
  });

  test('a block as Envoy sends it under the key masked_remote_address', () => {
    expect(
      problemsOf('domain: d\ndescriptors: [{ key: masked_remote_address, value: 10.0.0.0/8 }]\n'),
    ).toEqual([]);
  });
});

const VARIABLE =
  '"${" begins a variable, and weir does not substitute variables; run the file through envsubst first, ' +
  'and load the result';
const TEMPLATE =
  'this is a template ("{{") that has not been rendered yet; render it first, for example with "helm ' +
  'template", and load the result, or put the text in quotes';

describe('a string that YAML changes', () => {
  test.each(cases`
    domain: d\ndescriptors:\n- key: k\n  value: *\n
      4:10: this is not valid YAML: Alias cannot be an empty string
    domain: d\ndescriptors: [*]\n => 2:15: this is not valid YAML: Alias cannot be an empty string
    domain: d\ndescriptors:\n- key: k\n  value: *.example.com\n
      4:10: descriptors[0].value: "*.example.com" without quotes is an alias, which has no anchor before it; quote
        the text, or define the anchor first
    domain: @d\n => 1:9: this is not valid YAML: Plain value cannot start with reserved character @
    domain: a: b\n
      1:9: this is not valid YAML: Nested mappings are not allowed in compact mappings
    domain: d\ndescriptors:\n  - key: k\n   value: v\n
      4:4: this is not valid YAML: Sequence item without - indicator
    domain: d\nphase: active\n derive: []\n
      2:8: this is not valid YAML: Nested mappings are not allowed in compact mappings
    domain: d\ndescriptors:\n    - key: k\n  - key: l\n
      4:3: this is not valid YAML: A block sequence may not be used as an implicit map key
    domain: d\ndescriptors\n
      2:1: this is not valid YAML: Implicit map keys need to be followed by map values
    domain: d\ndescriptors: [{ key: k }\n
      2:14: this is not valid YAML: Flow sequence in block collection must be sufficiently indented and end with a ]
    domain: d\ndescriptors:\n  - key: k\n    value:v\n
      4:5: this is not valid YAML: Implicit map keys need to be followed by map values
    domain:d\ndescriptors: []\n => 1:1: this is not valid YAML: Implicit keys need to be on a single line
    domain: d\nderive: []\nphase = active\nplans: {}\n
      3:1: this is not valid YAML: Implicit keys need to be on a single line
    domain = d\ndescriptors: []\n
      1:1: this is not valid YAML: Implicit keys need to be on a single line
    ${node('value_regex: "\\d+"')}
      3:27: this is not valid YAML: Invalid escape sequence
    domain: d\ndescriptors:\n  -key: k\n   value: v\n
      3:9: this is not valid YAML: Nested mappings are not allowed in compact mappings
    domain: d\ndescriptors:\n  - key: k\n  value: v\n
      4:3: this is not valid YAML: All mapping items must start at the same column
    ${limit('unit: day').replace(' }', '')}- key: l\n
      4:15: this is not valid YAML: Flow map in block collection must be sufficiently indented and end with a }
    domain: {{ .Values.domain }}\n => 1:9: domain: ${TEMPLATE}
    domain: d\ndescriptors:\n  {{- range .Values.keys }}\n  - key: {{ . }}\n => 3:5: ${TEMPLATE}
    # \${A}\ndomain: d\nphase: ] \${B}\n => 3:10: ${VARIABLE}
    domain: d\n<<<<<<< HEAD\nphase: active\n=======\nphase: monitoring\n>>>>>>> main\n
      2:1: this is not valid YAML: Implicit keys need to be on a single line
      4:1: this is not valid YAML: Implicit keys need to be on a single line
      6:1: this is not valid YAML: Implicit keys need to be on a single line
    domain: d\ndescriptors: }\n
      2:14: this is not valid YAML: Unexpected flow-map-end token in YAML stream
  `)('%j', (text, ...errors) => {
    expect(problemsOf(text)).toEqual(errors);
  });
});

describe('common mistakes in values', () => {
  const number = `4:50: ${RATE_LIMIT}.requests_per_unit: "requests_per_unit" is`;
  const quotes = (place: string, key: string, first: string, last: string): string =>
    `${place}: "${key}" begins with ${first} and ends with ${last}, which YAML treats as part of the text; use ` +
    'straight quotes (") instead, or quote the whole text if requests contain these characters';
  test.each([
    [
      limit('unit: minute, requests_per_unit: "1,000"'),
      [`${number} the string "1,000"; write a whole number from 0 to 4294967295, without quotes`],
    ],
    [
      limit('unit: minute, requests_per_unit: unlimited'),
      [
        `${number} "unlimited"; write a whole number from 0 to 4294967295, or replace the key with ` +
          'unlimited: true for no limit',
      ],
    ],
    [
      node('value: [ann, bob]'),
      [
        '3:20: descriptors[0].value: "value" must be a string, not a list; write an item of ' +
          '"descriptors" for each value',
      ],
    ],
    [
      node('enforce_percent: 25%, rate_limit: { unit: day, requests_per_unit: 1 }'),
      ['3:30: descriptors[0].enforce_percent: "enforce_percent" is "25%"; write a number from 0 to 100'],
    ],
    [
      node('unit: day, requests_per_unit: 10'),
      [
        '3:13: descriptors[0].unit: "unit" has no effect here; it belongs in "rate_limit"',
        '3:24: descriptors[0].requests_per_unit: "requests_per_unit" has no effect here; it belongs in "rate_limit"',
      ],
    ],
    [
      'domain: “d”\ndescriptors: [{ key: ‘k’, value: “v” }]\n',
      [
        quotes('1:9: domain', 'domain', '“', '”'),
        quotes('2:22: descriptors[0].key', 'key', '‘', '’'),
        quotes('2:34: descriptors[0].value', 'value', '“', '”'),
      ],
    ],
    [node('value: "“ann”"'), []],
  ])('%j', (text, errors) => {
    expect(problemsOf(text)).toEqual(errors);
  });
});

describe('empty or repeated parts', () => {
  test('descriptors', () => {
    expect(problemsOf('domain: d\ndescriptors:\n')).toEqual([
      '2:13: descriptors: "descriptors" is empty and is ignored; write a value after it, or remove the key',
    ]);
    expect(problemsOf(node('descriptors: '))).toHaveLength(1);
  });

  test('a node, by an alias', () => {
    expect(problemsOf('domain: d\ndescriptors: [&a { key: k, value: v }, *a]\n')).toEqual([
      '2:35: descriptors[1]: "k=v" is defined twice at this level; merge the two descriptors, or remove one of them',
    ]);
  });
});
