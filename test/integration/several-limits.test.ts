/* Tests lists of limits, and candidates, with two real servers on one real Redis. */
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

// Redis and servers can be slow to start on a busy machine.
jest.setTimeout(60_000);

const REQUESTS = 200;
const TIGHT = 37;
/** Refills are too slow to matter, and windows last a year, so that counts stay. */
const POLICY = `
domain: d
descriptors:
  - key: tokens
    rate_limits:
      - { name: tight, token_bucket: { max_tokens: ${TIGHT}, fill_interval: 24h } }
      - { name: loose, token_bucket: { max_tokens: 100, fill_interval: 24h } }
    candidate: { token_bucket: { max_tokens: 150, fill_interval: 24h } }
  - key: mixed
    rate_limits:
      - { name: year, unit: year, requests_per_unit: 1000 }
      - { name: tight, token_bucket: { max_tokens: ${TIGHT}, fill_interval: 24h } }
  - key: windows
    rate_limits:
      - { name: year, unit: year, requests_per_unit: 1000 }
      - { name: tight, unit: month, requests_per_unit: ${TIGHT} }
  - key: watched
    rate_limits:
      - { name: seen, shadow_mode: true, token_bucket: { max_tokens: 10, fill_interval: 24h } }
      - { name: tight, token_bucket: { max_tokens: ${TIGHT}, fill_interval: 24h } }
      - { name: loose, unit: year, calendar: Europe/Berlin, requests_per_unit: 1000 }
  - key: pair
    rate_limit: { name: pair, response_headers: [retry-after], token_bucket: { max_tokens: 5, fill_interval: 24h } }
  - { key: without-tight, rate_limit: { replaces: [{ name: tight }], unlimited: true } }
`;

let redis: RedisServer;
let servers: WeirServer[] = [];
let clients: RlsClient[] = [];
beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  for (const client of clients) client.close();
  await Promise.all(servers.map((server) => server.stop()));
});
afterAll(() => redis.stop());

async function start(count: number, env: NodeJS.ProcessEnv = {}): Promise<void> {
  const redisEnv = { REDIS_URL: `127.0.0.1:${redis.port}`, ...env };
  servers = await Promise.all(
    Array.from({ length: count }, () => startWeir({ policy: POLICY, env: redisEnv })),
  );
  // Several connections to each server, so that requests overlap.
  clients = servers.flatMap(({ grpcPort }) => [1, 2, 3].map(() => new RlsClient(grpcPort)));
}

/** Sends {@link REQUESTS} to all servers at once, and returns how many are allowed. */
async function burst(key: string, value: string): Promise<number> {
  const replies = await Promise.all(
    Array.from({ length: REQUESTS }, (_, i) =>
      (clients[i % clients.length] as RlsClient).ask('d', [descriptor([`${key}=${value}`])]),
    ),
  );
  // No request failed.
  expect([...new Set(replies.map(({ code, details }) => `${code} ${details}`))]).toEqual(['0 ']);
  return replies.filter(({ response }) => response?.overallCode === CODE.OK).length;
}

/** Returns the remaining hits of the limit that is not `tight`. */
async function left(key: string, value: string): Promise<number | undefined> {
  const look = descriptor([`${key}=${value}`], { hitsAddend: 0 });
  const { response } = await (clients[0] as RlsClient).ask('d', [look, descriptor(['without-tight'])]);
  expect(response?.statuses[0]?.currentLimit?.name).not.toBe('tight');
  return response?.statuses[0]?.limitRemaining;
}

/** Returns the sum of a counter over all servers. */
async function counted(name: string): Promise<number> {
  const texts = await Promise.all(servers.map(({ httpPort }) => httpRequest(httpPort, '/metrics')));
  const lines = texts.flatMap(({ body }) => body.split('\n').filter((line) => line.startsWith(`${name} `)));
  return lines.reduce((sum, line) => sum + Number(line.slice(name.length)), 0);
}

async function expectTightWindows(value: string): Promise<void> {
  for (const key of ['mixed', 'windows']) {
    expect(await burst(key, value)).toBe(TIGHT);
    expect(await left(key, value)).toBe(1000 - TIGHT);
  }
}

describe(`${REQUESTS} simultaneous requests on a list of two limits, over two servers on one Redis`, () => {
  test('allow exactly the tokens of the tighter limit, and take the same number from the other', async () => {
    await start(2);
    await expectTightWindows('a');
    expect(await burst('tokens', 'a')).toBe(TIGHT);
    expect(await left('tokens', 'a')).toBe(100 - TIGHT);
    const decisions = (labels: string) => counted(`weir_decisions_total{domain="d",${labels}}`);
    expect(await decisions('rule="tokens[tight]",code="OVER_LIMIT"')).toBe(REQUESTS - TIGHT);
    expect(await decisions('rule="tokens[loose]",code="OVER_LIMIT"')).toBe(0);
    // The candidate also sees the denied requests: it would have allowed 150 of 200, including the peek above.
    const candidates = (live: string, candidate: string) =>
      counted(
        `weir_candidate_decisions_total{domain="d",rule="tokens",live="${live}",candidate="${candidate}"}`,
      );
    expect((await candidates('OK', 'OK')) + (await candidates('OVER_LIMIT', 'OK'))).toBe(150);
    expect((await candidates('OK', 'OVER_LIMIT')) + (await candidates('OVER_LIMIT', 'OVER_LIMIT'))).toBe(51);
  });

  test('do the same with windows and STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', async () => {
    await start(2, { STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' });
    await expectTightWindows('stop');
  });
});

test.each([{ LOCAL_CACHE_SIZE_IN_BYTES: '1000000' }, { DENY_CACHE_MAX_AGE: '0s' }])(
  'a deny cache, or none, does not change the counts: %j',
  async (env) => {
    await start(2, env);
    for (const [key, limit] of [
      ['tokens', 100],
      ['mixed', 1000],
      ['windows', 1000],
    ] as const) {
      const value = Object.keys(env)[0] as string;
      expect(await burst(key, value)).toBe(TIGHT);
      expect(await burst(key, value)).toBe(0);
      expect(await left(key, value)).toBe(limit - TIGHT);
    }
    // An exhausted limit in shadow mode does not change the result.
    expect(await burst('watched', Object.keys(env)[0] as string)).toBe(TIGHT);
    expect(await left('watched', Object.keys(env)[0] as string)).toBe(1000 - TIGHT);
  },
);

test('with QUOTA_MODE, a request is denied when all limits are used up, and takes what each has left', async () => {
  await start(2, { QUOTA_MODE: 'true' });
  expect(await burst('tokens', 'quota')).toBe(100);
});

test('a server that is killed during requests leaves the limits of a list consistent', async () => {
  await start(2);
  const [dying, living] = servers as [WeirServer, WeirServer];
  const asked = clients.map((client) =>
    Array.from({ length: 40 }, () => client.ask('d', [descriptor(['tokens=killed'])]).catch(() => undefined)),
  );
  await Promise.race(asked.flat());
  await dying.stop('SIGKILL');
  await Promise.all(asked.flat());
  clients = [1, 2, 3].map(() => new RlsClient(living.grpcPort));
  await burst('tokens', 'killed');
  expect(await burst('tokens', 'killed')).toBe(0);
  expect(await left('tokens', 'killed')).toBe(100 - TIGHT);
});

test('workers add up what candidates saw', async () => {
  await start(1, { WORKERS: '2' });
  await waitFor('both workers to serve', async () => {
    const { body } = await httpRequest((servers[0] as WeirServer).httpPort, '/healthcheck?detail');
    const { workers } = JSON.parse(body) as { workers: { status: string }[] };
    return workers.length === 2 && workers.every(({ status }) => status === 'SERVING');
  });
  expect(await burst('tokens', 'c')).toBe(TIGHT);
  const total = async () => {
    const sums = await Promise.all(
      ['OK', 'OVER_LIMIT'].flatMap((live) =>
        ['OK', 'OVER_LIMIT'].map((candidate) =>
          counted(
            `weir_candidate_decisions_total{domain="d",rule="tokens",live="${live}",candidate="${candidate}"}`,
          ),
        ),
      ),
    );
    return sums.reduce((sum, one) => sum + one, 0);
  };
  expect(await total()).toBe(REQUESTS);
});

test('descriptors that together ask for more than their bucket holds get no retry time', async () => {
  await start(1);
  const [client] = clients as [RlsClient];
  const ask = (key: string, ...hits: number[]) =>
    client.ask(
      'd',
      hits.map((hitsAddend) => descriptor([`pair=${key}`], { hitsAddend })),
    );
  const { response: never } = await ask('never', 4, 4);
  expect(never?.overallCode).toBe(CODE.OVER_LIMIT);
  expect(never?.responseHeadersToAdd).toEqual([]);
  // A full bucket has five tokens, one a day, which is the time that it takes to fill.
  expect(never?.statuses.map(({ durationUntilResetSeconds }) => durationUntilResetSeconds)).toEqual([
    0, 432_000,
  ]);
  await ask('later', 2);
  const { response: later } = await ask('later', 2, 2);
  expect(later?.responseHeadersToAdd).toEqual([
    { key: 'retry-after', value: expect.stringMatching(/^86(400|399)$/) },
  ]);
});
