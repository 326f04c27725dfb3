/* Tests weir as the rate limit service of an Envoy that is configured as Envoy Gateway configures it. */
import { describe, expect, test } from '@jest/globals';
import { startEnvoyWith } from '../support/envoy/envoy.js';
import { startUpstream } from '../support/envoy/stack.js';
import {
  ALWAYS,
  DOMAIN,
  GatewayPod,
  NODE,
  PROMETHEUS,
  ROUTE,
  rules,
} from '../support/image/envoy-gateway.js';
import { freePorts } from '../support/process/free-port.js';
import { headersLike, httpRequest } from '../support/process/http-client.js';
import { optionalToolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';

const V3 = 'type.googleapis.com/envoy.extensions';

/**
 * Returns the listener, route and cluster fields for rate limits as the translator of Envoy Gateway writes them, with
 * certificates from files.
 */
function bootstrap(
  pod: GatewayPod,
  at: Record<'port' | 'adminPort' | 'upstreamPort' | 'grpcPort', number>,
): string {
  const address = (port: number) => ({ socket_address: { address: '127.0.0.1', port_value: port } });
  const endpoints = (cluster: string, port: number) => ({
    cluster_name: cluster,
    endpoints: [{ lb_endpoints: [{ endpoint: { address: address(port) } }] }],
  });
  const manager = {
    '@type': `${V3}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'http',
    route_config: {
      virtual_hosts: [
        {
          name: 'eg/http/*',
          domains: ['*'],
          routes: [
            {
              match: { prefix: '/' },
              route: { cluster: 'backend' },
              typed_per_filter_config: {
                'envoy.filters.http.ratelimit': {
                  '@type': `${V3}.filters.http.ratelimit.v3.RateLimitPerRoute`,
                  domain: DOMAIN,
                  rate_limits: [
                    {
                      actions: [
                        { generic_key: { descriptor_key: ROUTE, descriptor_value: ROUTE } },
                        { request_headers: { header_name: 'x-user-id', descriptor_key: 'rule-0-match-0' } },
                      ],
                    },
                  ],
                },
              },
            },
          ],
        },
      ],
    },
    http_filters: [
      {
        name: 'envoy.filters.http.ratelimit',
        typed_config: {
          '@type': `${V3}.filters.http.ratelimit.v3.RateLimit`,
          domain: DOMAIN,
          disable_x_envoy_ratelimited_header: true,
          enable_x_ratelimit_headers: 'DRAFT_VERSION_03',
          // The timeout is long enough for a busy machine, and no request passes without a decision.
          timeout: '10s',
          failure_mode_deny: true,
          rate_limit_service: {
            transport_api_version: 'V3',
            grpc_service: { envoy_grpc: { cluster_name: 'ratelimit_cluster' } },
          },
        },
      },
      {
        name: 'envoy.filters.http.router',
        typed_config: { '@type': `${V3}.filters.http.router.v3.Router` },
      },
    ],
  };
  const ratelimit = {
    name: 'ratelimit_cluster',
    type: 'STATIC',
    connect_timeout: '10s',
    load_assignment: endpoints('ratelimit_cluster', at.grpcPort),
    // Envoy Gateway sets neither ALPN nor a health check here.
    transport_socket: {
      name: 'envoy.transport_sockets.tls',
      typed_config: {
        '@type': `${V3}.transport_sockets.tls.v3.UpstreamTlsContext`,
        common_tls_context: {
          tls_certificates: [
            { certificate_chain: { filename: pod.certs.cert }, private_key: { filename: pod.certs.key } },
          ],
          tls_params: { tls_maximum_protocol_version: 'TLSv1_3' },
          validation_context: { trusted_ca: { filename: pod.certs.ca } },
        },
      },
    },
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': `${V3}.upstreams.http.v3.HttpProtocolOptions`,
        explicit_http_config: {
          http2_protocol_options: {
            initial_connection_window_size: 1_048_576,
            initial_stream_window_size: 65_536,
          },
        },
      },
    },
  };
  const filters = [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }];
  return JSON.stringify({
    admin: { address: address(at.adminPort) },
    static_resources: {
      listeners: [{ name: 'eg/http', address: address(at.port), filter_chains: [{ filters }] }],
      clusters: [
        ratelimit,
        { name: 'backend', type: 'STATIC', load_assignment: endpoints('backend', at.upstreamPort) },
      ],
    },
  });
}

const describeXds = optionalToolPath('xds-server') === undefined ? describe.skip : describe;

describeXds('Envoy Gateway with the image of weir', () => {
  test("enforces the limits of a BackendTrafficPolicy, with Envoy's headers, once each", async () => {
    const pod = new GatewayPod();
    const redis = await startRedis();
    const upstream = await startUpstream();
    const [port = 0, adminPort = 0, xdsPort = 0, metricsPort = 0] = await freePorts(4);
    const management = await pod.startManagement(xdsPort);
    await management.setSnapshot('1', [rules(3)], NODE);
    const service = await pod.start(
      { ...ALWAYS, ...PROMETHEUS },
      { xdsPort, redisPort: redis.port },
      { PROMETHEUS_ADDR: `:${metricsPort}` },
    );
    const { grpcPort } = service;
    await startEnvoyWith(
      bootstrap(pod, { port, adminPort, upstreamPort: upstream.port, grpcPort }),
      adminPort,
    );

    const get = (user: string) => httpRequest(port, '/', { headers: { 'x-user-id': user } });
    const first = await waitFor('the rules', async () => {
      const answer = await get('alice');
      return headersLike(answer, 'x-ratelimit-limit').length > 0 ? answer : undefined;
    });
    expect(first.status).toBe(200);
    expect(headersLike(first, 'x-ratelimit')).toHaveLength(3);
    expect(headersLike(first, 'x-ratelimit').join()).toContain('3, 3;w=3600');
    expect([(await get('alice')).status, (await get('alice')).status]).toEqual([200, 200]);
    expect((await get('alice')).status).toBe(429);
    expect((await get('bob')).status).toBe(200);
  });
});
