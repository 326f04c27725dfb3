/* Tests the effect of the reference's variables on answers, health and the debug port, from outside. */
import { rmSync } from 'node:fs';
import { Client, credentials, type ServiceError } from '@grpc/grpc-js';
import type { MethodDefinition } from '@grpc/proto-loader';
import { describe, expect, test } from '@jest/globals';
import { service } from 'grpc-health-check';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - { key: none, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: ten, rate_limit: { unit: second, requests_per_unit: 10 } }
`;
const one = (key: string) => descriptor([`${key}=x`]);

const start = (env: NodeJS.ProcessEnv, policy?: string): Promise<WeirServer> =>
  startWeir({ env, untilHealthy: policy !== undefined, ...(policy && { policy }) });
const clientOf = ({ grpcPort }: WeirServer): RlsClient => new RlsClient(grpcPort);

test('LIMIT_REQUEST_HEADERS_ENABLED adds upstream headers, by gRPC and as JSON', async () => {
  const env = { LIMIT_REQUEST_HEADERS_ENABLED: 'true', LIMIT_REQUEST_RESET_HEADER: 'X-Reset' };
  const server = await start(env, POLICY);
  const { response } = await clientOf(server).ask('d', [one('ten')]);
  const expected = [
    { key: 'RateLimit-Limit', value: '10' },
    { key: 'RateLimit-Remaining', value: expect.stringMatching(/^[89]$/) },
    { key: 'X-Reset', value: '1' },
  ];
  expect(response?.requestHeadersToAdd).toEqual(expected);
  expect(response?.responseHeadersToAdd).toEqual([]);
  const body = JSON.stringify({ domain: 'd', descriptors: [{ entries: [{ key: 'ten', value: 'x' }] }] });
  const json = await httpRequest(server.httpPort, '/json', { method: 'POST', body });
  expect(JSON.parse(json.body)).toMatchObject({ requestHeadersToAdd: expected });
});

describe('HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED', () => {
  const check = service['Check'] as unknown as MethodDefinition<object, { readonly status: string }>;

  /** Returns the gRPC health of every name. */
  async function grpcHealth(server: WeirServer): Promise<unknown[]> {
    const client = new Client(`127.0.0.1:${server.grpcPort}`, credentials.createInsecure());
    const ask = (name: string) =>
      new Promise((resolve) => {
        client.makeUnaryRequest(
          check.path,
          check.requestSerialize,
          check.responseDeserialize,
          { service: name },
          (error: ServiceError | null, answer) => resolve(error?.code ?? answer?.status),
        );
      });
    try {
      const names = ['', 'ratelimit', 'envoy.service.ratelimit.v3.RateLimitService'];
      return await Promise.all(names.map(ask));
    } finally {
      client.close();
    }
  }

  test('reflects whether a domain is in effect, in every health check', async () => {
    const folder = new TempDir();
    const server = await start({ CONFIG_PATH: folder.path, HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: 'true' });
    const healthcheck = () => httpRequest(server.httpPort, '/healthcheck');
    const untilStatus = (status: number) =>
      waitFor(`health ${status}`, async () => (await healthcheck()).status === status || undefined);
    await untilStatus(500);
    expect((await healthcheck()).body).toMatch(/no policy with a domain/);
    await waitFor('gRPC', async () => !(await grpcHealth(server)).includes(STATUS.UNAVAILABLE) || undefined);
    expect(await grpcHealth(server)).toEqual(['NOT_SERVING', 'NOT_SERVING', 'NOT_SERVING']);

    folder.write('d.yaml', POLICY);
    await untilStatus(200);
    expect((await healthcheck()).body).toBe('OK');
    expect(await grpcHealth(server)).toEqual(['SERVING', 'SERVING', 'SERVING']);

    rmSync(folder.join('d.yaml'));
    await untilStatus(500);
    expect(await grpcHealth(server)).toEqual(['NOT_SERVING', 'NOT_SERVING', 'NOT_SERVING']);
  });
});

describe('HTTP', () => {
  test('detailed health names each domain, and the debug port lists its content, sorted', async () => {
    const server = await start({}, POLICY);
    const health = await httpRequest(server.httpPort, '/healthcheck?detail');
    expect([health.status, JSON.parse(health.body).policy]).toMatchObject([
      200,
      { lastReload: 'ok', errors: [], domains: [{ domain: 'd', state: 'ok', phase: 'active' }] },
    ]);
    const get = (path: string) => httpRequest(server.debugPort, path);
    expect((await get('/rlconfig?format=xml')).status).toBe(400);
    const list = await get('/');
    expect(list.status).toBe(200);
    const paths = list.body.trimEnd().split('\n');
    expect(paths).toEqual([...paths].sort());
    expect(list.body).toMatch(/^\/rlconfig: \S/m);
    const unknown = await get('/nothing');
    expect([unknown.status, unknown.body]).toEqual([404, expect.stringContaining(list.body)]);
    const pprof = await get('/debug/pprof/profile?seconds=1');
    expect([pprof.status, pprof.body]).toEqual([404, expect.stringMatching(/--cpu-prof/)]);
  });
});
