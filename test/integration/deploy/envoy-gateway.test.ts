/*
 * Runs the rate limit service as Envoy Gateway does (see test/support/image/envoy-gateway.ts). Only addresses and
 * folders differ.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { createClientCodec } from '../../../src/codec/client-codec.js';
import { CODE, type RateLimitResponse } from '../../../src/codec/messages.js';
import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import { readSettings } from '../../../src/server/settings/read-settings.js';
import { RawClient } from '../../support/grpc/grpc-client.js';
import {
  ALWAYS,
  DOMAIN,
  GatewayPod,
  GRPC_PORT,
  NODE,
  PROBE,
  PROMETHEUS,
  REDIS_TLS,
  ROUTE,
  rules,
  TRACING,
} from '../../support/image/envoy-gateway.js';
import { descriptor } from '../../support/policy/decider.js';
import { freePorts } from '../../support/process/free-port.js';
import { httpRequest } from '../../support/process/http-client.js';
import { optionalToolPath, repositoryRoot } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import type { RatelimitServer } from '../../support/reference/ratelimit.js';
import type { XdsServer } from '../../support/xds/xds-server.js';

describe('the variables', () => {
  test('are accepted, and set the ports that Envoy Gateway expects', () => {
    const read = readSettings({ ...ALWAYS, ...PROMETHEUS, ...REDIS_TLS });
    expect(read).toMatchObject({ ok: true, settings: { grpcPort: GRPC_PORT, port: PROBE.port } });
  });

  test('for tracing are accepted', () => {
    const read = readSettings({ ...ALWAYS, ...TRACING });
    expect(read).toMatchObject({
      ok: true,
      settings: { tracingEnabled: true, tracingServiceName: 'envoy-ratelimit', tracingSamplingRate: 1 },
    });
  });
});

describe('deploy/envoy-gateway/envoy-gateway.yaml', () => {
  const { data, metadata } = parse(
    readFileSync(join(repositoryRoot, 'deploy/envoy-gateway/envoy-gateway.yaml'), 'utf8'),
  );
  const gateway = parse(data['envoy-gateway.yaml']);

  test('is in the place that Envoy Gateway reads, and names the image of weir', () => {
    expect(metadata).toEqual({ name: 'envoy-gateway-config', namespace: 'envoy-gateway-system' });
    expect(gateway).toMatchObject({
      apiVersion: 'gateway.envoyproxy.io/v1alpha1',
      kind: 'EnvoyGateway',
      gateway: { controllerName: 'gateway.envoyproxy.io/gatewayclass-controller' },
      provider: {
        type: 'Kubernetes',
        kubernetes: { rateLimitDeployment: { container: { image: 'weir:1.0.0-rc.1' } } },
      },
      rateLimit: { backend: { type: 'Redis', redis: { url: expect.stringMatching(/:6379$/) } } },
    });
  });
});

const describeXds = optionalToolPath('xds-server') === undefined ? describe.skip : describe;

describeXds('the service as Envoy Gateway runs it', () => {
  const pod = new GatewayPod();
  const codec = createClientCodec();
  let redis: RedisServer;
  let server: RatelimitServer | undefined;
  let management: XdsServer | undefined;

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterEach(async () => {
    await server?.process.stop('SIGKILL');
    await management?.stop();
  });
  afterAll(() => {
    pod.root.remove();
  });

  async function ask(client: string): Promise<RateLimitResponse | undefined> {
    const channel = new RawClient(
      `127.0.0.1:${server?.grpcPort}`,
      credentials.createSsl(
        Buffer.from(pod.authority.cert),
        readFileSync(pod.certs.key),
        readFileSync(pod.certs.cert),
      ),
    );
    const message = codec.encodeRequest({
      domain: DOMAIN,
      descriptors: [descriptor([`${ROUTE}=${ROUTE}`, `rule-0-match-0=${client}`])],
      hitsAddend: 0,
    });
    const reply = await channel.unary(SHOULD_RATE_LIMIT_PATH, message, { timeoutMs: 5000 });
    return 'message' in reply ? codec.decodeResponse(reply.message) : undefined;
  }

  const probe = (port: number) => httpRequest(port, PROBE.path);

  test('starts before Envoy Gateway does, then enforces its configuration, and shows its metrics', async () => {
    const [xdsPort = 0, metricsPort = 0] = await freePorts(2);
    server = await pod.start(
      { ...ALWAYS, ...PROMETHEUS },
      { xdsPort, redisPort: redis.port },
      { PROMETHEUS_ADDR: `:${metricsPort}` },
    );
    expect(await probe(server.httpPort)).toMatchObject({ status: 200, body: 'OK' });
    expect(await ask('alice')).toBeUndefined();

    management = await pod.startManagement(xdsPort);
    await management.setSnapshot('1', [rules(2)], NODE);
    await waitFor('the rules', async () => ((await ask('nobody')) === undefined ? undefined : true));
    expect(await ask('alice')).toMatchObject({
      overallCode: CODE.OK,
      statuses: [{ currentLimit: { requestsPerUnit: 2 }, limitRemaining: 1 }],
      responseHeadersToAdd: [],
    });
    await ask('alice');
    expect(await ask('alice')).toMatchObject({ overallCode: CODE.OVER_LIMIT });
    expect(await ask('bob')).toMatchObject({ overallCode: CODE.OK });

    await management.setSnapshot('2', [rules(5)], NODE);
    await waitFor('the change', async () =>
      (await ask('nobody'))?.statuses[0]?.currentLimit?.requestsPerUnit === 5 ? true : undefined,
    );
    expect(await ask('alice')).toMatchObject({ overallCode: CODE.OK });
    const { status, body } = await httpRequest(metricsPort, '/metrics');
    expect(status).toBe(200);
    expect(body).toMatch(
      /^ratelimit_service_rate_limit_over_limit\{domain="eg\/http",key1="httproute.*",key2="rule-0-match-0"\} \d+$/m,
    );
    expect(await probe(server.httpPort)).toMatchObject({ status: 200 });
    expect(await server.process.stop()).toEqual({ code: 0, signal: null });
  });

  test('starts without Prometheus, and without the optional mapping', async () => {
    const [xdsPort = 0, metricsPort = 0] = await freePorts(2);
    management = await pod.startManagement(xdsPort);
    await management.setSnapshot('1', [rules(1)], NODE);
    const untilRules = () =>
      waitFor('the rules', async () => ((await ask('carol')) === undefined ? undefined : true));
    server = await pod.start(ALWAYS, { xdsPort, redisPort: redis.port });
    await untilRules();
    await server.process.stop();

    server = await pod.start(
      { ...ALWAYS, ...PROMETHEUS },
      { xdsPort, redisPort: redis.port },
      { PROMETHEUS_ADDR: `:${metricsPort}`, PROMETHEUS_MAPPER_YAML: pod.path('/etc/nowhere/conf.yaml') },
    );
    await untilRules();
    expect(server.process.lines().join('\n')).toContain('conf.yaml does not exist');
    const { body } = await httpRequest(metricsPort, '/metrics');
    expect(body).toContain('ratelimit_service_rate_limit_total_hits{domain="eg/http"');
  });
});
