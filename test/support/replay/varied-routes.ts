/** A configuration of Envoy with every action, matcher and place of rate limits, and requests that tell them apart. */
import type { OutgoingHttpHeaders } from 'node:http';

const TYPES = 'type.googleapis.com/envoy.extensions';
const FILTER = 'envoy.filters.http.ratelimit';

type Data = Readonly<Record<string, unknown>>;

const generic = (value: string) => ({ generic_key: { descriptor_value: value } });
const named = (value: string, more: Data = {}) => ({ actions: [generic(value)], ...more });
const perRoute = (more: Data) => ({
  '@type': `${TYPES}.filters.http.ratelimit.v3.RateLimitPerRoute`,
  ...more,
});
const metadataKey = (namespace: string, ...keys: readonly string[]) => ({
  key: namespace,
  path: keys.map((key) => ({ key })),
});
const metadata = (namespace: string, key: string, more: Data = {}) => ({
  metadata: { descriptor_key: key, metadata_key: metadataKey(namespace, key), ...more },
});
const limit = { dynamic_metadata: { metadata_key: metadataKey('m', 'limit') } };
const holdToken = {
  metadata: { descriptor_key: 'hold', metadata_key: metadataKey(FILTER, 'hold') },
};

const header = (value: string, matcher: Data, name = 'x-h') => ({
  header_value_match: { descriptor_value: value, headers: [{ name, ...matcher }] },
});
const query = (value: string, matcher: Data, more: Data = {}) => ({
  query_parameter_value_match: {
    descriptor_value: value,
    query_parameters: [{ name: 'q', ...matcher }],
    ...more,
  },
});
const address = (value: string, invert_match: boolean) => ({
  remote_address_match: {
    descriptor_value: value,
    address_matcher: { ranges: [{ address_prefix: '10.0.0.0', prefix_len: 8 }], invert_match },
  },
});

/** Actions, each of which becomes a rate limit of the route for its prefix. */
const ACTIONS: Readonly<Record<string, readonly Data[]>> = {
  '/metadata/': [
    metadata('m', 'text'),
    metadata('m', 'empty', { default_value: 'default' }),
    metadata('m', 'none', { skip_if_absent: true }),
    metadata('m', 'none'),
    metadata('route', 'text', { source: 'ROUTE_ENTRY' }),
    metadata('route', 'number', { source: 'ROUTE_ENTRY' }),
    { source_cluster: {} },
    { destination_cluster: {} },
  ],
  '/address/': [
    { remote_address: {} },
    { masked_remote_address: {} },
    { masked_remote_address: { v4_prefix_mask_len: 12, v6_prefix_mask_len: 41 } },
    address('in 10/8', false),
    address('%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%', true),
  ],
  '/query/': [
    { query_parameters: { query_parameter_name: 'q', descriptor_key: 'q' } },
    { query_parameters: { query_parameter_name: 'e', descriptor_key: 'e', skip_if_absent: true } },
    query('decoded', { string_match: { exact: 'a b' } }),
    query('present', {}),
    query('absent', { present_match: true }, { expect_match: false, descriptor_key: 'k' }),
  ],
  '/header/': [
    { request_headers: { header_name: 'X-H', descriptor_key: 'first' } },
    { request_headers: { header_name: 'x-none', descriptor_key: 'none', skip_if_absent: true } },
    { request_headers: { header_name: 'host', descriptor_key: 'host' } },
    header('exact', { string_match: { exact: 'v' } }),
    header('inverted', { string_match: { exact: 'v' }, invert_match: true }),
    header('empty', { string_match: { exact: '' }, treat_missing_header_as_empty: true }),
    header('present', { present_match: true }),
    header('absent', { present_match: false }),
    header('inverted presence', { present_match: true, invert_match: true }),
    header('treated as present', { present_match: true, treat_missing_header_as_empty: true }),
    header('no specifier', {}),
    header('range', { range_match: { start: 1, end: 5 } }),
    header('inverted range', { range_match: { start: 1, end: 5 }, invert_match: true }),
    header('folded', { string_match: { prefix: 'VA', ignore_case: true } }),
    header('suffix', { string_match: { suffix: 'b' } }),
    header('contains', { string_match: { contains: 'a' } }),
    header('regex', { string_match: { safe_regex: { regex: 'v.*' } } }),
    header('old regex', { safe_regex_match: { regex: 'v' } }),
    header('old exact', { exact_match: 'v' }),
    header('old prefix', { prefix_match: 'v' }),
    header('old suffix', { suffix_match: 'v' }),
    header('old contains', { contains_match: 'v' }),
    {
      header_value_match: {
        descriptor_value: 'not expected',
        expect_match: false,
        headers: [{ name: 'x-h', string_match: { exact: 'v' } }],
      },
    },
  ],
};

const route = (match: Data, action: Data = {}, more: Data = {}) => ({
  match,
  route: { cluster: 'upstream', ...action },
  ...more,
});
const configured = (name: string, value: Data) => ({ typed_per_filter_config: { [name]: value } });
const limited = (...rate_limits: readonly Data[]) => configured(FILTER, perRoute({ rate_limits }));

const path = { request_headers: { header_name: ':path', descriptor_key: 'path' } };

const ROUTES: readonly Data[] = [
  ...Object.entries(ACTIONS).map(([prefix, actions]) =>
    route(
      { prefix },
      {},
      {
        metadata: { filter_metadata: { route: { text: 'words', number: 3 } } },
        ...limited(...actions.map((action) => ({ actions: [generic('x'), action] }))),
      },
    ),
  ),
  route(
    { prefix: '/place/route' },
    {
      rate_limits: [
        named('route', { hits_addend: { number: 3 }, limit }),
        named('stage 2', { stage: 2 }),
        named('end', { apply_on_stream_done: true }),
      ],
    },
  ),
  route({ prefix: '/place/include' }, { include_vh_rate_limits: true, rate_limits: [named('route')] }),
  route(
    { prefix: '/place/filter' },
    { rate_limits: [named('route')] },
    {
      ...configured(
        FILTER,
        perRoute({
          domain: 'other',
          rate_limits: [
            named('hits', { hits_addend: { number: 3, is_negative_hits: true }, limit }),
            { actions: [holdToken], apply_on_stream_done: true, hits_addend: { format: '%RESP(x-cost)%' } },
            named('no hits', { apply_on_stream_done: true, hits_addend: { format: '%RESP(x-none)%' } }),
            named('static limit', { limit: { rate_limit: { requests_per_unit: 4, unit: 'MINUTE' } } }),
          ],
        }),
      ),
    },
  ),
  route({ prefix: '/place/ignore' }, {}, configured(FILTER, perRoute({ vh_rate_limits: 'IGNORE' }))),
  route(
    { prefix: '/place/both' },
    { rate_limits: [named('route')] },
    configured(FILTER, perRoute({ override_option: 'INCLUDE_POLICY', vh_rate_limits: 'IGNORE' })),
  ),
  route(
    { prefix: '/place/option' },
    { rate_limits: [named('route')] },
    configured(FILTER, perRoute({ override_option: 'INCLUDE_POLICY' })),
  ),
  route(
    { prefix: '/place/included' },
    { rate_limits: [named('route')] },
    configured(FILTER, perRoute({ vh_rate_limits: 'INCLUDE' })),
  ),
  route({ prefix: '/place/stage' }, { rate_limits: [named('stage 5', { stage: 5 })] }),
  route(
    { prefix: '/place/off' },
    {},
    configured(FILTER, { '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig', disabled: true }),
  ),
  route(
    { prefix: '/rewrite' },
    { prefix_rewrite: '/new' },
    limited({ actions: [path] }, { actions: [path], apply_on_stream_done: true }),
  ),
  { match: { prefix: '/direct' }, direct_response: { status: 200 } },
  route({ path: '/Exact', case_sensitive: false }, {}, limited(named('exact path'))),
  route({ path_separated_prefix: '/part' }, {}, limited(named('part'))),
  route({ safe_regex: { regex: '/r[0-9]+' } }, {}, limited(named('regex'))),
  route(
    { prefix: '/matched', headers: [{ name: 'x-h', string_match: { exact: 'v' } }] },
    {},
    limited(named('by header')),
  ),
  route(
    { prefix: '/matched', query_parameters: [{ name: 'q', string_match: { exact: 'a b' } }] },
    {},
    limited(named('by decoded query')),
  ),
  route(
    { prefix: '/matched', query_parameters: [{ name: 'q', string_match: { exact: 'a%20b' } }] },
    {},
    limited(named('by raw query')),
  ),
  { name: 'named', ...route({ prefix: '/matched' }, {}, limited(named('by name'))) },
  route({ prefix: '/' }),
];

export interface VariedRequest {
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
}

const host = (name: string): VariedRequest => ({ path: '/host', headers: { host: name } });
const from = (client: string): VariedRequest => ({
  path: '/address/',
  headers: { 'x-forwarded-for': client },
});
const withHeader = (value: string): VariedRequest => ({ path: '/header/', headers: { 'x-h': value } });

export const REQUESTS: readonly VariedRequest[] = [
  ...[
    '/metadata/',
    '/place/route',
    '/place/include',
    '/place/filter',
    '/place/ignore',
    '/place/both',
    '/place/option',
    '/place/included',
  ],
  ...['/place/stage', '/place/off', '/rewrite/a?b=1', '/direct', '/exact', '/exact?q', '/exact/', '/part'],
  ...['/part?q', '/part/a', '/party', '/r12?q', '/r12a', '/matched', '/matched?q=a%20b', '/none', '/denied'],
  ...['/query/?q=a%20b&e=+1%2B&q=2', '/query/?z', '/query/?q&z=1', '/header/', '/address/'],
]
  .map((path): VariedRequest => ({ path }))
  .concat(
    ['v', '', '3', ' 7 ', 'vab', 'VAB', '-2'].map(withHeader),
    ['10.1.2.3', '192.168.7.9', '2001:DB8:0:ffff:1::5', '::1'].map(from),
    ['a.example.com', 'A.EXAMPLE.com', 'b.example.com', 'deep.b.example.com', 'example.com'].map(host),
    ['example.org', 'a.example.com:80', 'port.test:81', 'port.test'].map(host),
    { path: '/matched', headers: { 'x-h': 'v' } },
    { path: '/internal', headers: { 'x-envoy-internal': 'true', 'x-forwarded-for': '10.0.0.1' } },
    { path: '/internal', headers: { 'x-forwarded-for': '8.8.8.8' } },
  );

const JSON_FORMAT = {
  request: {
    path: '%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%',
    authority: '%REQ(:AUTHORITY)%',
    'x-h': '%REQ(X-H)%',
  },
  current: '%REQ(:PATH)%',
  none: '%REQ(X-NONE)%',
  internal: '%REQ(X-ENVOY-INTERNAL)%',
  address: '%DOWNSTREAM_REMOTE_ADDRESS%',
  text: '%DYNAMIC_METADATA(m:text)%',
  empty: '%DYNAMIC_METADATA(m:empty)%',
  absent: '%DYNAMIC_METADATA(m:none)%',
  requests: '%DYNAMIC_METADATA(m:limit:requests_per_unit)%',
  unit: '%DYNAMIC_METADATA(m:limit:unit)%',
  cost: '%RESP(X-COST)%',
  free: '%RESP(X-NONE)%',
  route: '%ROUTE_NAME%',
  details: '%RESPONSE_CODE_DETAILS%',
  duration: '%DURATION%',
};

const onLoopback = (port: number) => ({ socket_address: { address: '127.0.0.1', port_value: port } });
const cluster = (name: string, port: number, more: Data = {}) => ({
  name,
  type: 'STATIC',
  connect_timeout: '5s',
  load_assignment: {
    cluster_name: name,
    endpoints: [{ lb_endpoints: [{ endpoint: { address: onLoopback(port) } }] }],
  },
  ...more,
});

export interface VariedOptions {
  readonly port: number;
  readonly adminPort: number;
  readonly upstreamPort: number;
  readonly servicePort: number;
  /** File of the access log. */
  readonly log: string;
}

/** Returns the bootstrap of Envoy as JSON, which is YAML. */
export function bootstrap({ port, adminPort, upstreamPort, servicePort, log }: VariedOptions): string {
  const filter = (domain: string, more: Data = {}, name = FILTER) => ({
    name,
    typed_config: {
      '@type': `${TYPES}.filters.http.ratelimit.v3.RateLimit`,
      domain,
      timeout: '10s',
      failure_mode_deny: true,
      rate_limit_service: {
        transport_api_version: 'V3',
        grpc_service: { envoy_grpc: { cluster_name: 'service' } },
      },
      ...more,
    },
  });
  const values = { text: 'words', empty: '', limit: { requests_per_unit: 9, unit: 'HOUR' } };
  const setMetadata = {
    name: 'envoy.filters.http.set_metadata',
    typed_config: {
      '@type': `${TYPES}.filters.http.set_metadata.v3.Config`,
      metadata: [{ metadata_namespace: 'm', value: values }],
    },
  };
  const onlyWithout = (prefix: string) => ({
    name: 'envoy.filters.http.rbac',
    typed_config: {
      '@type': `${TYPES}.filters.http.rbac.v3.RBAC`,
      rules: {
        action: 'DENY',
        policies: {
          denied: { permissions: [{ url_path: { path: { prefix } } }], principals: [{ any: true }] },
        },
      },
    },
  });
  const ofFilter = [
    named('of the filter', { hits_addend: { number: 2 } }),
    named('of the filter', { apply_on_stream_done: true }),
  ];
  const manager = {
    '@type': `${TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'varied',
    use_remote_address: true,
    xff_num_trusted_hops: 1,
    access_log: [
      {
        name: 'envoy.access_loggers.file',
        typed_config: {
          '@type': `${TYPES}.access_loggers.file.v3.FileAccessLog`,
          path: log,
          log_format: { json_format: JSON_FORMAT },
        },
      },
    ],
    http_filters: [
      setMetadata,
      filter('before', { rate_limits: ofFilter }, 'before'),
      onlyWithout('/denied'),
      filter('first'),
      filter('second', { stage: 2 }, 'second'),
      filter('third', { rate_limits: ofFilter }, 'third'),
      filter('internal', { request_type: 'internal', rate_limits: [named('internal')] }, 'internal'),
      filter('external', { request_type: 'external', rate_limits: [named('external')] }, 'external'),
      filter('all routes', {}, 'all'),
      {
        name: 'envoy.filters.http.router',
        typed_config: { '@type': `${TYPES}.filters.http.router.v3.Router` },
      },
    ],
    route_config: {
      ...configured('all', perRoute({ rate_limits: [named('of all routes')] })),
      virtual_hosts: [
        ...[['a.example.com'], ['*.example.com'], ['*.b.example.com'], ['example.*'], ['port.test:81']].map(
          (domains) => ({
            name: domains.join(),
            domains,
            routes: [route({ prefix: '/' }, {}, limited(named(domains.join())))],
          }),
        ),
        {
          name: 'others',
          domains: ['*'],
          rate_limits: [named('host'), named('host 2', { stage: 2 })],
          routes: ROUTES,
        },
      ],
    },
  };
  const listener = {
    name: 'http',
    address: onLoopback(port),
    filter_chains: [{ filters: [{ name: 'http', typed_config: manager }] }],
  };
  const http2 = {
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': `${TYPES}.upstreams.http.v3.HttpProtocolOptions`,
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
  };
  return JSON.stringify({
    node: { id: 'varied', cluster: 'edge' },
    static_resources: {
      listeners: [listener],
      clusters: [cluster('upstream', upstreamPort), cluster('service', servicePort, http2)],
    },
    admin: { address: onLoopback(adminPort) },
  });
}
