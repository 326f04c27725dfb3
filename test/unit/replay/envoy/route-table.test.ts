import { describe, expect, test } from '@jest/globals';
import { Configured, type Logged } from '../../../support/replay/configured.js';

const TYPES = 'type.googleapis.com/envoy.extensions.filters';

const filter = (domain: string, more = '', name = 'rate') =>
  `{ name: ${name}, typed_config: { "@type": ${TYPES}.http.ratelimit.v3.RateLimit, domain: ${domain}, ${more} } }`;
const generic = (value: string) => `{ actions: [{ generic_key: { descriptor_value: ${value} } }] }`;
const perRoute = (more: string, name = 'rate') =>
  `typed_per_filter_config: { ${name}: { "@type": ${TYPES}.http.ratelimit.v3.RateLimitPerRoute, ${more} } }`;
const limited = (value: string) => perRoute(`rate_limits: [${generic(value)}]`);
const route = (match: string, value: string, more = '') =>
  `{ match: ${match}, route: { cluster: up }, ${limited(value)}, ${more} }`;
const host = (domains: string, routes: string, more = '') =>
  `{ name: h, domains: [${domains}], routes: [${routes}], ${more} }`;

const listener = (hosts: string, filters: string, port = 80, more = '') => `
    - address: { socket_address: { address: 0.0.0.0, port_value: ${port} } }
      filter_chains:
        - filters:
            - name: http
              typed_config:
                "@type": ${TYPES}.network.http_connection_manager.v3.HttpConnectionManager
                http_filters: [${filters}]
                route_config: { virtual_hosts: [${hosts}], ${more} }
`;
const bootstrap = (...listeners: readonly string[]) => `
node: { cluster: edge }
static_resources:
  listeners:${listeners.join('')}`;

/** Returns the configuration of one listener. */
function configured(hosts: string, filters = filter('d'), more = ''): Configured {
  const result = new Configured({ 'envoy.yaml': bootstrap(listener(hosts, filters, 80, more)) });
  expect(result.errors).toEqual([]);
  return result;
}

describe('virtual hosts', () => {
  const domains = [
    'a.example.com',
    '"*.example.com"',
    '"*.b.example.com"',
    'example.*',
    'port.test:81',
    '"*"',
  ];
  const hosts = domains.map((domain, i) => host(domain, route('{ prefix: / }', `host${i}`))).join();

  test.each([
    ['a.example.com', 0],
    ['A.example.COM', 0],
    ['b.example.com', 1],
    ['c.b.example.com', 2],
    ['example.org', 3],
    ['port.test:81', 4],
    ['port.test', 5],
    ['a.example.com:80', 5],
    ['.example.com', 5],
  ])('%s', (authority, index) => {
    expect(configured(hosts).calls({ 'REQ(:authority)': authority })).toEqual([
      `d: generic_key=host${index}`,
    ]);
  });

  test('without the port', () => {
    const table = configured(hosts, filter('d'), 'ignore_port_in_host_matching: true');
    expect(table.calls({ 'REQ(:authority)': 'a.example.com:80' })).toEqual(['d: generic_key=host0']);
  });

  test('without a host that matches', () => {
    expect(
      configured(host('a.test', route('{ prefix: / }', 'v'))).calls({ 'REQ(:authority)': 'b.test' }),
    ).toEqual([]);
  });
});

describe('routes', () => {
  test.each<[string, readonly string[], readonly string[]]>([
    ['{ prefix: /a }', ['/a', '/ab?q'], ['/A', '/']],
    ['{ prefix: /a, case_sensitive: false }', ['/A'], ['/b']],
    ['{ path: /a }', ['/a', '/a?q', '/a#f'], ['/a/', '/A']],
    ['{ path_separated_prefix: /a }', ['/a', '/a/b', '/a?q'], ['/ab']],
    ['{ safe_regex: { regex: "/[0-9]+" } }', ['/12', '/1?a'], ['/1a']],
    [
      '{ prefix: /, query_parameters: [{ name: q, string_match: { exact: "%41" } }] }',
      ['/?q=%41'],
      ['/?q=A', '/'],
    ],
  ])('%s', (match, matching, others) => {
    const table = configured(host('"*"', route(match, 'v')));
    for (const path of matching)
      expect([path, table.calls({ 'REQ(:path)': path })]).toEqual([path, ['d: generic_key=v']]);
    for (const path of others) expect([path, table.calls({ 'REQ(:path)': path })]).toEqual([path, []]);
  });

  test('gRPC', () => {
    const table = configured(host('"*"', route('{ prefix: /, grpc: {} }', 'v')));
    expect(table.calls({ 'REQ(content-type)': 'application/grpc+proto' })).toHaveLength(1);
    expect(table.calls({ 'REQ(content-type)': 'application/grpc-web' })).toEqual([]);
  });

  test('the first that matches, or the one with the logged name', () => {
    const routes = [
      route('{ prefix: /a }', 'first', 'name: one'),
      route('{ prefix: /a, runtime_fraction: {} }', 'second', 'name: two'),
    ];
    const table = configured(host('"*"', routes.join()));
    expect(table.calls({ 'REQ(:path)': '/a' })).toEqual(['d: generic_key=first']);
    expect(table.calls({ 'REQ(:path)': '/a', ROUTE_NAME: 'two' })).toEqual(['d: generic_key=second']);
    expect(table.missing('%ROUTE_NAME%')).toEqual([]);
    expect(table.missing('%REQ(:PATH)%').map(({ member }) => member)).toEqual(['route_name: "%ROUTE_NAME%"']);
  });

  test('a condition that no log shows needs a name', () => {
    const text = bootstrap(listener(host('"*"', route('{ prefix: /, tls_context: {} }', 'v')), filter('d')));
    expect(new Configured({ 'envoy.yaml': text }).errors.join()).toMatch(
      /"tls_context" matches; give each route/,
    );
  });

  test('no calls without a cluster to forward to', () => {
    const direct = '{ match: { prefix: / }, direct_response: { status: 200 } }';
    expect(configured(host('"*"', direct), filter('d', `rate_limits: [${generic('v')}]`)).calls({})).toEqual(
      [],
    );
  });

  test('a rewrite needs the original path', () => {
    const rewrite = `{ match: { prefix: /a }, route: { cluster: up, prefix_rewrite: /b }, ${limited('v')} }`;
    const table = configured(host('"*"', rewrite));
    expect(table.missing('%REQ(:PATH)%')).toHaveLength(1);
    expect(table.missing('%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%')).toEqual([]);
    expect(table.missing('%PATH(WQ)%')).toEqual([]);
  });
});

describe('rate limits that apply', () => {
  const place = (action: string, more = '', ofHost = `rate_limits: [${generic('host')}]`) =>
    host('"*"', `{ match: { prefix: / }, route: { cluster: up, ${action} }, ${more} }`, ofHost);
  const ofRoute = `rate_limits: [${generic('route')}]`;

  test.each<[string, string, string, readonly string[]]>([
    ['the virtual host', place(''), '', ['host']],
    ['the route', place(ofRoute), '', ['route']],
    ['both', place(`${ofRoute}, include_vh_rate_limits: true`), '', ['route', 'host']],
    ['both by filter', place(ofRoute, perRoute('vh_rate_limits: INCLUDE')), '', ['route', 'host']],
    ['neither', place('', perRoute('vh_rate_limits: IGNORE')), '', []],
    ['a route in another stage', place(`rate_limits: [{ stage: 1, ${generic('r').slice(1)}]`), '', []],
    ['the filter', place(ofRoute), `rate_limits: [${generic('filter')}]`, ['filter']],
    ['the filter for a route', place(ofRoute, limited('p')), `rate_limits: [${generic('filter')}]`, ['p']],
    ['a disabled filter', place(ofRoute), 'disabled', []],
  ])('%s', (_name, hosts, more, expected) => {
    const one =
      more === 'disabled'
        ? filter('d').replace('name: rate', 'name: rate, disabled: true')
        : filter('d', more);
    expect(configured(hosts, one).calls({})).toEqual(expected.map((value) => `d: generic_key=${value}`));
  });

  test('several filters with domains and stages, and their ends', () => {
    const end = `{ apply_on_stream_done: true, ${generic('end').slice(1)}`;
    const hosts = place(`rate_limits: [${generic('zero')}, { stage: 1, ${generic('one').slice(1)}, ${end}]`);
    const table = configured(hosts, [filter('d0'), filter('d1', 'stage: 1', 'other')].join());
    expect(table.calls({})).toEqual([
      'd0: generic_key=zero',
      'd0 end: generic_key=end',
      'd1: generic_key=one',
    ]);
  });

  test('not to requests that an earlier filter rejected', () => {
    const rbac = `{ name: rbac, typed_config: { "@type": ${TYPES}.http.rbac.v3.RBAC } }`;
    const table = configured(place(ofRoute), [filter('d0'), rbac, filter('d1', '', 'other')].join());
    expect(table.calls({})).toEqual(['d0: generic_key=route', 'd1: generic_key=route']);
    const rejected = { RESPONSE_CODE_DETAILS: 'rbac_access_denied_matched_policy[none]' };
    expect(table.calls(rejected)).toEqual(['d0: generic_key=route']);
    expect(table.missing()).toMatchObject([
      { optional: true, users: [expect.stringMatching(/: http_filters$/)] },
    ]);
  });

  test.each<[string, Logged, number]>([
    ['internal', { 'REQ(x-envoy-internal)': 'true' }, 1],
    ['internal', {}, 0],
    ['external', {}, 1],
    ['both', { 'REQ(x-envoy-internal)': 'true' }, 1],
  ])('request_type %s of %j', (type, logged, count) => {
    expect(configured(place(ofRoute), filter('d', `request_type: ${type}`)).calls(logged)).toHaveLength(
      count,
    );
  });

  test('FilterConfig disables and enables', () => {
    const wrapped = (more: string) =>
      `typed_per_filter_config: { rate: { "@type": type.googleapis.com/envoy.config.route.v3.FilterConfig, ${more} } }`;
    expect(configured(place(ofRoute, wrapped('disabled: true'))).calls({})).toEqual([]);
    const off = filter('d').replace('name: rate', 'name: rate, disabled: true');
    expect(configured(place(ofRoute, wrapped('config: {}')), off).calls({})).toHaveLength(1);
  });

  test('hits of a route are ignored with a warning', () => {
    const table = configured(place(`rate_limits: [{ hits_addend: { number: 5 }, ${generic('r').slice(1)}]`));
    expect(table.calls({})).toEqual(['d: generic_key=r']);
    expect(table.warnings.join()).toMatch(/Envoy 1.40 ignores "hits_addend" here/);
  });
});

test('several listeners are told apart by their port', () => {
  const one = (port: number) => listener(host('"*"', route('{ prefix: / }', `p${port}`)), filter('d'), port);
  const table = new Configured({ 'envoy.yaml': bootstrap(one(80), one(81)) });
  expect(table.calls({ DOWNSTREAM_LOCAL_ADDRESS: '10.0.0.1:81' })).toEqual(['d: generic_key=p81']);
  expect(table.calls({ DOWNSTREAM_LOCAL_ADDRESS: '10.0.0.1:82' })).toEqual([]);
});

test('metadata and clusters of the route', () => {
  const key = '{ key: n, path: [{ key: a }] }';
  const metadata = `{ metadata: { source: ROUTE_ENTRY, descriptor_key: k, metadata_key: ${key} } }`;
  const actions = `actions: [{ destination_cluster: {} }, ${metadata}]`;
  const facts = 'match: { prefix: / }, metadata: { filter_metadata: { n: { a: v } } }';
  const one = (cluster: string) => `{ ${facts}, route: { ${cluster}, rate_limits: [{ ${actions} }] } }`;
  expect(configured(host('"*"', one('cluster: up'))).calls({})).toEqual(['d: destination_cluster=up,k=v']);
  expect(configured(host('"*"', one('cluster_header: x-c'))).calls({ 'REQ(x-c)': 'c' })).toEqual([
    'd: destination_cluster=c,k=v',
  ]);
  const weighted = configured(host('"*"', one('weighted_clusters: {}')));
  expect(weighted.calls({ UPSTREAM_CLUSTER_RAW: 'w' })).toEqual(['d: destination_cluster=w,k=v']);
  expect(weighted.missing()).toHaveLength(1);
});
