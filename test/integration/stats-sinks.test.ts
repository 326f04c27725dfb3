/* Tests statsd over TCP and dogstatsd over UDP: what a real weir sends to real listeners after known traffic. */
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, jest, test } from '@jest/globals';
import { StatsdTcp } from '../../src/telemetry/statsd/statsd-tcp.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { freePorts } from '../support/process/free-port.js';
import { runToEnd } from '../support/process/processes.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { collectTcp, collectUdp, type StatsCollector } from '../support/statsd/stats-collectors.js';
import { startWeir, WEIR_MAIN, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - key: k
    rate_limit: { unit: hour, requests_per_unit: 10 }
    descriptors:
      - { key: sub, value: "a:b", rate_limit: { unit: hour, requests_per_unit: 1 }, shadow_mode: true }
`;
/** Pauses between connections to a collector that does not read. */
const PAUSES_MS = [100, 200, 400, 800];
const RULE = 'ratelimit.service.rate_limit.d.k';

async function start(env: NodeJS.ProcessEnv): Promise<{ server: WeirServer; client: RlsClient }> {
  const server = await startWeir({
    policy: POLICY,
    env: { STATS_FLUSH_INTERVAL: '50ms', STATSD_HOST: '127.0.0.1', ...env },
  });
  const client = new RlsClient(server.grpcPort);
  return { server, client };
}

/** Sends 13 hits to a window of 10 (8 within, 2 near and 3 over the limit), and requests for two unknown domains. */
async function traffic(client: RlsClient): Promise<void> {
  for (let call = 0; call < 10; call++) await client.ask('d', [descriptor(['k=x'])]);
  await client.ask('d', [descriptor(['k=x'])], { hitsAddend: 3 });
  await client.ask('d', [descriptor(['k=x', 'sub=a:b'])], { hitsAddend: 2 });
  await client.ask('unknown:domain', [descriptor(['k=x']), descriptor(['k=y'])]);
  await client.ask('', []);
}

/** Waits for all counts, which arrive in several flushes and packets. */
async function expectTraffic(collector: StatsCollector, suffix = '', tags = ''): Promise<void> {
  const sum = (name: string) => collector.sum(`${name}${suffix}`, tags);
  const of = (rule: string) =>
    Object.fromEntries(
      ['total_hits', 'within_limit', 'near_limit', 'over_limit', 'shadow_mode'].map((name) => [
        name,
        sum(`${rule}.${name}`),
      ]),
    );
  await waitFor('every call to be told', () => {
    expect(sum('ratelimit_server.ShouldRateLimit.total_requests')).toBe(14);
    expect(of(RULE)).toEqual({
      total_hits: 13,
      within_limit: 10,
      near_limit: 2,
      over_limit: 3,
      shadow_mode: 0,
    });
    expect(of(`${RULE}.sub_a_b`)).toEqual({
      total_hits: 2,
      within_limit: 0,
      near_limit: 1,
      over_limit: 1,
      shadow_mode: 1,
    });
    expect(sum('ratelimit.service.rate_limit.unknown_domain.domain_not_found')).toBe(2);
    expect(sum('ratelimit.service.call.should_rate_limit.service_error')).toBe(1);
    expect(sum('ratelimit.service.config_load_success')).toBe(1);
    return true;
  });
}

const noZeros = (lines: readonly string[]) => expect(lines.filter((line) => /:0\|c/.test(line))).toEqual([]);

describe('statsd over TCP', () => {
  test('receives every counter under its reference name, as deltas, and times in milliseconds', async () => {
    const collector = await collectTcp();
    const { server, client } = await start({ USE_STATSD: 'true', STATSD_PORT: String(collector.port) });
    await traffic(client);
    await expectTraffic(collector);
    noZeros(collector.lines());
    const times = collector
      .lines()
      .filter((line) => line.startsWith('ratelimit_server.ShouldRateLimit.response_time:'));
    expect(times).toHaveLength(14);
    for (const line of times) expect(line).toMatch(/:\d+(\.\d{1,3})?\|ms$/);
    for (const line of collector.lines()) expect(line).toMatch(/^[^:|\s]+:[\d.]+\|(c|g|ms)$/);
    await server.stop();
  });

  test('receives EXTRA_TAGS after every name, sorted by name', async () => {
    const collector = await collectTcp();
    const { server, client } = await start({
      USE_STATSD: 'true',
      STATSD_PORT: String(collector.port),
      EXTRA_TAGS: 'zone:eu.1,app:shop,empty:',
    });
    await traffic(client);
    await expectTraffic(collector, '.__app=shop.__zone=eu_1');
    await server.stop();
  });

  test('receives the last interval when the process ends', async () => {
    const collector = await collectTcp();
    const { server, client } = await start({
      USE_STATSD: 'true',
      STATSD_PORT: String(collector.port),
      STATS_FLUSH_INTERVAL: '1h',
    });
    await traffic(client);
    client.close();
    expect(collector.sum(`${RULE}.total_hits`)).toBe(0);
    expect((await server.stop()).code).toBe(0);
    await expectTraffic(collector);
  });

  test('receives the backlog after an outage, during which weir serves', async () => {
    const [port = 0] = await freePorts(1);
    const { server, client } = await start({ USE_STATSD: 'true', STATSD_PORT: String(port) });
    await traffic(client);
    const collector = await collectTcp(port);
    await expectTraffic(collector);
    const warnings = server.process.lines().filter((line) => line.includes('does not accept metrics'));
    expect(warnings).toHaveLength(1);
    // weir reconnects after the connection is closed.
    collector.cut();
    await waitFor('new counts after the cut', async () => {
      await client.ask('d', [descriptor(['k=x'])]);
      return collector.sum(`${RULE}.total_hits`) > 13 ? true : undefined;
    });
    await server.stop();
  });

  test('that closes every connection gets fewer and fewer connections, and one log line', async () => {
    let calls = 0;
    const server = createServer((socket) => {
      calls++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const said: string[] = [];
    const log = (_level: string, message: string) => said.push(message);
    const timers = jest.spyOn(globalThis, 'setTimeout');
    const sink = new StatsdTcp({ host: '127.0.0.1', port, tags: [], log });
    await waitFor('four calls', () => (calls >= 4 ? true : undefined));
    const pauses = timers.mock.calls.map(([, ms]) => ms).filter((ms) => PAUSES_MS.includes(ms as number));
    timers.mockRestore();
    expect(pauses.slice(0, 3)).toEqual([100, 200, 400]);
    await sink.close();
    expect(said).toHaveLength(1);
    await new Promise((resolve) => server.close(resolve));
  });

  test('that does not read loses lines, which are counted, and uses no memory', async () => {
    const [port = 0] = await freePorts(1);
    const sink = new StatsdTcp({ host: '127.0.0.1', port, tags: [], log: () => {} });
    const name = 'n'.repeat(1000);
    for (let line = 0; line < 20_000; line++) sink.counter(name, 1);
    expect(sink.dropped).toBeGreaterThan(10_000);
    await sink.close();
  });

  test('receives the statistics of each worker, and policy loads once', async () => {
    const collector = await collectTcp();
    const redis = await startRedis();
    const { server, client } = await start({
      USE_STATSD: 'true',
      STATSD_PORT: String(collector.port),
      WORKERS: '2',
      REDIS_URL: `127.0.0.1:${redis.port}`,
    });
    const others = [1, 2, 3].map(() => new RlsClient(server.grpcPort));
    for (const other of others) await other.ask('d', [descriptor(['other=x'])]);
    await traffic(client);
    await waitFor('every call to be told', () => {
      expect(collector.sum('ratelimit_server.ShouldRateLimit.total_requests')).toBe(17);
      expect(collector.sum(`${RULE}.total_hits`)).toBe(13);
      expect(collector.sum('ratelimit.service.config_load_success')).toBe(1);
      return true;
    });
    await waitFor('the connection of each worker', () =>
      collector.sum('ratelimit.redis_pool.cx_total') >= 2 ? true : undefined,
    );
    await server.stop();
  });
});

describe('dogstatsd over UDP', () => {
  test('receives small packets of lines with tags', async () => {
    const collector = await collectUdp();
    const { server, client } = await start({
      USE_DOG_STATSD: 'true',
      STATSD_PORT: String(collector.port),
      EXTRA_TAGS: 'zone:eu',
    });
    await traffic(client);
    await expectTraffic(collector, '', '|#zone:eu');
    for (const packet of collector.packets()) expect(packet.length).toBeLessThanOrEqual(1432);
    noZeros(collector.lines());
    expect(collector.lines().some((line) => /response_time:[\d.]+\|ms\|#zone:eu$/.test(line))).toBe(true);
    await server.stop();
  });

  test('receives names and tags from mogrifiers', async () => {
    const collector = await collectUdp();
    const { server, client } = await start({
      USE_DOG_STATSD: 'true',
      STATSD_PORT: String(collector.port),
      EXTRA_TAGS: 'zone:eu',
      USE_DOG_STATSD_MOGRIFIERS: 'HITS',
      DOG_STATSD_MOGRIFIER_HITS_PATTERN: '^ratelimit\\.service\\.rate_limit\\.([^.]+)\\.(.*)\\.([^.]+)$',
      DOG_STATSD_MOGRIFIER_HITS_NAME: 'ratelimit.service.rate_limit.$3',
      DOG_STATSD_MOGRIFIER_HITS_TAGS: 'domain:$1,descriptor:$2',
    });
    await traffic(client);
    const hits = (tags: string) =>
      collector.sum('ratelimit.service.rate_limit.total_hits', `|#zone:eu,${tags}`);
    await waitFor('all hits', () => {
      expect(hits('domain:d,descriptor:k')).toBe(13);
      expect(hits('domain:d,descriptor:k.sub_a_b')).toBe(2);
      return true;
    });
    await server.stop();
  });

  test('an invalid mogrifier ends the start with a line that names its variable', async () => {
    const ended = await runToEnd(process.execPath, [WEIR_MAIN, 'serve'], {
      bareEnvironment: true,
      env: {
        USE_DOG_STATSD: 'true',
        USE_DOG_STATSD_MOGRIFIERS: 'A',
        DOG_STATSD_MOGRIFIER_A_NAME: 'n',
        DOG_STATSD_MOGRIFIER_A_PATTERN: '(',
      },
    });
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain(
      'weir: DOG_STATSD_MOGRIFIER_A_PATTERN: "(" is not a valid regular expression',
    );
  });
});

test('several sinks receive the same, and DISABLE_STATS turns all of them off', async () => {
  const [port = 0] = await freePorts(1);
  const tcp = await collectTcp(port);
  const udp = await collectUdp(port);
  const both = { USE_STATSD: 'true', USE_DOG_STATSD: 'true' };
  const { server: loud, client: first } = await start({ ...both, STATSD_PORT: String(port) });
  await traffic(first);
  await expectTraffic(tcp);
  await expectTraffic(udp);
  await loud.stop();
  const before = tcp.lines().length;
  const beforeUdp = udp.lines().length;
  const { server, client } = await start({ ...both, DISABLE_STATS: 'true', STATSD_PORT: String(port) });
  await traffic(client);
  await server.stop();
  expect(tcp.lines()).toHaveLength(before);
  expect(udp.lines()).toHaveLength(beforeUdp);
});
