import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { repositoryRoot } from '../../../support/process/tools.js';
import { Configured } from '../../../support/replay/configured.js';

const shipped = (path: string) => readFileSync(join(repositoryRoot, path), 'utf8');
const REQUEST = { 'REQ(x-tenant)': 'acme', 'REQ(:method)': 'GET', 'REQ(:path)': '/a' };

describe('the shipped configurations', () => {
  test('of Envoy', () => {
    const configured = new Configured({ 'envoy.yaml': shipped('deploy/envoy/envoy.yaml') });
    expect(configured.errors).toEqual([]);
    expect(configured.calls(REQUEST)).toEqual(['open-api: tenant=acme,method=GET,path=/a']);
    expect(configured.calls({ 'REQ(:path)': '/a' })).toEqual([]);
    expect([...(configured.config.formats[0]?.operators ?? [])]).toContain('PATH(NQ)');
  });

  test('of Istio', () => {
    const filter = { 'filter.yaml': shipped('deploy/istio/filter.yaml') };
    const actions = { 'actions.yaml': shipped('deploy/istio/actions.yaml') };
    const configured = new Configured({ ...filter, ...actions });
    expect(configured.errors).toEqual([]);
    expect(configured.calls(REQUEST)).toEqual(['open-api: tenant=acme,method=GET,path=/a']);
    expect(new Configured(actions).errors.join()).toMatch(/no EnvoyFilter adds a rate limit filter/);
  });

  test('of Envoy Gateway, with its route', () => {
    const route = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: llm, namespace: default }
spec: { parentRefs: [{ name: eg, sectionName: http }], rules: [{}] }
`;
    const policy = shipped('deploy/envoy-gateway/reservations.yaml');
    const configured = new Configured({ 'reservations.yaml': policy, 'route.yaml': route });
    expect(configured.errors).toEqual([]);
    const name = 'httproute/default/llm/rule/0/match/0/*';
    const logged = { ROUTE_NAME: name, 'REQ(x-tenant)': 'acme' };
    const start = `default/eg/http: ${name}=${name},rule-0-match-0=acme [0]`;
    expect(configured.calls(logged)).toEqual([start]);
    expect(
      configured.calls({ ...logged, 'DYNAMIC_METADATA(io.envoy.ai_gateway:llm_total_token)': '70' }),
    ).toEqual([start, `default/eg/http end: ${name}=${name},rule-0-match-0=acme [70]`]);
    expect(configured.calls({ ...logged, ROUTE_NAME: 'httproute/default/other/rule/0/match/0/*' })).toEqual(
      [],
    );
    expect(new Configured({ 'policy.yaml': policy }).errors.join()).toMatch(
      /HTTPRoute default\/llm is not in the files/,
    );
  });
});

describe('BackendTrafficPolicy', () => {
  const gateway = `---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: eg }
spec: { listeners: [{ name: a, port: 80, protocol: HTTP }, { name: b, port: 8080, protocol: HTTP }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: shop }
spec: { parentRefs: [{ name: eg }], rules: [{ name: one }, { name: two }] }
`;
  const policy = (target: string, rules: string, name = 'p') => `---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: { name: ${name} }
spec: { targetRefs: [${target}], rateLimit: { type: Global, global: { rules: [${rules}] } } }
`;
  const LIMIT = 'limit: { requests: 1, unit: Hour }';
  const ROUTE = 'httproute/default/shop/rule/0/match/0/*';
  const SHOP = '{ kind: HTTPRoute, name: shop }';

  function calls(rules: string, logged: Readonly<Record<string, string>>): readonly string[] {
    const configured = new Configured({ 'eg.yaml': gateway + policy(SHOP, rules) });
    expect(configured.errors).toEqual([]);
    const all = { ROUTE_NAME: ROUTE, DOWNSTREAM_LOCAL_ADDRESS: '10.0.0.1:10080', ...logged };
    return configured.calls(all).map((text) => text.replaceAll(`${ROUTE}=${ROUTE},`, ''));
  }

  test.each<[string, Readonly<Record<string, string>>, readonly string[]]>([
    ['', {}, ['rule-0-match--1=rule-0-match--1']],
    ['headers: [{ name: x, value: v }]', { 'REQ(x)': 'v' }, ['rule-0-match-0=rule-0-match-0']],
    ['headers: [{ name: x, value: v, invert: true }]', { 'REQ(x)': 'v' }, []],
    [
      'headers: [{ name: x, type: RegularExpression, value: "v+" }]',
      { 'REQ(x)': 'vv' },
      ['rule-0-match-0=rule-0-match-0'],
    ],
    ['headers: [{ name: x, type: Distinct }]', { 'REQ(x)': 'v' }, ['rule-0-match-0=v']],
    ['methods: [{ value: GET }, { value: PUT }]', { 'REQ(:method)': 'PUT' }, ['rule-0-method=rule-0-method']],
    ['path: { value: /a.b/ }', { 'REQ(:path)': '/a.b?q' }, ['rule-0-path=rule-0-path']],
    ['path: { value: /a }', { 'REQ(:path)': '/ab' }, []],
    ['path: { type: Exact, value: /a }', { 'REQ(:path)': '/a' }, ['rule-0-path=rule-0-path']],
    [
      'sourceCIDR: { value: 10.0.0.0/8, type: Distinct }',
      { DOWNSTREAM_REMOTE_ADDRESS: '10.1.1.1:5' },
      ['masked_remote_address=10.0.0.0/8,remote_address=10.1.1.1'],
    ],
    [
      'headers: [{ name: x, type: Distinct }], queryParams: [{ name: q, type: Distinct }]',
      { 'REQ(x)': 'v', 'REQ(:path)': '/?q=w' },
      ['rule-0-match-0=v,rule-0-match-1=w'],
    ],
    ['queryParams: [{ name: q, value: w }]', { 'REQ(:path)': '/?q=w' }, ['rule-0-match-0=rule-0-match-0']],
  ])('clientSelectors %s of %j', (selector, logged, expected) => {
    const selectors = selector === '' ? '' : `clientSelectors: [{ ${selector} }], `;
    expect(calls(`{ ${selectors}${LIMIT} }`, logged)).toEqual(
      expected.map((text) => `default/eg/a: ${text}`),
    );
  });

  test('shared rules have a domain and numbers of their own', () => {
    const rules = `{ ${LIMIT} }, { shared: true, ${LIMIT} }, { ${LIMIT} }`;
    expect(calls(rules, { DOWNSTREAM_LOCAL_ADDRESS: '10.0.0.1:8080' })).toEqual([
      'default/eg/b: rule-0-match--1=rule-0-match--1',
      'default/eg/b: rule-1-match--1=rule-1-match--1',
      'default/p: default/p/rule/1=default/p/rule/1,rule-0-match--1=rule-0-match--1',
    ]);
  });

  test('the most specific policy applies', () => {
    const text =
      gateway +
      policy('{ kind: Gateway, name: eg }', `{ ${LIMIT} }, { ${LIMIT} }, { ${LIMIT} }`, 'gateway') +
      policy(SHOP, `{ ${LIMIT} }, { ${LIMIT} }`, 'route') +
      policy('{ kind: HTTPRoute, name: shop, sectionName: two }', `{ ${LIMIT} }`, 'rule');
    const configured = new Configured({ 'eg.yaml': text });
    const count = (ROUTE_NAME: string) => configured.calls({ ROUTE_NAME }).length;
    expect(configured.errors).toEqual([]);
    expect(count(ROUTE)).toBe(2);
    expect(count(ROUTE.replace('rule/0', 'rule/1'))).toBe(1);
  });
});

describe('EnvoyFilter', () => {
  const patch = (applyTo: string, match: string, value: string) => `
    - applyTo: ${applyTo}
      match: { ${match} }
      patch: { operation: MERGE, value: ${value} }`;
  const generic = (value: string) => `[{ actions: [{ genericKey: { descriptorValue: ${value} } }] }]`;

  test('patches by virtual host and route, with the names of either format', () => {
    const type = 'type.googleapis.com/udpa.type.v1.TypedStruct';
    const url = 'type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit';
    const text = `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: { name: f }
spec:
  configPatches:${[
    patch(
      'HTTP_FILTER',
      '',
      `{ name: r, typed_config: { "@type": ${type}, type_url: ${url}, value: { domain: d } } }`,
    ),
    patch('VIRTUAL_HOST', '', `{ rateLimits: ${generic('all')} }`),
    patch(
      'VIRTUAL_HOST',
      'routeConfiguration: { vhost: { name: "a.test:80" } }',
      `{ rate_limits: ${generic('a')} }`,
    ),
    patch(
      'HTTP_ROUTE',
      'routeConfiguration: { vhost: { route: { name: r } } }',
      `{ route: { rate_limits: ${generic('route')} } }`,
    ),
  ].join('')}
`;
    const configured = new Configured({ 'f.yaml': text });
    expect(configured.errors).toEqual([]);
    const values = (logged: Readonly<Record<string, string>>) =>
      configured.calls(logged).map((call) => call.replace('d: generic_key=', ''));
    expect(values({ 'REQ(:authority)': 'a.test' })).toEqual(['all', 'a']);
    expect(values({ 'REQ(:authority)': 'a.test:80' })).toEqual(['all', 'a']);
    expect(values({ 'REQ(:authority)': 'b.test' })).toEqual(['all']);
    expect(values({ 'REQ(:authority)': 'b.test', ROUTE_NAME: 'r' })).toEqual(['route']);
  });
});

test('a config dump', () => {
  const type = 'type.googleapis.com/envoy.extensions.filters';
  const manager = {
    '@type': `${type}.network.http_connection_manager.v3.HttpConnectionManager`,
    rds: { route_config_name: 'r' },
    http_filters: [
      { name: 'f', typed_config: { '@type': `${type}.http.ratelimit.v3.RateLimit`, domain: 'd' } },
    ],
  };
  const listener = { filter_chains: [{ filters: [{ name: 'h', typed_config: manager }] }] };
  const actions = [{ source_cluster: {} }];
  const route = { match: { prefix: '/' }, route: { cluster: 'up', rate_limits: [{ actions }] } };
  const route_config = { name: 'r', virtual_hosts: [{ name: 'v', domains: ['*'], routes: [route] }] };
  const configs: object[] = [
    { bootstrap: { node: { cluster: 'edge' } } },
    { dynamic_listeners: [{ name: 'l', active_state: { listener } }] },
  ];
  const without = new Configured({ 'dump.json': JSON.stringify({ configs }) });
  expect(without.errors.join()).toMatch(/route configuration "r" of this connection manager cannot be found/);
  const dump = { configs: [...configs, { dynamic_route_configs: [{ route_config }] }] };
  const configured = new Configured({ 'dump.json': JSON.stringify(dump, null, 1) });
  expect(configured.errors).toEqual([]);
  expect(configured.calls({})).toEqual(['d: source_cluster=edge']);
});

test.each([
  ['a: 1', /the file has no rate limits that can be replayed; pass a bootstrap/],
  ['rate_limits: []', /"domain" is missing/],
  ['domain: d\nrate_limit: []', /unknown key "rate_limit"; did you mean "rate_limits"/],
  ['a: [', /./],
])('rejects %j', (text, message) => {
  expect(new Configured({ 'x.yaml': text }).errors.join('\n')).toMatch(message);
});

test.each([
  ['json_format: { a: { b: "%PATH%" }, c: "%PROTOCOL%", d: "x %DURATION%" }', ['PATH', 'PROTOCOL']],
  ['text_format: "%PATH% %PROTOCOL%\\n"', ['PATH', 'PROTOCOL']],
])('reads %s of a mapping', (format, operators) => {
  const rateLimits = 'rate_limits: [{ actions: [{ generic_key: { descriptor_value: v } }] }]';
  const { config } = new Configured({ 'map.yaml': `domain: d\n${format}\n${rateLimits}` });
  expect([...(config.formats[0]?.operators ?? [])]).toEqual(operators);
});
