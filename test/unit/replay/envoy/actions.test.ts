import { describe, expect, test } from '@jest/globals';
import { Configured, type Logged } from '../../../support/replay/configured.js';

const NONE: readonly string[] = [];

/** Returns the entries of the descriptor with one action, or none. */
function entries(action: string, logged: Logged, more = ''): readonly string[] {
  const configured = new Configured({
    'map.yaml': `domain: d\nlocal_cluster: edge\nrate_limits:\n  - actions: [${action}]\n${more}`,
  });
  expect(configured.errors).toEqual([]);
  return configured.calls(logged).map((text) => text.replace(/^d(?: end)?: /, ''));
}

const header = (matcher: string) =>
  `{ header_value_match: { descriptor_value: yes, headers: [{ name: X-H, ${matcher} }] } }`;
const YES = ['header_match=yes'];

describe('actions', () => {
  test.each<[string, Logged, readonly string[]]>([
    ['{ generic_key: { descriptor_value: v } }', {}, ['generic_key=v']],
    ['{ generic_key: { descriptor_key: k, descriptor_value: "%REQ(x)%" } }', {}, ['k=%REQ(x)%']],
    ['{ source_cluster: {} }', {}, ['source_cluster=edge']],
    ['{ destination_cluster: {} }', { UPSTREAM_CLUSTER: 'up' }, ['destination_cluster=up']],
    ['{ request_headers: { header_name: X-H, descriptor_key: k } }', { 'REQ(x-h)': '' }, ['k=']],
    ['{ request_headers: { header_name: X-H, descriptor_key: k } }', {}, NONE],
    ['{ request_headers: { header_name: X-H, descriptor_key: k, skip_if_absent: true } }', {}, ['']],
    ['{ request_headers: { header_name: host, descriptor_key: k } }', { 'REQ(:authority)': 'h' }, ['k=h']],
    [
      '{ request_headers: { header_name: ":path", descriptor_key: k } }',
      { 'REQ(:path)': '/new', 'REQ(x-envoy-original-path)': '/old' },
      ['k=/old'],
    ],
    ['{ remote_address: {} }', { DOWNSTREAM_REMOTE_ADDRESS: '10.0.0.1:80' }, ['remote_address=10.0.0.1']],
    ['{ remote_address: {} }', { DOWNSTREAM_REMOTE_ADDRESS: '[::1]:80' }, ['remote_address=::1']],
    ['{ remote_address: {} }', { DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: '::1' }, ['remote_address=::1']],
    ['{ remote_address: {} }', {}, NONE],
    [
      '{ query_parameters: { query_parameter_name: q, descriptor_key: k } }',
      { PATH: '/?a&q=%41+' },
      ['k=A+'],
    ],
    ['{ query_parameters: { query_parameter_name: q, descriptor_key: k } }', { PATH: '/q' }, NONE],
    [
      '{ query_parameter_value_match: { descriptor_value: v, query_parameters: [{ name: q }] } }',
      { PATH: '/?q' },
      ['query_match=v'],
    ],
    [
      '{ metadata: { descriptor_key: k, metadata_key: { key: n, path: [{ key: a }, { key: b }] } } }',
      { 'DYNAMIC_METADATA(n:a:b)': 'v' },
      ['k=v'],
    ],
    [
      '{ metadata: { descriptor_key: k, default_value: d, metadata_key: { key: n, path: [{ key: a }] } } }',
      { 'DYNAMIC_METADATA(n:a)': '' },
      ['k=d'],
    ],
    [
      '{ dynamic_metadata: { descriptor_key: k, metadata_key: { key: n, path: [{ key: a }] } } }',
      { 'DYNAMIC_METADATA(n:a)': 'v' },
      ['k=v'],
    ],
  ])('%s of %j', (action, logged, expected) => {
    expect(entries(action, logged)).toEqual(expected);
  });

  test.each([
    ['10.11.12.13', 32, 128, '10.11.12.13/32'],
    ['10.11.12.13', 12, 128, '10.0.0.0/12'],
    ['255.255.255.255', 1, 128, '128.0.0.0/1'],
    ['10.1.1.1', 0, 128, '0.0.0.0/0'],
    ['2001:DB8:ffff:ffff::1', 32, 41, '2001:db8:ff80::/41'],
    ['2001:db8::1:0:0:5', 32, 128, '2001:db8::1:0:0:5/128'],
  ])('the network of %s with %d or %d bits', (address, v4, v6, expected) => {
    const action = `{ masked_remote_address: { v4_prefix_mask_len: ${v4}, v6_prefix_mask_len: ${v6} } }`;
    const logged = { DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: address };
    expect(entries(action, logged)).toEqual([`masked_remote_address=${expected}`]);
  });

  test.each([
    ['10.1.1.1', false, true],
    ['11.1.1.1', false, false],
    ['11.1.1.1', true, true],
    ['::1', true, true],
    ['a pipe', true, false],
  ])('ranges with the address %s, inverted: %s', (address, invert, matches) => {
    const matcher = `{ ranges: [{ address_prefix: 10.0.0.0, prefix_len: 8 }], invert_match: ${invert} }`;
    const value = '"%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"';
    const action = `{ remote_address_match: { descriptor_value: ${value}, address_matcher: ${matcher} } }`;
    const logged = { DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: address };
    expect(entries(action, logged)).toEqual(matches ? [`remote_address_match=${address}`] : NONE);
  });
});

describe('header matchers', () => {
  test.each<[string, readonly (string | undefined)[], readonly (string | undefined)[]]>([
    ['string_match: { exact: v }', ['v'], ['', 'vv', undefined]],
    ['string_match: { exact: v }, invert_match: true', ['', 'vv'], ['v', undefined]],
    ['string_match: { prefix: VA, ignore_case: true }', ['vab'], ['v', undefined]],
    ['string_match: { safe_regex: { regex: "v.*" } }', ['v', 'va'], ['av', undefined]],
    ['string_match: { exact: "" }, treat_missing_header_as_empty: true', ['', undefined], ['v']],
    ['exact_match: v', ['v'], ['va', undefined]],
    ['prefix_match: v', ['va'], ['av', undefined]],
    ['suffix_match: v', ['av'], ['va', undefined]],
    ['contains_match: v', ['avb'], ['a', undefined]],
    ['safe_regex_match: { regex: "[0-9]+" }', ['12'], ['12a', undefined]],
    ['range_match: { start: -2, end: 5 }', ['-2', '4'], ['5', '', '4.0', undefined]],
    ['range_match: { start: 1, end: 5 }, invert_match: true', ['5', 'v'], ['1', undefined]],
    ['present_match: true', ['v', ''], [undefined]],
    ['present_match: false', [undefined], ['v']],
    ['present_match: true, invert_match: true', [undefined], ['v']],
    ['present_match: true, treat_missing_header_as_empty: true', ['v', undefined], []],
    ['', ['v'], [undefined]],
  ])('%s', (matcher, matching, others) => {
    const matches = (value: string | undefined) =>
      entries(header(matcher), value === undefined ? {} : { 'REQ(x-h)': value });
    for (const value of matching) expect([value, matches(value)]).toEqual([value, YES]);
    for (const value of others) expect([value, matches(value)]).toEqual([value, NONE]);
  });
});

describe('rate limits', () => {
  const one = '{ generic_key: { descriptor_value: v } }';

  test.each<[string, Logged, readonly string[]]>([
    ['    hits_addend: { number: 0 }', {}, ['generic_key=v [0]']],
    ['    hits_addend: { number: 2, is_negative_hits: true }', {}, ['generic_key=v [-2]']],
    ['    hits_addend: { format: "%BYTES_SENT%" }', { BYTES_SENT: '12.9' }, ['generic_key=v [12]']],
    ['    hits_addend: { format: "%BYTES_SENT%" }', { BYTES_SENT: '1000000001' }, NONE],
    ['    hits_addend: { format: "%BYTES_SENT%" }', { BYTES_SENT: 'many' }, NONE],
    ['    hits_addend: { format: "%BYTES_SENT%" }', {}, NONE],
  ])('%s of %j', (more, logged, expected) => {
    expect(entries(one, logged, more)).toEqual(expected);
  });

  test('marks the entry for the hold token at the end', () => {
    const path = '{ key: envoy.filters.http.ratelimit, path: [{ key: hold }] }';
    const token = `{ metadata: { descriptor_key: hold, metadata_key: ${path} } }`;
    const end = '    apply_on_stream_done: true';
    expect(entries(`${one}, ${token}`, {}, end)).toEqual(['generic_key=v,hold= hold at 1']);
    expect(entries(token, {})).toEqual([]);
  });

  test('reads the limit from metadata, or from the configuration', () => {
    const limitOf = (limit: string, logged: Logged) => {
      const text = `domain: d\nrate_limits: [{ actions: [${one}], limit: ${limit} }]`;
      const { config } = new Configured({ 'map.yaml': text });
      const operators = ['DYNAMIC_METADATA(m:l:requests_per_unit)', 'DYNAMIC_METADATA(m:l:unit)'];
      return config.callsOf(operators.map((operator) => logged[operator]))[0]?.start[0]?.limit;
    };
    const dynamic = '{ dynamic_metadata: { metadata_key: { key: m, path: [{ key: l }] } } }';
    const logged = { 'DYNAMIC_METADATA(m:l:requests_per_unit)': '7', 'DYNAMIC_METADATA(m:l:unit)': 'HOUR' };
    expect(limitOf(dynamic, logged)).toEqual({ requestsPerUnit: 7, unit: 3 });
    expect(limitOf(dynamic, {})).toBeUndefined();
    expect(limitOf('{ rate_limit: { requests_per_unit: 4, unit: MINUTE } }', {})).toEqual({
      requestsPerUnit: 4,
      unit: 2,
    });
  });

  test.each([
    ['actions: [{ extension: { name: e } }]', /map.yaml:3:17: .*extension cannot be replayed.*use one of /],
    ['actions: [{ request_headers: { header_name: x } }]', /"descriptor_key" is missing/],
    ['actions: [{ source_cluster: {} }]', /set node.cluster/],
    ['stage: 1', /"actions" is missing/],
    [`actions: [${one}]\n    stage: 1`, /Envoy rejects "stage" here/],
    [`actions: [${one}]\n    hits_addend: { format: "a %BYTES_SENT%" }`, /other than one operator/],
    [
      `actions: [{ header_value_match: { descriptor_value: v, headers: [{ name: x, odd_match: 1 }] } }]`,
      /odd_match/,
    ],
    [`actions: [${header('string_match: { safe_regex: { regex: "(" } }')}]`, /not a valid RE2/],
  ])('rejects %s', (text, message) => {
    const { errors } = new Configured({ 'map.yaml': `domain: d\nrate_limits:\n  - ${text}\n` });
    expect(errors.join('\n')).toMatch(message);
  });
});

test('names the values that a log lacks, and who needs them', () => {
  const configured = new Configured({
    'map.yaml': `domain: d
rate_limits:
  - actions:
      - request_headers: { header_name: X-Tenant, descriptor_key: tenant }
      - request_headers: { header_name: ":path", descriptor_key: path }
      - metadata: { descriptor_key: k, default_value: d, metadata_key: { key: n, path: [{ key: plan }] } }
  - actions: [{ request_headers: { header_name: x-tenant, descriptor_key: tenant } }]
`,
  });
  expect(configured.missing('%REQ(:PATH)%')).toEqual([
    {
      member: 'x-tenant: "%REQ(X-TENANT)%"',
      users: ['map.yaml:4: request_headers', 'map.yaml:7: request_headers'],
      optional: false,
    },
    { member: 'plan: "%DYNAMIC_METADATA(n:plan)%"', users: ['map.yaml:6: metadata'], optional: true },
  ]);
  expect(configured.missing('%REQ(X-TENANT)%', '%DYNAMIC_METADATA(n:plan)%')[0]?.member).toBe(
    'path: "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%"',
  );
});
