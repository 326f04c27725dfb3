/*
 * Tests weir as the rate limit service for the QuotaPolicies of Envoy AI Gateway, with a real Envoy. The rate limit
 * filter and the routes are those that the extension server of Envoy AI Gateway writes. The policies come from two
 * management servers, one like Envoy AI Gateway's and one like Envoy Gateway's.
 *
 * Envoy AI Gateway's own ext_proc filter is not available here. Lua filters replace it, and set the same dynamic
 * metadata (io.envoy.ai_gateway): the backend and the model of a request, and the tokens in the body of its response.
 * For quota-aware routing, a second one selects the first backend with room, as the proposal of Envoy AI Gateway
 * describes.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { fromHeader, generic, type RouteEnvoy, startRouteEnvoy } from '../support/envoy/route-envoy.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { type HttpAnswer, headerOf, httpRequest } from '../support/process/http-client.js';
import { optionalToolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import type { WeirServer } from '../support/weir/weir.js';
import { startXdsWeir, untilServing } from '../support/weir/xds-weir.js';
import {
  AI_NODE,
  DEFAULT_BUCKET,
  GATEWAY_DOMAIN,
  GATEWAY_NODE,
  GATEWAY_RESOURCE,
  GATEWAY_ROUTE,
  QUOTA_DOMAIN,
  quotas,
  TENANT_BUCKET,
} from '../support/xds/gateway-resources.js';
import { startXdsServer } from '../support/xds/xds-server.js';

const describeXds = optionalToolPath('xds-server') === undefined ? describe.skip : describe;
const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http';
const AI = 'io.envoy.ai_gateway';
const RATE_LIMIT = 'envoy.filters.http.ratelimit';

/** Tokens of gpt-4 on the backends. */
const [OPENAI_TOKENS, AZURE_TOKENS] = [1000, 600];

/** An action that derives an entry from the metadata of the ext_proc filter. */
const fromMetadata = (descriptor_key: string, key: string) => ({
  metadata: { source: 'DYNAMIC', descriptor_key, metadata_key: { key: AI, path: [{ key }] } },
});
const MODEL = fromMetadata('model_name_override', 'model_name_override');
const BASE = [fromMetadata('backend_name', 'ai_service_backend_name'), MODEL];

const atStart = (actions: readonly object[]) => ({ actions });
const atEnd = (actions: readonly object[]) => ({
  actions,
  hits_addend: { format: `%DYNAMIC_METADATA(${AI}:llm_total_token)%` },
  apply_on_stream_done: true,
});
const TENANT = [...BASE, fromHeader('x-tenant', TENANT_BUCKET)];
const DEFAULT = [...BASE, generic(DEFAULT_BUCKET, DEFAULT_BUCKET)];
/** The rate limits of a route whose backend has quotas. */
const QUOTAS = [BASE, TENANT, DEFAULT].flatMap((actions) => [atStart(actions), atEnd(actions)]);

const perRoute = (domain: string, rate_limits: readonly object[]) => ({
  [RATE_LIMIT]: { '@type': `${FILTERS}.ratelimit.v3.RateLimitPerRoute`, domain, rate_limits },
});
const lua = (code: string) => ({
  name: 'envoy.filters.http.lua',
  typed_config: { '@type': `${FILTERS}.lua.v3.Lua`, default_source_code: { inline_string: code } },
});

const EXT_PROC = `
function envoy_on_request(handle)
  local metadata = handle:streamInfo():dynamicMetadata()
  metadata:set("${AI}", "model_name_override", handle:headers():get("x-ai-eg-model"))
  metadata:set("${AI}", "ai_service_backend_name", "default/openai")
end
function envoy_on_response(handle)
  local body = handle:body(true)
  local used = body and body:getBytes(0, body:length()):match('"total_tokens":(%d+)')
  if used then handle:streamInfo():dynamicMetadata():set("${AI}", "llm_total_token", tonumber(used)) end
end`;
/** Selects the first backend whose quota the answer lists as passed. */
const ROUTER = `
function envoy_on_request(handle)
  if handle:headers():get(":path") ~= "/routed" then return end
  local metadata = handle:streamInfo():dynamicMetadata()
  local passed = metadata:get("${RATE_LIMIT}").decision.passed
  for _, backend in ipairs({"default/azure", "default/openai"}) do
    if passed["backend_name=" .. backend .. "/model_name_override=gpt-4"] then
      metadata:set("${AI}", "ai_service_backend_name", backend)
      handle:headers():replace("x-ai-backend", backend)
      handle:clearRouteCache()
      return
    end
  end
end`;

const RATE_LIMIT_FILTER = {
  name: RATE_LIMIT,
  typed_config: {
    '@type': `${FILTERS}.ratelimit.v3.RateLimit`,
    domain: QUOTA_DOMAIN,
    rate_limit_service: {
      grpc_service: { envoy_grpc: { cluster_name: 'weir' } },
      transport_api_version: 'V3',
    },
    timeout: '5s',
    failure_mode_deny: false,
    disable_x_envoy_ratelimited_header: true,
    enable_x_ratelimit_headers: 'DRAFT_VERSION_03',
  },
};
const PASSED = `%DYNAMIC_METADATA(${RATE_LIMIT}:decision:passed)%`;

/** A route that shows what passed, and tells the upstream its name. */
const route = (match: object, name: string, typed_per_filter_config: object) => ({
  match,
  route: { cluster: 'upstream' },
  request_headers_to_add: [{ header: { key: 'x-route', value: name } }],
  response_headers_to_add: [{ header: { key: 'x-passed', value: PASSED } }],
  typed_per_filter_config,
});
/** The start asks for both backends, and the end charges the one that was selected. */
const ROUTED = perRoute(QUOTA_DOMAIN, [
  ...['default/azure', 'default/openai'].map((name) => atStart([generic('backend_name', name), MODEL])),
  atEnd(BASE),
]);
const selected = (name: string) => ({
  path: '/routed',
  headers: [{ name: 'x-ai-backend', string_match: { exact: name } }],
});
const ROUTES = [
  route(selected('default/azure'), 'azure', ROUTED),
  route(selected('default/openai'), 'openai', ROUTED),
  route({ path: '/routed' }, 'none', ROUTED),
  route(
    { prefix: '/users' },
    'users',
    perRoute(GATEWAY_DOMAIN, [
      { actions: [generic(GATEWAY_ROUTE, GATEWAY_ROUTE), fromHeader('x-user-id', 'rule-0-match-0')] },
    ]),
  ),
  route({ prefix: '/' }, 'chat', perRoute(QUOTA_DOMAIN, QUOTAS)),
];

/** Returns a header, if there is one. */
const found = ({ headers }: HttpAnswer, name: string) => headers.find(([one]) => one === name)?.[1];

/** Starts an upstream that reports the name of the route, and the tokens in the header `x-tokens`, if present. */
async function startModel(): Promise<Server> {
  const upstream = createServer(({ headers }, answer) => {
    const tokens = headers['x-tokens'];
    const usage = tokens === undefined ? {} : { usage: { total_tokens: Number(tokens) } };
    answer.end(JSON.stringify({ route: headers['x-route'], ...usage }));
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  return upstream;
}

describeXds('QuotaPolicies of Envoy AI Gateway', () => {
  let upstream: Server;
  let weir: WeirServer;
  let envoy: RouteEnvoy;
  let rls: RlsClient;

  beforeAll(async () => {
    upstream = await startModel();
    const [gateway, ai] = [await startXdsServer(), await startXdsServer()];
    await gateway.setSnapshot('1', [GATEWAY_RESOURCE], GATEWAY_NODE);
    await ai.setSnapshot('1', [quotas(OPENAI_TOKENS, { 'default/azure': AZURE_TOKENS })], AI_NODE);
    weir = await startXdsWeir(gateway.port, {
      CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${gateway.port},127.0.0.1:${ai.port}`,
      CONFIG_GRPC_XDS_NODE_ID: `${GATEWAY_NODE},${AI_NODE}`,
      DECISION_METADATA: 'true',
    });
    await untilServing(weir);
    rls = new RlsClient(weir.grpcPort);
    envoy = await startRouteEnvoy({
      domain: QUOTA_DOMAIN,
      weirPort: weir.grpcPort,
      upstreamPort: (upstream.address() as AddressInfo).port,
      routes: [],
      parts: {
        http_filters: [
          lua(EXT_PROC),
          RATE_LIMIT_FILTER,
          { ...lua(ROUTER), name: 'router-ext-proc' },
          { name: 'envoy.filters.http.router', typed_config: { '@type': `${FILTERS}.router.v3.Router` } },
        ],
        route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: ROUTES }] },
      },
    });
  });
  afterAll(() => {
    upstream?.closeAllConnections();
    upstream?.close();
  });

  /** Sends a request, and returns its status, its route and what passed. */
  async function call(path: string, model: string, headers: Record<string, string> = {}) {
    const response = await httpRequest(envoy.port, path, { headers: { 'x-ai-eg-model': model, ...headers } });
    const passed = found(response, 'x-passed');
    return {
      response,
      status: response.status,
      route: response.status === 200 ? JSON.parse(response.body).route : undefined,
      passed: passed === undefined ? undefined : JSON.parse(passed),
    };
  }

  /** Waits until a quota has this many tokens left. Charges arrive after the response. */
  const untilLeft = (left: number, ...entries: string[]) =>
    waitFor(`${left} left of ${entries.join(' ')}`, async () => {
      const { response } = await rls.ask(QUOTA_DOMAIN, [descriptor(entries, { hitsAddend: 0 })]);
      return response?.statuses[0]?.limitRemaining === left || undefined;
    });

  const OPENAI = ['backend_name=default/openai', 'model_name_override=gpt-4'];
  const AZURE = ['backend_name=default/azure', 'model_name_override=gpt-4'];
  const CLAUDE = ['backend_name=default/openai', 'model_name_override=claude'];
  const RULE = 'backend_name=default/openai/model_name_override=gpt-4';

  test('a request costs 1 and its tokens, and the metadata lists what is left', async () => {
    const first = await call('/chat', 'gpt-4', { 'x-tokens': '300' });
    expect(first).toMatchObject({ status: 200, route: 'chat', passed: { [RULE]: OPENAI_TOKENS - 1 } });
    expect(headerOf(first.response, 'x-ratelimit-limit')).toBe(`${OPENAI_TOKENS}, ${OPENAI_TOKENS};w=86400`);
    expect(headerOf(first.response, 'x-ratelimit-remaining')).toBe(String(OPENAI_TOKENS - 1));
    await untilLeft(OPENAI_TOKENS - 301, ...OPENAI);
    // A response without tokens is not charged.
    expect((await call('/chat', 'gpt-4')).passed).toEqual({ [RULE]: OPENAI_TOKENS - 302 });
    await untilLeft(OPENAI_TOKENS - 302, ...OPENAI);
  });

  test('the router selects the first backend with quota, until all quotas are used up', async () => {
    const tokens = { 'x-tokens': '599' };
    expect(await call('/routed', 'gpt-4', tokens)).toMatchObject({ status: 200, route: 'azure' });
    await untilLeft(0, ...AZURE);
    // Only the other backend passes.
    const second = await call('/routed', 'gpt-4', { 'x-tokens': '650' });
    expect(second).toMatchObject({ status: 200, route: 'openai' });
    expect(Object.keys(second.passed)).toEqual([RULE]);
    await untilLeft(OPENAI_TOKENS - 302 - 2 - 650, ...OPENAI);
    // The request that exceeds the quota is served, and the next one is denied.
    const third = await call('/routed', 'gpt-4', { 'x-tokens': '650' });
    expect(third).toMatchObject({ status: 200, route: 'openai' });
    await untilLeft(0, ...OPENAI);
    const denied = await call('/routed', 'gpt-4');
    expect(denied).toMatchObject({ status: 429, passed: undefined });
    expect(found(denied.response, 'x-envoy-ratelimited')).toBeUndefined();
    expect(headerOf(denied.response, 'x-ratelimit-remaining')).toBe('0');
    expect((await call('/chat', 'gpt-4')).status).toBe(429);
  });

  test('with a bucket rule, a request is denied if tenant and default bucket are used up', async () => {
    const ann = { 'x-tenant': 'ann', 'x-tokens': '4' };
    expect((await call('/chat', 'claude', ann)).status).toBe(200);
    await untilLeft(0, ...CLAUDE, `${TENANT_BUCKET}=ann`);
    const second = await call('/chat', 'claude', { 'x-tenant': 'ann' });
    expect(second).toMatchObject({ status: 200 });
    expect(Object.values(second.passed)).toEqual([1]);
    await untilLeft(1, ...CLAUDE, `${DEFAULT_BUCKET}=${DEFAULT_BUCKET}`);
    expect((await call('/chat', 'claude', { 'x-tenant': 'ann', 'x-tokens': '9' })).status).toBe(200);
    await untilLeft(0, ...CLAUDE, `${DEFAULT_BUCKET}=${DEFAULT_BUCKET}`);
    expect((await call('/chat', 'claude', { 'x-tenant': 'ann' })).status).toBe(429);
    expect((await call('/chat', 'claude', { 'x-tenant': 'bob' })).status).toBe(200);
  });

  test('the limits of Envoy Gateway apply at the same time, from the other management server', async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) {
      statuses.push((await call('/users', 'gpt-4', { 'x-user-id': 'ann' })).status);
    }
    expect(statuses).toEqual([200, 200, 200, 429]);
  });
});
