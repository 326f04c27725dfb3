/*
 * Tests what Prometheus scrapes after known traffic: the names and values of the reference, checked by promtool, and
 * the effect of the mapping file.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { RawClient } from '../support/grpc/grpc-client.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { freePorts } from '../support/process/free-port.js';
import { httpRequest } from '../support/process/http-client.js';
import { runToEnd } from '../support/process/processes.js';
import { optionalToolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { startWeir, WEIR_MAIN, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - key: k
    rate_limit: { unit: hour, requests_per_unit: 10 }
    descriptors:
      - key: sub
        rate_limit: { unit: hour, requests_per_unit: 1 }
        shadow_mode: true
        descriptors:
          - { key: deep, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - { key: each, detailed_metric: true, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - key: list
    value_regex: '"\\{.*'
    share_threshold: true
    rate_limits:
      - { name: 'a "quoted" one', unit: hour, requests_per_unit: 5 }
      - { unit: day, requests_per_unit: 9, allow_debt: true, max_debt: 4 }
`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-prometheus-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let server: WeirServer | undefined;
let client: RlsClient;
let port: number;

async function start(env: NodeJS.ProcessEnv = {}): Promise<void> {
  [port = 0] = await freePorts(1);
  server = await startWeir({
    policy: POLICY,
    env: { USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: `127.0.0.1:${port}`, ...env },
  });
  client = new RlsClient(server.grpcPort);
}

/**
 * Sends 13 hits to a limit of 10, 2 to a limit of 1 in shadow mode, 1 and 2 to child nodes, a bad request, and a
 * request for an unknown domain.
 */
async function traffic(): Promise<void> {
  for (let call = 0; call < 10; call++) await client.ask('d', [descriptor(['k=x'])]);
  await client.ask('d', [descriptor(['k=x'])], { hitsAddend: 3 });
  await client.ask('d', [descriptor(['k=x', 'sub=y'])], { hitsAddend: 2 });
  await client.ask('d', [descriptor(['k=x', 'sub=y', 'deep=z'])], { hitsAddend: 4 });
  await client.ask('who', [descriptor(['k=x'])]);
  await client.ask('', []);
}

/**
 * Sends traffic to a list: two hits, one hit, and 20 hits that both limits of the list must allow.
 */
async function trafficOfList(ask: () => RlsClient): Promise<void> {
  for (const hitsAddend of [2, 1, 20]) await ask().ask('d', [descriptor(['list="{x'])], { hitsAddend });
}

const scrape = async (at: number, path = '/metrics'): Promise<string> => (await httpRequest(at, path)).body;

/** Returns the value of the line that begins with `name`. */
function value(text: string, name: string): number | undefined {
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length));
}

const RULE = 'ratelimit_service_rate_limit';

function expectTraffic(text: string): void {
  const k = '{domain="d",key1="k"}';
  const sub = '{domain="d",key1="k",key2="sub"}';
  const found = (name: string) => value(text, name);
  expect(found(`${RULE}_total_hits${k}`)).toBe(13);
  expect(found(`${RULE}_within_limit${k}`)).toBe(10);
  expect(found(`${RULE}_near_limit${k}`)).toBe(2);
  expect(found(`${RULE}_over_limit${k}`)).toBe(3);
  expect(found(`${RULE}_shadow_mode${k}`)).toBeUndefined();
  expect(found(`${RULE}_total_hits${sub}`)).toBe(6);
  expect(found(`${RULE}_within_limit${sub}`)).toBe(4);
  expect(found(`${RULE}_over_limit${sub}`)).toBe(1);
  expect(found(`${RULE}_shadow_mode${sub}`)).toBe(1);
  expect(found('ratelimit_service_total_requests{grpc_method="ShouldRateLimit"}')).toBe(15);
  expect(found('ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"}')).toBe(15);
  expect(found('ratelimit_service_should_rate_limit_error{err_type="service_error"}')).toBe(1);
  expect(found('ratelimit_service_config_load_success')).toBe(1);
  expect(found(`${RULE}_who_domain_not_found`)).toBe(1);
  expect(found('weir_request_duration_seconds_count')).toBe(15);
  const seconds = found('ratelimit_service_response_time_seconds_sum{grpc_method="ShouldRateLimit"}') ?? 0;
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeCloseTo(found('weir_request_duration_seconds_sum') ?? Number.NaN, 5);
  expect(found('weir_domain_state{domain="d",state="ok"}')).toBe(1);
}

function expectList(text: string): void {
  const node = 'list~\\"\\\\{.*';
  const named = `domain="d",rule="${node}[a \\"quoted\\" one]"`;
  expect(value(text, `weir_decisions_total{${named},code="OVER_LIMIT"}`)).toBe(1);
  expect(value(text, `weir_decisions_total{${named},code="OK"}`)).toBe(2);
}

test('PROMETHEUS_ADDR and PORT show the names and values of the reference, and those of weir', async () => {
  await start();
  await traffic();
  expectTraffic(await scrape(port));
  expectTraffic(await scrape(server?.httpPort ?? 0));
  const away = await httpRequest(port, '/healthcheck');
  expect(away.status).toBe(404);
});

const promtool = optionalToolPath('promtool');
(promtool === undefined ? test.skip : test)('promtool takes what both ports show', async () => {
  await start({ EXTRA_TAGS: 'zone:eu' });
  await traffic();
  // The value contains characters that must be escaped.
  await client.ask('d', [descriptor(['each="\\\n\u00e9'])]);
  await trafficOfList(() => client);
  for (const at of [port, server?.httpPort ?? 0]) {
    const input = await scrape(at);
    const { status, stdout, stderr } = spawnSync(promtool as string, ['check', 'metrics'], { input });
    // Status 3 means that the text is valid, with advice about names. The names of the reference are fixed, and there
    // is no advice about others.
    expect([0, 3]).toContain(status);
    expectList(input);
    const advice = `${stdout}${stderr}`
      .split('\n')
      .filter((line) => line !== '' && !/^ratelimit_/.test(line));
    expect(advice).toEqual([]);
  }
});

test('adds up the numbers of several workers, also on /stats', async () => {
  const redis = await startRedis();
  await start({ WORKERS: '2', REDIS_URL: `127.0.0.1:${redis.port}` });
  const others = [1, 2, 3].map(() => new RlsClient(server?.grpcPort ?? 0));
  for (const other of others) await other.ask('d', [descriptor(['each=x'])]);
  await traffic();
  let next = 0;
  await trafficOfList(() => others[next++] as RlsClient);
  const text = await scrape(port);
  expectList(text);
  expect(value(text, `${RULE}_total_hits{domain="d",key1="k"}`)).toBe(13);
  expect(value(text, `${RULE}_total_hits{domain="d",key1="each_x"}`)).toBe(3);
  expect(value(text, 'ratelimit_service_config_load_success')).toBe(1);
  expect(value(text, 'weir_request_duration_seconds_count')).toBe(21);
  const stats = await scrape(server?.debugPort ?? 0, '/stats');
  expect(stats.split('\n')).toContain('ratelimit_server.ShouldRateLimit.total_requests: 21');
  expect(stats.split('\n')).toContain('ratelimit.service.config_load_success: 1');
  for (const other of others) other.close();
  await client.close();
  await server?.stop();
});

test('/stats shows the numbers under statsd names, sorted', async () => {
  await start({ USE_PROMETHEUS: 'false' });
  await traffic();
  const health = new RawClient(`127.0.0.1:${server?.grpcPort}`);
  expect((await health.unary('/grpc.health.v1.Health/Check', new Uint8Array())).code).toBe(0);
  health.close();
  const lines = (await scrape(server?.debugPort ?? 0, '/stats')).trimEnd().split('\n');
  expect(lines).toContain('ratelimit.service.rate_limit.d.k.total_hits: 13');
  expect(lines).toContain('ratelimit.service.rate_limit.d.k.sub.deep.within_limit: 4');
  expect(lines).toContain('ratelimit.service.call.should_rate_limit.service_error: 1');
  expect(lines).toContain('ratelimit_server.Check.total_requests: 1');
  expect(lines).toEqual([...lines].sort());
  // Without USE_PROMETHEUS, PORT shows weir's own metrics only.
  expect(await scrape(server?.httpPort ?? 0)).not.toContain('\nratelimit_');
});

describe('PROMETHEUS_MAPPER_YAML', () => {
  test('replaces the mapping', async () => {
    const file = join(folder, 'conf.yaml');
    writeFileSync(
      file,
      `mappings:
- match: "ratelimit.service.rate_limit.*.*.total_hits"
  name: "hits_total"
  labels: { where: "$1", what: "$2" }
- match: "ratelimit_server.*.response_time"
  name: "took_milliseconds"
  timer_type: histogram
  buckets: [1, 1000, 100000]
  labels: { method: "$1" }
- { match: ".", match_type: regex, action: drop, name: dropped }
`,
    );
    await start({ PROMETHEUS_MAPPER_YAML: file, PROMETHEUS_PATH: '/elsewhere' });
    await traffic();
    const text = await scrape(port, '/elsewhere');
    expect(value(text, 'hits_total{where="d",what="k"}')).toBe(13);
    expect(value(text, 'took_milliseconds_bucket{le="100000",method="ShouldRateLimit"}')).toBe(15);
    expect(text).not.toContain('ratelimit_');
  });

  test('with a missing file leaves the default in effect, with a log line', async () => {
    await start({ PROMETHEUS_MAPPER_YAML: join(folder, 'none.yaml') });
    await traffic();
    expect(await scrape(port)).toContain('\nratelimit_service_rate_limit_total_hits{');
    const warning = server?.log().find(({ msg }) => String(msg).startsWith('PROMETHEUS_MAPPER_YAML'));
    expect(warning).toMatchObject({ level: 'warning' });
  });

  test('with an invalid file ends the start with file, line and reason', async () => {
    const file = join(folder, 'bad.yaml');
    writeFileSync(file, 'mappings:\n- match: "a.*"\n  nam: x\n');
    const run = (env: NodeJS.ProcessEnv) =>
      runToEnd(process.execPath, [WEIR_MAIN, 'serve'], {
        bareEnvironment: true,
        env: { USE_PROMETHEUS: '1', ...env },
      });
    const bad = await run({ PROMETHEUS_MAPPER_YAML: file });
    expect(bad.code).toBe(1);
    expect(bad.stderr).toContain(
      `weir: ${file}:3:3: mappings[0].nam: unknown key "nam"; did you mean "name"?`,
    );
    const address = await run({ PROMETHEUS_ADDR: 'nowhere', PORT: '0', GRPC_PORT: '0', DEBUG_PORT: '0' });
    expect(address.stderr).toBe(
      'weir: PROMETHEUS_ADDR: "nowhere" is not a valid address; use an address such as :9090 or 127.0.0.1:9090\n',
    );
  });
});

test('PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS, an address without host, DISABLE_STATS', async () => {
  [port = 0] = await freePorts(1);
  await start({ PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS: 'true', PROMETHEUS_ADDR: `:${port}` });
  const serves = server?.log().find(({ msg }) => msg === 'weir serves');
  const bound = Number(String(serves?.['prometheus']).replace(/^.*:/, ''));
  await traffic();
  const text = await scrape(bound);
  const millis =
    value(text, 'ratelimit_service_response_time_seconds_sum{grpc_method="ShouldRateLimit"}') ?? 0;
  expect(millis).toBeCloseTo((value(text, 'weir_request_duration_seconds_sum') ?? Number.NaN) * 1000, 2);
  await server?.stop();
  client.close();
  await start({ DISABLE_STATS: 'true' });
  await expect(scrape(port)).rejects.toThrow();
  expect(await scrape(server?.httpPort ?? 0)).not.toContain('\nratelimit_');
});

test('the log has the fields of the reference', async () => {
  await start();
  const [line] = (server?.log() ?? []).filter(({ msg }) => msg === 'weir serves');
  expect(line).toMatchObject({ level: 'info', '@message': 'weir serves' });
  expect(String(line?.['@timestamp'])).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  await server?.stop();
  client.close();
  await start({ USE_STATSD: 'true', STATSD_PORT: String((await freePorts(1))[0]) });
  const warning = await waitFor('a warning', () =>
    server?.log().find(({ msg }) => String(msg).includes('does not accept metrics')),
  );
  expect(warning['level']).toBe('warning');
});
