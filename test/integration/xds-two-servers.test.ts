/*
 * Tests weir with two management servers: one like Envoy Gateway's and one like Envoy AI Gateway's. These servers use
 * go-control-plane, like both gateways. The resources are those that the gateways create.
 */
import { describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { openXdsPolicies } from '../../src/server/policies/xds-policies.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { openPoliciesOf } from '../support/policy/open-policies.js';
import { closeLater } from '../support/process/close-later.js';
import { httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { optionalToolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { CertificateAuthority } from '../support/tls/certificates.js';
import type { WeirServer } from '../support/weir/weir.js';
import {
  acknowledges,
  limitOf,
  logged,
  startXdsWeir,
  untilLogged,
  untilRequest,
  untilServing,
  windowConfig,
} from '../support/weir/xds-weir.js';
import {
  AI_NODE,
  GATEWAY_NODE,
  GATEWAY_RESOURCE,
  QUOTA_DOMAIN,
  quotas,
} from '../support/xds/gateway-resources.js';
import { startXdsServer, type XdsResource, type XdsServer } from '../support/xds/xds-server.js';

const describeXds = optionalToolPath('xds-server') === undefined ? describe.skip : describe;

function settingsOf(gateway: XdsServer, ai: XdsServer): NodeJS.ProcessEnv {
  return {
    CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${gateway.port},127.0.0.1:${ai.port}`,
    CONFIG_GRPC_XDS_NODE_ID: `${GATEWAY_NODE},${AI_NODE}`,
  };
}

/** Starts a server with a snapshot for one node. */
async function serverOf(node: string, resources: XdsResource[]): Promise<XdsServer> {
  const server = await startXdsServer();
  await server.setSnapshot('1', resources, node);
  return server;
}

/** Returns the codes of equal requests, each with the given descriptors. */
async function codesOf(
  weir: WeirServer,
  count: number,
  domain: string,
  ...asked: (readonly string[])[]
): Promise<number[]> {
  const client = new RlsClient(weir.grpcPort);
  const codes: number[] = [];
  for (let i = 0; i < count; i++) {
    const { response } = await client.ask(
      domain,
      asked.map((entries) => descriptor(entries)),
    );
    codes.push(response?.overallCode ?? -1);
  }
  return codes;
}

const GPT = ['backend_name=default/openai', 'model_name_override=gpt-4'];
const { OK, OVER_LIMIT } = CODE;

describeXds('two management servers', () => {
  test('each sends its own domains, and an update of one leaves the other unchanged', async () => {
    const gateway = await serverOf(GATEWAY_NODE, [GATEWAY_RESOURCE]);
    const ai = await serverOf(AI_NODE, [quotas(2)]);
    const weir = await startXdsWeir(gateway.port, settingsOf(gateway, ai));
    await untilServing(weir);
    const route = 'httproute/default/backend/rule/0/match/0/*';
    expect(await codesOf(weir, 4, 'default/eg/http', [`${route}=${route}`, 'rule-0-match-0=ann'])).toEqual([
      OK,
      OK,
      OK,
      OVER_LIMIT,
    ]);
    expect(await codesOf(weir, 3, QUOTA_DOMAIN, GPT)).toEqual([OK, OK, OVER_LIMIT]);

    await ai.setSnapshot('2', [quotas(4)], AI_NODE);
    await untilRequest(ai, 'the ACK', acknowledges('2'));
    expect(await codesOf(weir, 2, QUOTA_DOMAIN, GPT)).toEqual([OK, OVER_LIMIT]);
    expect(await codesOf(weir, 1, 'default/eg/http', [`${route}=${route}`, 'rule-0-match-0=ann'])).toEqual([
      OVER_LIMIT,
    ]);

    await gateway.setSnapshot('2', [], GATEWAY_NODE);
    await untilRequest(gateway, 'the ACK', acknowledges('2'));
    const detail = JSON.parse((await httpRequest(weir.httpPort, '/healthcheck?detail')).body);
    expect(JSON.stringify(detail)).not.toContain('default/eg/http');
    expect(await codesOf(weir, 1, QUOTA_DOMAIN, GPT)).toEqual([OVER_LIMIT]);
  });

  test('an invalid update of one is rejected there, and the other one still changes', async () => {
    const gateway = await serverOf(GATEWAY_NODE, [windowConfig('one', 3)]);
    const ai = await serverOf(AI_NODE, [windowConfig('two', 4)]);
    const weir = await startXdsWeir(gateway.port, settingsOf(gateway, ai));
    await untilServing(weir);
    await ai.setSnapshot('2', [windowConfig('', 4)], AI_NODE);
    await untilRequest(ai, 'the NACK', ({ error }) => error !== undefined);
    await gateway.setSnapshot('2', [windowConfig('one', 5)], GATEWAY_NODE);
    await untilRequest(gateway, 'the ACK', acknowledges('2'));
    expect([await limitOf(weir, 'one'), await limitOf(weir, 'two')]).toEqual([5, 4]);
    expect((await gateway.requests()).filter(({ error }) => error !== undefined)).toEqual([]);
    const detail = JSON.parse((await httpRequest(weir.httpPort, '/healthcheck?detail')).body);
    expect(detail.policy).toMatchObject({
      domains: [
        { domain: 'one', state: 'ok' },
        { domain: 'two', state: 'kept' },
      ],
      errors: [{ file: '-config', path: 'domain' }],
    });
  });

  test('if both have a domain, the first one decides it, and the log says so once', async () => {
    const gateway = await serverOf(GATEWAY_NODE, [windowConfig('one', 3)]);
    const ai = await serverOf(AI_NODE, [windowConfig('one', 4), windowConfig('two', 5)]);
    const weir = await startXdsWeir(gateway.port, settingsOf(gateway, ai));
    await untilServing(weir);
    expect([await limitOf(weir, 'one'), await limitOf(weir, 'two')]).toEqual([3, 5]);
    const message =
      `one-config: the domain "one" of 127.0.0.1:${ai.port} has no effect, because 127.0.0.1:${gateway.port} has it, ` +
      'too; remove it from one of the two management servers';
    await ai.setSnapshot('2', [windowConfig('one', 4), windowConfig('two', 6)], AI_NODE);
    await untilRequest(ai, 'the ACK', acknowledges('2'));
    expect(logged(weir, message)).toHaveLength(1);
    expect((await httpRequest(weir.httpPort, '/healthcheck?detail')).body).toContain('has no effect');

    await gateway.setSnapshot('2', [], GATEWAY_NODE);
    await untilRequest(gateway, 'the ACK', acknowledges('2'));
    expect(await limitOf(weir, 'one')).toBe(4);
    expect((await httpRequest(weir.httpPort, '/healthcheck?detail')).body).not.toContain('has no effect');
  });

  test('weir starts without a server that sends nothing, as Envoy AI Gateway does without QuotaPolicies', async () => {
    const gateway = await serverOf(GATEWAY_NODE, [windowConfig('one', 3)]);
    const ai = await startXdsServer();
    const env = {
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '0',
      ...settingsOf(gateway, ai),
    };
    const policies = await openPoliciesOf(env, (settings, log, stopping) =>
      openXdsPolicies(settings, log, stopping, 1),
    );
    closeLater(policies, ({ provider }) => provider.close());
    expect(policies.limitOf('one')).toBe(3);
    await untilLogged(
      policies,
      'weir starts without a configuration from this management server; until it sends one, weir allows all requests ' +
        'to its domains',
    );
    await ai.setSnapshot('1', [windowConfig('two', 4)], AI_NODE);
    await waitFor('the second domain', () => policies.limitOf('two') === 4);
    expect(policies.limitOf('one')).toBe(3);
  });

  test('each gets only its own headers', async () => {
    const gateway = await serverOf(GATEWAY_NODE, [windowConfig('one', 3)]);
    const ai = await serverOf(AI_NODE, [windowConfig('two', 4)]);
    const headers = [
      `127.0.0.1:${gateway.port}/authorization:Bearer one`,
      `127.0.0.1:${ai.port}/x-team:limits`,
    ];
    const weir = await startXdsWeir(gateway.port, {
      ...settingsOf(gateway, ai),
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: headers.join(),
    });
    await untilServing(weir);
    const [first] = await gateway.requests();
    expect(first?.headers).toMatchObject({ authorization: 'Bearer one' });
    expect(first?.headers).not.toHaveProperty('x-team');
    const [other] = await ai.requests();
    expect(other?.headers).toMatchObject({ 'x-team': 'limits' });
    expect(other?.headers).not.toHaveProperty('authorization');
  });

  test('one uses TLS with certificates, and the other one plain text', async () => {
    const folder = new TempDir();
    const authority = new CertificateAuthority();
    const { cert, key } = authority.issue('IP:127.0.0.1');
    const tls = { cert: folder.write('cert.pem', cert), key: folder.write('key.pem', key) };
    const gateway = await startXdsServer({ tls });
    await gateway.setSnapshot('1', [windowConfig('one', 3)], GATEWAY_NODE);
    const ai = await serverOf(AI_NODE, [windowConfig('two', 4)]);
    const weir = await startXdsWeir(gateway.port, {
      ...settingsOf(gateway, ai),
      CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true,false',
      CONFIG_GRPC_XDS_SERVER_TLS_CACERT: folder.write('ca.pem', authority.cert),
    });
    await untilServing(weir);
    expect([await limitOf(weir, 'one'), await limitOf(weir, 'two')]).toEqual([3, 4]);
  });
});
