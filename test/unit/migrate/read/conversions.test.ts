/* Conversion of limits of Limitador and Emissary to policies, and limits that cannot be converted. */
import { afterAll, describe, expect, test } from '@jest/globals';
import { readInstallation } from '../../../../src/migrate/read/installation.js';
import { convertedReport } from '../../../../src/migrate/write/converted-policies.js';
import { Installations } from '../../../support/migrate/installations.js';

const installations = new Installations();
afterAll(() => installations.remove());

/** Returns the policies that a file converts to, by name, and the decisions without the folder of the test. */
function convert(name: string, text: string) {
  const { conversions, inputs } = installations.good({ [name]: text });
  const { report, files } = convertedReport(conversions, inputs);
  return {
    policies: Object.fromEntries(files.map(({ path, content }) => [path, String(content)])),
    decide: report.decide.map(({ about, text: said }) => `${about.replace(/^.*\//, '')}: ${said}`),
  };
}

const limit = (fields: string) => `- { namespace: shop, max_value: 10, seconds: 60, ${fields} }\n`;
const NOT_CONVERTED = 'this limit was not converted: ';

describe('Limitador limits', () => {
  test('conditions and variables become nodes in their order, and seconds become a window', () => {
    const text = `
- namespace: shop
  max_value: 50000
  seconds: 10
  conditions: ["descriptors[0]['req.method'] == 'GET'", '"/json" == descriptors[0].path']
- { namespace: shop, max_value: 3, seconds: 86400, name: daily, conditions: [method == "PUT"], variables: [path] }
`;
    const { policies } = convert('limits.yaml', text);
    expect(policies).toEqual({
      'policies/shop.yaml': `domain: "shop"
descriptors:
  - key: "req.method"
    value: "GET"
    descriptors:
      - key: "path"
        value: "/json"
        rate_limit: { unit: second, unit_multiplier: 10, requests_per_unit: 50000 }
  - key: "method"
    value: "PUT"
    descriptors:
      - key: "path"
        rate_limit: { name: "daily", unit: day, requests_per_unit: 3 }
`,
    });
  });

  test('several windows with the same entries become a list; a Limitador resource is also read', () => {
    const text = `apiVersion: limitador.kuadrant.io/v1alpha1
kind: Limitador
metadata: { name: l }
spec:
  limits:
    - { namespace: a, max_value: 1, seconds: 1, variables: [user] }
    - { namespace: a, max_value: 9, seconds: 7200, variables: ["descriptors[0].user"] }
`;
    const { policies, decide } = convert('limitador.yaml', text);
    expect(decide).toEqual([]);
    expect(policies['policies/a.yaml']).toBe(`domain: "a"
descriptors:
  - key: "user"
    rate_limits:
      - { unit: second, requests_per_unit: 1 }
      - { unit: hour, unit_multiplier: 2, requests_per_unit: 9 }
`);
  });

  test.each([
    [
      'conditions: ["path != \'/json\'"]',
      "its condition \"path != '/json'\" is not of the form key == 'value'",
    ],
    ["conditions: [\"a == 'b' && c == 'd'\"]", "is not of the form key == 'value'"],
    ['conditions: ["a.startsWith(\'b\')"]', "is not of the form key == 'value'"],
    ['variables: ["descriptors[0].a.size()"]', 'is not the key of an entry'],
    ['conditions: ["a == \'*\'"]', 'the value of "a" contains a *'],
    ['conditions: ["a == \'\'"]', 'the value of "a" is empty'],
    ['conditions: []', 'it has neither conditions nor variables'],
    [
      'conditions: ["descriptors[0].a == \'b\'"], variables: ["descriptors[1].c"]',
      'it uses entries of several descriptors in a request',
    ],
    [
      'conditions: ["a == \'b\'", "a == \'c\'"]',
      'it never applies, because its conditions require two different values for "a"',
    ],
    ['conditions: a == "b", variables: [c]', 'its "conditions" is not a list'],
    ['variables: c, conditions: ["a == \'b\'"]', 'its "variables" is not a list'],
    ['variables: [a], policy: deny', 'weir has no equivalent for its field "policy"'],
    ['max_value: -1, variables: [a]', 'its max_value "-1" is not a number of requests'],
    ['seconds: 0, variables: [a]', 'its "seconds" is not a whole number of 1 or more'],
  ])('%s is refused by name', (fields, said) => {
    const { policies, decide } = convert('limits.yaml', limit(fields));
    expect(policies).toEqual({});
    expect(decide).toEqual([expect.stringContaining(`limits.yaml:1: ${NOT_CONVERTED}`)]);
    expect(decide[0]).toContain(said);
  });

  test('limits with different entries need separate descriptors', () => {
    const { decide } = convert('limits.yaml', limit('variables: [a]') + limit('variables: [a, b]'));
    expect(decide).toEqual([
      expect.stringContaining('limits.yaml: namespace shop: its limits have different entries: [a], [a, b].'),
    ]);
    // Limits with the same keys need no decision, because only one of them can match.
    const values = limit('conditions: ["a == \'1\'"]') + limit('conditions: ["a == \'2\'"]');
    expect(convert('limits.yaml', values).decide).toEqual([]);
  });

  test('keys in another order are the same entries, and a duplicate condition counts once', () => {
    const first = limit('conditions: ["a == \'1\'", "b == \'2\'", "a == \'1\'"], variables: [c, c]');
    const second =
      '- { namespace: shop, max_value: 9, seconds: 3600, conditions: ["b == \'2\'", a == "1"], variables: [c] }\n';
    const { policies, decide } = convert('limits.yaml', first + second);
    expect(decide).toEqual([]);
    expect(policies['policies/shop.yaml']).toBe(`domain: "shop"
descriptors:
  - key: "a"
    value: "1"
    descriptors:
      - key: "b"
        value: "2"
        descriptors:
          - key: "c"
            rate_limits:
              - { unit: minute, requests_per_unit: 10 }
              - { unit: hour, requests_per_unit: 9 }
`);
  });

  test('texts with line breaks and YAML control characters are written in a readable form', () => {
    const odd = '"a\\x85\\u2028\\u2029\\x7f\\x9f\\ufeffb"';
    const name = `name: ${odd}, conditions: [${JSON.stringify(`a == '${odd.slice(1, -1)}'`).replaceAll('\\\\', '\\')}]`;
    const { policies, decide } = convert('limits.yaml', limit(name));
    expect(decide).toEqual([]);
    expect(policies['policies/shop.yaml']).toContain(String.raw`"a\u0085\u2028\u2029\u007f\u009f\ufeffb"`);
  });

  test('the conversion time is proportional to the length of the file', () => {
    const many = Array.from({ length: 5000 }, (_, i) =>
      limit(`conditions: ["a == '${i}'"], variables: [b${i}]`),
    );
    expect(Object.keys(convert('limits.yaml', many.join('')).policies)).toEqual(['policies/shop.yaml']);
  });
});

describe('Emissary RateLimits', () => {
  const rateLimit = (limits: string, domain = 'ambassador') =>
    'apiVersion: getambassador.io/v3alpha1\nkind: RateLimit\nmetadata: { name: x }\n' +
    `spec: { domain: ${domain}, limits: [${limits}] }\n`;

  test('items of a pattern become nodes, and LogOnly becomes shadow_mode', () => {
    const text = rateLimit(
      '{ name: user, pattern: [{ generic_key: foo }, { remote_address: "*" }], rate: 5, unit: Minute }, ' +
        '{ action: LogOnly, pattern: [{ user: "" }], rate: 100, unit: day }',
    );
    const { policies, decide } = convert('limits.yaml', `${text}---\n${rateLimit('', '../evil')}`);
    expect(decide).toEqual([]);
    expect(policies).toEqual({
      'policies/ambassador.yaml': `domain: "ambassador"
descriptors:
  - key: "generic_key"
    value: "foo"
    descriptors:
      - key: "remote_address"
        rate_limit: { name: "user", unit: minute, requests_per_unit: 5 }
  - key: "user"
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 100 }
`,
    });
  });

  test('each domain has a file in the folder, for any name', () => {
    const one = '{ pattern: [{ a: b }], rate: 1, unit: day }';
    const text = [rateLimit(one, '../evil'), rateLimit(one, '"..*evil"'), rateLimit(one, '"a\\nb"')].join(
      '---\n',
    );
    expect(Object.keys(convert('limits.yaml', text).policies)).toEqual([
      'policies/__evil.yaml',
      'policies/__evil-2.yaml',
      'policies/a_b.yaml',
    ]);
  });

  test.each([
    ['{ pattern: [{ a: b, c: d }], rate: 1, unit: day }', 'does not have exactly one key'],
    [
      '{ pattern: [{ a: b }], rate: 1, unit: day, burstFactor: 3 }',
      'weir has no equivalent for its field "burstFactor"',
    ],
    ['{ pattern: [{ a: b }], rate: 1, unit: day, errorResponse: {} }', 'set denied_response'],
    ['{ pattern: [{ a: [b, c] }], rate: 1, unit: day }', 'the value of "a" is not a string'],
    ['{ pattern: [{ a: { b: c } }], rate: 1, unit: day }', 'the value of "a" is not a string'],
    ['{ pattern: [{ a: "b*" }], rate: 1, unit: day }', 'the value of "a" contains a *'],
    ['{ pattern: [], rate: 1, unit: day }', 'its pattern is empty'],
    ['{ pattern: [{ a: b }], rate: 1.5, unit: day }', 'its rate "1.5" is not a number of requests'],
    [
      '{ pattern: [{ a: b }], rate: 1, unit: week }',
      'its unit "week" is not one of second, minute, hour, day',
    ],
    ['{ pattern: [{ a: b }], rate: 1, unit: day, action: Tarpit }', 'is neither Enforce nor LogOnly'],
  ])('%s is refused by name', (one, said) => {
    const { policies, decide } = convert('limits.yaml', rateLimit(one));
    expect(policies).toEqual({});
    expect(decide).toEqual([expect.stringContaining(`limits.yaml:4: ${NOT_CONVERTED}`)]);
    expect(decide[0]).toContain(said);
  });
});

test.each([
  'apiVersion: limitador.kuadrant.io/v1alpha1\nkind: Limitador\nspec: { limits: { namespace: a } }\n',
  'apiVersion: getambassador.io/v2\nkind: RateLimit\nspec: { domain: a, limits: { rate: 1 } }\n',
])('limits that are not a list are refused: %j', (text) => {
  const { policies, decide } = convert('limits.yaml', text);
  expect(policies).toEqual({});
  expect(decide).toEqual([expect.stringContaining(NOT_CONVERTED)]);
});

describe('other input is reported', () => {
  const CHART = 'apiVersion: v2\nname: limits\nversion: 0.1.0\n';

  test.each([
    [
      'a Gloo',
      { 'g.yaml': 'apiVersion: ratelimit.solo.io/v1alpha1\nkind: RateLimitConfig\nspec: { raw: {} }\n' },
      '"g.yaml" is a Gloo RateLimitConfig, which weir migrate does not convert. Copy spec.raw.descriptors to a policy',
    ],
    [
      'Chart.yaml',
      { 'Chart.yaml': CHART },
      'contains the source of a Helm chart, and chart templates are not policies; save the rendered manifest',
    ],
    [
      'a template',
      { 'deployment.yaml': 'kind: Deployment\n{{- if .Values.x }}\na: {{ .Values.b }}\n' },
      '"deployment.yaml" is a Helm chart template; save the rendered manifest, and pass that file: `helm get manifest',
    ],
    [
      'manifests of other software',
      { 'r.yaml': 'apiVersion: kuadrant.io/v1\nkind: RateLimitPolicy\n---\napiVersion: v1\nkind: Service\n' },
      '"r.yaml" contains only RateLimitPolicy, Service, but neither policies nor the workload',
    ],
  ])('%s', (_what, files, said) => {
    expect(installations.read(files as Record<string, string>)).toContain(said);
  });

  test('chart templates, as a directory and as a valid YAML file', () => {
    const folder = installations.folderOf({
      'Chart.yaml': CHART,
      'templates/policy.yaml': 'apiVersion: v1\nkind: ConfigMap\ndata: { a: "domain: {{ .Values.x }}" }\n',
    });
    const said = `"${folder}" contains the source of a Helm chart`;
    for (const path of [`${folder}/templates`, `${folder}/templates/`, `${folder}/templates/policy.yaml`])
      expect(readInstallation([path], [], undefined)).toContain(said);
  });

  test('a chart directory', () => {
    const folder = installations.folderOf({
      'Chart.yaml': CHART,
      'templates/policy.yaml': 'domain: {{ .x }}\n',
    });
    const found = readInstallation([folder], [], undefined);
    expect(found).toContain(`"${folder}" contains the source of a Helm chart`);
    expect(found).toContain(`helm template ${folder} > manifest.yaml`);
  });
});
