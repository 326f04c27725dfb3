/*
 * Envoy Gateway runs its rate limit service as this test does: command, variables, certificates and probes are those that its source sets
 * (internal/infrastructure/kubernetes/ratelimit/resource.go, August 2026). Only addresses and folders are others.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { CODE, type RateLimitResponse } from '../../../src/codec/messages.js';
import { createReferenceCodec } from '../../../src/codec/reference-codec.js';
import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import { readSettings } from '../../../src/server/settings.js';
import { CertificateAuthority } from '../../support/certificates.js';
import { descriptor } from '../../support/decider.js';
import { freePorts } from '../../support/free-port.js';
import { RawClient } from '../../support/grpc-client.js';
import { httpRequest } from '../../support/http-client.js';
import { standInPrograms } from '../../support/image-programs.js';
import { type RatelimitServer, startRatelimit } from '../../support/ratelimit.js';
import { type RedisServer, startRedis } from '../../support/redis-server.js';
import { TempDir } from '../../support/temp-dir.js';
import { optionalToolPath, repositoryRoot } from '../../support/tools.js';
import { waitFor } from '../../support/wait-for.js';
import { startXdsServer, type XdsServer } from '../../support/xds-server.js';

/** What every deployment of Envoy Gateway has. */
const ALWAYS = {
  RUNTIME_ROOT: '/data',
  RUNTIME_SUBDIRECTORY: 'ratelimit',
  RUNTIME_IGNOREDOTFILES: 'true',
  RUNTIME_WATCH_ROOT: 'false',
  LOG_LEVEL: 'info',
  USE_STATSD: 'false',
  CONFIG_TYPE: 'GRPC_XDS_SOTW',
  CONFIG_GRPC_XDS_SERVER_URL: 'envoy-gateway:18001',
  CONFIG_GRPC_XDS_NODE_ID: 'envoy-ratelimit',
  GRPC_SERVER_USE_TLS: 'true',
  GRPC_SERVER_TLS_CERT: '/certs/tls.crt',
  GRPC_SERVER_TLS_KEY: '/certs/tls.key',
  GRPC_SERVER_TLS_CA_CERT: '/certs/ca.crt',
  CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
  CONFIG_GRPC_XDS_CLIENT_TLS_CERT: '/certs/tls.crt',
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY: '/certs/tls.key',
  CONFIG_GRPC_XDS_SERVER_TLS_CACERT: '/certs/ca.crt',
  FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
  REDIS_SOCKET_TYPE: 'tcp',
  REDIS_URL: 'redis.redis.svc:6379',
};
/** Unless its telemetry is turned off. The file comes from a ConfigMap that may come later. */
const PROMETHEUS = {
  USE_PROMETHEUS: 'true',
  PROMETHEUS_ADDR: ':19001',
  PROMETHEUS_MAPPER_YAML: '/etc/statsd-exporter/conf.yaml',
};
const REDIS_TLS = {
  REDIS_TLS: 'true',
  REDIS_TLS_CLIENT_CERT: '/redis-certs/tls.crt',
  REDIS_TLS_CLIENT_KEY: '/redis-certs/tls.key',
};
const TRACING = {
  TRACING_ENABLED: 'true',
  TRACING_SERVICE_NAME: 'envoy-ratelimit',
  TRACING_SERVICE_NAMESPACE: 'envoy-gateway-system',
  TRACING_SERVICE_INSTANCE_ID: 'envoy-ratelimit-0',
  TRACING_SAMPLING_RATE: '1.0',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'http://trace-collector.envoy-gateway-system.svc.cluster.local:4318',
};
const PROBE = { path: '/healthcheck', port: 8080, timeoutMs: 1000 };
const GRPC_PORT = 8081;

/** What the mapping that Envoy Gateway creates as conf.yaml does with one statistic. */
const MAPPING = `mappings:
  - match: 'ratelimit\\.service\\.rate_limit\\.([^\\.]*)\\.([^\\.]*)\\.([^\\.]*)(\\..*)?\\.over_limit'
    match_type: regex
    name: ratelimit_service_rate_limit_over_limit
    timer_type: histogram
    labels: { domain: $1, key1: $2, key2: $3 }
`;

describe('the variables', () => {
  test('are taken, and mean the ports that Envoy Gateway expects', () => {
    const read = readSettings({ ...ALWAYS, ...PROMETHEUS, ...REDIS_TLS });
    expect(read).toMatchObject({ ok: true, settings: { grpcPort: GRPC_PORT, port: PROBE.port } });
  });

  test('of tracing are refused, with a sentence: deploy/envoy-gateway leaves it out', () => {
    const read = readSettings({ ...ALWAYS, ...TRACING });
    expect(read).toEqual({
      ok: false,
      errors: [expect.stringContaining('TRACING_ENABLED: weir has no tracing yet')],
    });
  });
});

describe('deploy/envoy-gateway/envoy-gateway.yaml', () => {
  const { data, metadata } = parse(
    readFileSync(join(repositoryRoot, 'deploy/envoy-gateway/envoy-gateway.yaml'), 'utf8'),
  );
  const gateway = parse(data['envoy-gateway.yaml']);

  test('is where Envoy Gateway looks, and names the image of weir', () => {
    expect(metadata).toEqual({ name: 'envoy-gateway-config', namespace: 'envoy-gateway-system' });
    expect(gateway).toMatchObject({
      apiVersion: 'gateway.envoyproxy.io/v1alpha1',
      kind: 'EnvoyGateway',
      gateway: { controllerName: 'gateway.envoyproxy.io/gatewayclass-controller' },
      provider: {
        type: 'Kubernetes',
        kubernetes: { rateLimitDeployment: { container: { image: 'weir:0.1.0' } } },
      },
      rateLimit: { backend: { type: 'Redis', redis: { url: expect.stringMatching(/:6379$/) } } },
    });
  });

  test('asks for no tracing', () => expect(gateway.rateLimit).not.toHaveProperty('telemetry'));
});

const describeXds = optionalToolPath('xds-server') === undefined ? describe.skip : describe;

describeXds('the service as Envoy Gateway runs it', () => {
  const root = new TempDir();
  const bin = standInPrograms(root.path);
  const authority = new CertificateAuthority('envoy-gateway');
  const codec = createReferenceCodec();
  let redis: RedisServer;
  let server: RatelimitServer | undefined;
  let management: XdsServer | undefined;

  beforeAll(async () => {
    redis = await startRedis();
    const own = authority.issue('DNS:localhost,DNS:envoy-ratelimit,DNS:*.envoy-gateway-system');
    root.write('certs/ca.crt', authority.cert);
    root.write('certs/tls.crt', own.cert);
    root.write('certs/tls.key', own.key);
    const gateway = authority.issue('DNS:localhost,DNS:envoy-gateway');
    root.write('gateway/tls.crt', gateway.cert);
    root.write('gateway/tls.key', gateway.key);
    root.write('etc/statsd-exporter/conf.yaml', MAPPING);
  });
  afterEach(async () => {
    await server?.process.stop('SIGKILL');
    await management?.stop();
  });
  afterAll(async () => {
    await redis.stop();
    root.remove();
  });

  /** Folders inside the root's stand-in, and the addresses of what runs here. */
  function here(variables: Readonly<Record<string, string>>, xdsPort: number): Record<string, string> {
    const moved = Object.entries(variables).map(([name, value]) => [
      name,
      /^\/(certs|data|etc)\b/.test(value) ? root.join(value) : value,
    ]);
    return {
      ...Object.fromEntries(moved),
      CONFIG_GRPC_XDS_SERVER_URL: `localhost:${xdsPort}`,
      REDIS_URL: `127.0.0.1:${redis.port}`,
    };
  }

  const startManagement = (port: number) =>
    startXdsServer({
      port,
      tls: {
        cert: root.join('gateway/tls.crt'),
        key: root.join('gateway/tls.key'),
        clientCa: root.join('certs/ca.crt'),
      },
    });

  /** As a BackendTrafficPolicy of two requests an hour for each client becomes one. */
  const rules = (requests: number) => ({
    json: {
      name: 'eg/http',
      domain: 'eg/http',
      descriptors: [
        {
          key: 'httproute/default/backend/rule/0/match/0/*',
          value: 'httproute/default/backend/rule/0/match/0/*',
          descriptors: [{ key: 'rule-0-match-0', rateLimit: { requestsPerUnit: requests, unit: 'HOUR' } }],
        },
      ],
    },
  });

  async function ask(client: string): Promise<RateLimitResponse | undefined> {
    const channel = new RawClient(
      `127.0.0.1:${server?.grpcPort}`,
      credentials.createSsl(
        Buffer.from(authority.cert),
        readFileSync(root.join('certs/tls.key')),
        readFileSync(root.join('certs/tls.crt')),
      ),
    );
    const route = 'httproute/default/backend/rule/0/match/0/*';
    const message = codec.encodeRequest({
      domain: 'eg/http',
      descriptors: [descriptor([`${route}=${route}`, `rule-0-match-0=${client}`])],
      hitsAddend: 0,
    });
    try {
      const reply = await channel.unary(SHOULD_RATE_LIMIT_PATH, message, { timeoutMs: 5000 });
      return 'message' in reply ? codec.decodeResponse(reply.message) : undefined;
    } finally {
      channel.close();
    }
  }

  const probe = (port: number) => httpRequest(port, PROBE.path);

  test('starts before Envoy Gateway does, then enforces what it sends, and shows its metrics', async () => {
    const [xdsPort = 0, metricsPort = 0] = await freePorts(2);
    server = await startRatelimit(join(bin, 'ratelimit'), {
      ...here({ ...ALWAYS, ...PROMETHEUS }, xdsPort),
      PROMETHEUS_ADDR: `:${metricsPort}`,
      // Envoy Gateway is back within seconds; this test should be, too.
      XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
      XDS_CLIENT_BACKOFF_MAX_INTERVAL: '400ms',
    });
    expect(await probe(server.httpPort)).toMatchObject({ status: 200, body: 'OK' });
    expect(await ask('alice')).toBeUndefined();

    management = await startManagement(xdsPort);
    await management.setSnapshot('1', [rules(2)], 'envoy-ratelimit');
    await waitFor('the rules', async () => ((await ask('nobody')) === undefined ? undefined : true));
    expect(await ask('alice')).toMatchObject({
      overallCode: CODE.OK,
      statuses: [{ currentLimit: { requestsPerUnit: 2 }, limitRemaining: 1 }],
      responseHeadersToAdd: [],
    });
    await ask('alice');
    expect(await ask('alice')).toMatchObject({ overallCode: CODE.OVER_LIMIT });
    expect(await ask('bob')).toMatchObject({ overallCode: CODE.OK });

    await management.setSnapshot('2', [rules(5)], 'envoy-ratelimit');
    await waitFor('the change', async () =>
      (await ask('alice'))?.overallCode === CODE.OK ? true : undefined,
    );
    const { status, body } = await httpRequest(metricsPort, '/metrics');
    expect(status).toBe(200);
    expect(body).toMatch(
      /^ratelimit_service_rate_limit_over_limit\{domain="eg\/http",key1="httproute.*",key2="rule-0-match-0"\} \d+$/m,
    );
    expect(await probe(server.httpPort)).toMatchObject({ status: 200 });
    expect(await server.process.stop()).toEqual({ code: 0, signal: null });
  }, 60_000);

  test('starts without Prometheus, and without the optional mapping', async () => {
    const [xdsPort = 0, metricsPort = 0] = await freePorts(2);
    management = await startManagement(xdsPort);
    await management.setSnapshot('1', [rules(1)], 'envoy-ratelimit');
    const untilRules = () =>
      waitFor('the rules', async () => ((await ask('carol')) === undefined ? undefined : true));
    server = await startRatelimit(join(bin, 'ratelimit'), here(ALWAYS, xdsPort));
    await untilRules();
    await server.process.stop();

    server = await startRatelimit(join(bin, 'ratelimit'), {
      ...here({ ...ALWAYS, ...PROMETHEUS }, xdsPort),
      PROMETHEUS_ADDR: `:${metricsPort}`,
      PROMETHEUS_MAPPER_YAML: root.join('etc/nowhere/conf.yaml'),
    });
    await untilRules();
    expect(server.process.lines().join('\n')).toContain('conf.yaml does not exist');
    const { body } = await httpRequest(metricsPort, '/metrics');
    expect(body).toContain('ratelimit_service_rate_limit_total_hits{domain="eg/http"');
  }, 60_000);
});
