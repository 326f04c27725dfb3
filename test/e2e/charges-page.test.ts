/*
 * Tests the Envoy configuration of docs/policy/charges.md: it charges the usage that the upstream reports. Also tests
 * where Envoy honours hits_addend, and where it ignores it.
 */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { LlmServers } from '../support/docs/llm-servers.js';
import { pageSections } from '../support/docs/page-examples.js';
import { pageText } from '../support/docs/pages.js';
import { fromHeader, type ManagerParts, startRouteEnvoy } from '../support/envoy/route-envoy.js';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';

const PAGE = 'docs/policy/charges.md';
const page = pageText(PAGE);
const [policy = ''] = pageSections(PAGE, page).flatMap(({ examples }) => examples.map((one) => one.policy));
const [, shown = ''] = /```yaml\n(http_filters:[^`]*)```/.exec(page) ?? [];
/** The peek and the charge, with the actions of the page's route. */
const actions = [fromHeader('x-tenant', 'tenant')];
const LIMITS = [
  { actions, hits_addend: { number: 0 } },
  { actions, apply_on_stream_done: true, hits_addend: { format: '%RESP(x-tokens-used)%' } },
];

let servers: LlmServers;
beforeAll(async () => {
  servers = await LlmServers.start(policy, (request, answer) => {
    const cost = request.headers['x-cost'];
    if (cost !== undefined) answer.setHeader('x-tokens-used', String(cost));
    answer.end('words\n');
  });
});

/** Starts an Envoy that calls weir, with the page's limits at `place`, unless `parts` replaces them. */
async function startEnvoy(place?: 'route' | 'virtual_host', parts?: ManagerParts) {
  const { weirPort, upstreamPort } = servers;
  const routes = [{ path: '/', rateLimits: LIMITS, place }];
  return startRouteEnvoy({
    ...{ domain: 'llm', weirPort, upstreamPort, routes },
    ...(parts !== undefined && { parts }),
  });
}

/** Waits for the number of remaining tokens; a slow test can see the token that refills every 36 seconds. */
const untilLeft = (tenant: string, left: number) =>
  waitFor(`${left} left of ${tenant}`, async () => {
    const found = (await servers.leftOf(tenant)) ?? 0;
    return found === left || found === left + 1 || undefined;
  });

type PerFilter = Record<string, { readonly rate_limits: object[] }>;
interface Route {
  route: { rate_limits?: object[]; weighted_clusters?: object };
  typed_per_filter_config?: PerFilter | undefined;
}

/** Returns the Envoy configuration that the page shows. */
function pageParts() {
  const parts = parse(shown) as ManagerParts & {
    http_filters: { typed_config: { timeout?: string } }[];
    route_config: {
      virtual_hosts: {
        rate_limits?: object[];
        routes: Route[];
        typed_per_filter_config?: PerFilter | undefined;
      }[];
    };
  };
  const [filter] = parts.http_filters;
  // A longer timeout, so that a busy machine does not change what is charged.
  if (filter !== undefined) filter.typed_config.timeout = '10s';
  return parts;
}

describe('the Envoy configuration of the page', () => {
  const parts = pageParts();

  test('charges the reported usage, and nothing if the upstream reports none', async () => {
    const [host] = parts.route_config.virtual_hosts;
    // Envoy ignores hits_addend in the fields next to the supported ones.
    const ignored = [
      { actions: [{ generic_key: { descriptor_key: 'tenant', descriptor_value: 'ignored' } }] },
    ];
    if (host !== undefined) host.rate_limits = ignored;
    const [route] = host?.routes ?? [];
    if (route !== undefined) route.route.rate_limits = ignored;
    const envoy = await startEnvoy(undefined, parts);
    const call = async (headers: Record<string, string>) =>
      (await httpRequest(envoy.port, '/', { headers: { 'x-tenant': 'ann', ...headers } })).status;
    expect(await call({ 'x-cost': '400' })).toBe(200);
    await untilLeft('ann', 600);
    expect(await call({})).toBe(200);
    expect(await call({ 'x-cost': '700' })).toBe(200);
    await untilLeft('ann', 0);
    expect(await call({ 'x-cost': '1' })).toBe(429);
    expect(await servers.leftOf('ignored')).toBe(1000);
  });
});

type Parts = ReturnType<typeof pageParts>;
const elsewhere: Record<string, (parts: Parts) => void> = {
  'the virtual host': ({ route_config: { virtual_hosts } }) => {
    for (const host of virtual_hosts)
      for (const route of host.routes) {
        host.typed_per_filter_config = route.typed_per_filter_config;
        delete route.typed_per_filter_config;
      }
  },
  'a weighted cluster': ({ route_config: { virtual_hosts } }) => {
    for (const route of virtual_hosts.flatMap(({ routes }) => routes)) {
      const { typed_per_filter_config } = route;
      route.route = {
        weighted_clusters: { clusters: [{ name: 'upstream', weight: 1, typed_per_filter_config }] },
      };
      delete route.typed_per_filter_config;
    }
  },
  'the filter': ({ http_filters: [filter], route_config: { virtual_hosts } }) => {
    for (const route of virtual_hosts.flatMap(({ routes }) => routes)) {
      const [own] = Object.values(route.typed_per_filter_config ?? {});
      Object.assign(filter?.typed_config ?? {}, { rate_limits: own?.rate_limits });
      delete route.typed_per_filter_config;
    }
  },
};

test.each(Object.entries(elsewhere))(
  'Envoy honours hits_addend in the configuration of %s',
  async (place, move) => {
    const parts = pageParts();
    move(parts);
    const envoy = await startEnvoy(undefined, parts);
    const headers = { 'x-tenant': place, 'x-cost': '400' };
    expect((await httpRequest(envoy.port, '/', { headers })).status).toBe(200);
    await untilLeft(place, 600);
    await envoy.stop();
  },
);

test.each(['route', 'virtual_host'] as const)(
  'Envoy ignores hits_addend in the rate_limits of a %s: peek and charge take 1 hit each',
  async (place) => {
    const envoy = await startEnvoy(place);
    const headers = { 'x-tenant': place, 'x-cost': '400' };
    expect((await httpRequest(envoy.port, '/', { headers })).status).toBe(200);
    await untilLeft(place, 998);
    await envoy.stop();
  },
);
