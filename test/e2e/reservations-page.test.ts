/*
 * Tests the Envoy configurations of docs/policy/reservations.md. They settle each reservation with the use that the
 * upstream reports in a header, in a JSON body or in a stream of events. They end a reservation if its use is unknown.
 */
import { beforeAll, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { LlmServers } from '../support/docs/llm-servers.js';
import { pageSections } from '../support/docs/page-examples.js';
import { pageText } from '../support/docs/pages.js';
import { type ManagerParts, startRouteEnvoy } from '../support/envoy/route-envoy.js';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';

const PAGE = 'docs/policy/reservations.md';
const page = pageText(PAGE);
const [policy = ''] = pageSections(PAGE, page).flatMap(({ examples }) => examples.map((one) => one.policy));
const [, shown = ''] = /```yaml\n(http_filters:[^`]*)```/.exec(page) ?? [];
const [, filters = ''] = /```yaml\n(- name: envoy.filters.http.json_to_metadata[^`]*)```/.exec(page) ?? [];
const [, lua = ''] = /```yaml\n(- name: envoy.filters.http.lua[^`]*)```/.exec(page) ?? [];
const [, format = ''] = /hits_addend: (\{ format: "%DYNAMIC_METADATA[^}]*\})/.exec(page) ?? [];

/** Tokens of the bucket, and the estimate of a call. */
const BUCKET = 10_000;
const ESTIMATE = 4000;

let servers: LlmServers;
beforeAll(async () => {
  // Slow refills, so that the number of tokens shows the charges.
  const slow = policy.replace('fill_interval: 1m', 'fill_interval: 168h');
  servers = await LlmServers.start(slow, ({ url, headers }, answer) => {
    const usage = `{"choices":[],"usage":{"total_tokens":${headers['x-cost']}}}`;
    if (url === '/header') answer.setHeader('x-tokens-used', String(headers['x-cost']));
    if (url === '/json') answer.setHeader('content-type', 'application/json');
    if (url === '/stream') answer.setHeader('content-type', 'text/event-stream');
    if (url === '/stream') answer.write('data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n');
    answer.end(url === '/stream' ? `data: ${usage}\n\ndata: [DONE]\n\n` : usage);
  });
});

interface Parts extends ManagerParts {
  readonly http_filters: { typed_config: { timeout?: string } }[];
}

/** Starts Envoy with the configuration of the page, after `change`. */
async function startEnvoy(change: (text: string) => string = (text) => text) {
  const { weirPort, upstreamPort } = servers;
  const parts = parse(change(shown)) as Parts;
  const [filter] = parts.http_filters;
  // A longer timeout, so that a busy machine does not change what is taken.
  if (filter !== undefined) filter.typed_config.timeout = '10s';
  return startRouteEnvoy({ domain: 'llm', weirPort, upstreamPort, routes: [], parts });
}

/** Waits until a tenant has used a number of tokens; a slow test can see a few that refilled. */
const untilUsed = (tenant: string, used: number) =>
  waitFor(`${tenant} to have used ${used}`, async () => {
    const more = ((await servers.leftOf(tenant)) ?? 0) - (BUCKET - used);
    return (more >= 0 && more < 10) || undefined;
  });

test('settles a header, and keeps the estimate without one', async () => {
  const envoy = await startEnvoy();
  const call = async (path: string, tenant: string, cost: number) => {
    const headers = { 'x-tenant': tenant, 'x-cost': String(cost) };
    return (await httpRequest(envoy.port, path, { headers })).status;
  };
  expect(await call('/header', 'ann', 1500)).toBe(200);
  await untilUsed('ann', 1500);
  expect(await call('/header', 'ann', 5000)).toBe(200);
  await untilUsed('ann', 6500);
  expect(await call('/header', 'ann', 1)).toBe(429);
  expect(await call('/none', 'bob', 1500)).toBe(200);
  await untilUsed('bob', ESTIMATE);
});

test.each([
  ['filters to metadata', filters],
  ['a Lua filter', lua],
])('settles the use in a JSON body and in a stream of events, with %s', async (kind, added) => {
  const envoy = await startEnvoy((text) =>
    text
      .replace('  - name: envoy.filters.http.router', `${added.replace(/^(?=.)/gm, '  ')}$&`)
      .replace('{ format: "%RESP(x-tokens-used)%" }', format),
  );
  for (const path of ['/json', '/stream']) {
    const tenant = kind + path;
    const headers = { 'x-tenant': tenant, 'x-cost': '1200' };
    expect((await httpRequest(envoy.port, path, { headers })).status).toBe(200);
    await untilUsed(tenant, 1200);
  }
});
