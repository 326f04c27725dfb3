/*
 * Tests `pair: oldest` with a real Envoy that sends the same entries at the start and at the end of a request, as Envoy
 * Gateway configures it. The policy is the one in deploy/envoy-gateway/reservations.yaml.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { type Caller, http2Caller } from '../../support/envoy/caller.js';
import { fromHeader, generic, type RouteEnvoy, startRouteEnvoy } from '../../support/envoy/route-envoy.js';
import { ScriptedUpstream } from '../../support/envoy/scripted-upstream.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { descriptor } from '../../support/policy/decider.js';
import { repositoryRoot } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';
import { scrape, sumOf } from '../../support/prometheus/metrics-text.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';

const [policies, traffic] = parseAllDocuments(
  readFileSync(join(repositoryRoot, 'deploy/envoy-gateway/reservations.yaml'), 'utf8'),
).map((document) => document.toJS());
const {
  cost,
  clientSelectors: [{ headers }],
} = traffic.spec.rateLimit.global.rules[0];
const [{ name: header }] = headers;
const { namespace, key: metadataKey } = cost.response.metadata;

const DOMAIN = 'default/eg/http';
const ROUTE = 'httproute/default/llm/rule/0/match/0/*';
const BUDGET = 10_000;
const ESTIMATE = 4000;
const actions = [generic(ROUTE, ROUTE), fromHeader(header, 'rule-0-match-0')];
/** As Envoy Gateway translates `cost`. */
const rateLimits = [
  { actions, hits_addend: { number: cost.request.number } },
  {
    actions,
    apply_on_stream_done: true,
    hits_addend: { format: `%DYNAMIC_METADATA(${namespace}:${metadataKey})%` },
  },
];
/** Stands for the filter that writes the use to the metadata. */
const LUA = `
function envoy_on_response(handle)
  local used = handle:headers():get("x-tokens-used")
  if used then handle:streamInfo():dynamicMetadata():set("${namespace}", "${metadataKey}", tonumber(used)) end
end`;

let upstream: ScriptedUpstream;
beforeAll(async () => {
  upstream = await ScriptedUpstream.start();
});

describe.each(['memory', 'redis'] as const)('with the store %s', (store) => {
  let redis: RedisServer | undefined;
  let weir: WeirServer;
  let envoy: RouteEnvoy;
  let caller: Caller;
  let rls: RlsClient;

  beforeAll(async () => {
    if (store === 'redis') redis = await startRedis();
    weir = await startWeir({
      // Slow refills, so that the number of tokens shows the charges.
      policy: policies.data['llm.yaml'].replace('fill_interval: 1m', 'fill_interval: 8760h'),
      env: redis === undefined ? {} : { REDIS_URL: `redis://127.0.0.1:${redis.port}` },
    });
    rls = new RlsClient(weir.grpcPort);
    envoy = await startRouteEnvoy({
      domain: DOMAIN,
      weirPort: weir.grpcPort,
      upstreamPort: upstream.port,
      failureModeDeny: true,
      lua: LUA,
      routes: [{ path: '/', rateLimits, action: { timeout: '0s' } }],
    });
    caller = http2Caller(envoy.port);
  });

  /** Returns the tokens of a tenant. A refund of 0 hits has no effect. */
  async function left(tenant: string): Promise<number | undefined> {
    const entries = [`${ROUTE}=${ROUTE}`, `rule-0-match-0=${tenant}`];
    const refund = descriptor(entries, { hitsAddend: 0, isNegativeHits: true });
    return (await rls.ask(DOMAIN, [refund])).response?.statuses[0]?.limitRemaining;
  }
  async function countOf(name: string, labels = ''): Promise<number> {
    const metrics = await scrape(weir);
    return metrics ? sumOf(metrics, name, labels) : Number.NaN;
  }
  const untilLeft = (tenant: string, tokens: number) =>
    waitFor(`${tokens} tokens`, async () => (await left(tenant)) === tokens || undefined);

  test('replaces each estimate by the use, in any order of the ends', async () => {
    const id = `${store} order`;
    const open = [1, 2].map(() => caller.get('/', { [header]: id, 'x-id': id }));
    const calls = [await upstream.next(id), await upstream.next(id)];
    await untilLeft(id, BUDGET - 2 * ESTIMATE);
    calls[1]?.answer(200, { 'x-tokens-used': 1000 });
    await untilLeft(id, BUDGET - ESTIMATE - 1000);
    calls[0]?.answer(200, { 'x-tokens-used': 4500 });
    await untilLeft(id, BUDGET - 5500);
    expect(await Promise.all(open.map(({ status }) => status))).toEqual([200, 200]);
  });

  test('denies the calls that the budget does not cover, which send no end', async () => {
    const id = `${store} denied`;
    const unmatched = await countOf('weir_hold_tokens_unmatched_total');
    const open = Array.from({ length: 10 }, () => caller.get('/', { [header]: id, 'x-id': id }));
    let denied = 0;
    for (const { status } of open) void status.then((code) => (denied += code === 429 ? 1 : 0));
    await waitFor('the denials', () => denied === 8 || undefined);
    expect(await left(id)).toBe(BUDGET - 2 * ESTIMATE);
    for (let i = 0; i < 2; i++) (await upstream.next(id)).answer(200, { 'x-tokens-used': 100 });
    await untilLeft(id, BUDGET - 200);
    expect(await countOf('weir_hold_tokens_unmatched_total')).toBe(unmatched);
  });

  test('keeps the estimate of a call without a known use, and of a client that leaves', async () => {
    const id = `${store} unknown`;
    const failed = caller.get('/', { [header]: id, 'x-id': id });
    (await upstream.next(id)).answer(503);
    expect(await failed.status).toBe(503);
    const gone = caller.get('/', { [header]: id, 'x-id': id });
    const call = await upstream.next(id);
    gone.abort();
    await call.over;
    expect(await left(id)).toBe(BUDGET - 2 * ESTIMATE);
  });
});
