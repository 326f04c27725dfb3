/* Tests lists of limits with two real servers on one real Redis. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

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
  - key: dying
    rate_limits:
      - { name: tight, token_bucket: { max_tokens: ${TIGHT}, fill_interval: 24h } }
      - { name: loose, token_bucket: { max_tokens: 100, fill_interval: 24h } }
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

/** Starts `count` servers for the tests of a group. */
function withServers(count: number, env: NodeJS.ProcessEnv = {}): void {
  beforeAll(async () => {
    servers = await Promise.all(Array.from({ length: count }, () => start(env)));
    // Several connections to each server, so that requests overlap.
    clients = servers.flatMap(clientsOf);
  });
}

const start = (env: NodeJS.ProcessEnv = {}): Promise<WeirServer> =>
  startWeir({ policy: POLICY, env: { REDIS_URL: `127.0.0.1:${redis.port}`, ...env } });

const clientsOf = ({ grpcPort }: WeirServer): RlsClient[] => [1, 2, 3].map(() => new RlsClient(grpcPort));

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

/** Expects that a list of any limits allows exactly the hits of the tighter limit, and takes as many from the other. */
async function expectTight(value: string): Promise<void> {
  for (const [key, limit] of [
    ['tokens', 100],
    ['mixed', 1000],
    ['windows', 1000],
  ] as const) {
    expect(await burst(key, value)).toBe(TIGHT);
    expect(await burst(key, value)).toBe(0);
    expect(await left(key, value)).toBe(limit - TIGHT);
  }
  // An exhausted limit in shadow mode does not change the result.
  expect(await burst('watched', value)).toBe(TIGHT);
  expect(await left('watched', value)).toBe(1000 - TIGHT);
}

describe(`${REQUESTS} simultaneous requests on a list of two limits, over two servers on one Redis`, () => {
  withServers(2);

  test('allow exactly the tokens of the tighter limit, and take the same number from the other', async () => {
    for (const key of ['mixed', 'windows']) {
      expect(await burst(key, 'a')).toBe(TIGHT);
      expect(await left(key, 'a')).toBe(1000 - TIGHT);
    }
    expect(await burst('tokens', 'a')).toBe(TIGHT);
    expect(await left('tokens', 'a')).toBe(100 - TIGHT);
    const decisions = (labels: string) => counted(`weir_decisions_total{domain="d",${labels}}`);
    expect(await decisions('rule="tokens[tight]",code="OVER_LIMIT"')).toBe(REQUESTS - TIGHT);
    expect(await decisions('rule="tokens[loose]",code="OVER_LIMIT"')).toBe(0);
  });

  test('a server that is killed during requests leaves the limits of a list consistent', async () => {
    const dying = await start();
    const asked = [...clientsOf(dying), ...clients].map((client) =>
      Array.from({ length: 40 }, () => client.ask('d', [descriptor(['dying=x'])]).catch(() => undefined)),
    );
    await Promise.race(asked.flat());
    await dying.stop('SIGKILL');
    await Promise.all(asked.flat());
    await burst('dying', 'x');
    expect(await burst('dying', 'x')).toBe(0);
    expect(await left('dying', 'x')).toBe(100 - TIGHT);
  });

  test('descriptors that together ask for more than their bucket holds get no retry time', async () => {
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
});

describe.each([
  { LOCAL_CACHE_SIZE_IN_BYTES: '1000000' },
  { DENY_CACHE_MAX_AGE: '0s', STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' },
])('with %j', (env) => {
  withServers(2, env);

  test('two servers count the same', () => expectTight(Object.keys(env)[0] as string));
});

describe('with QUOTA_MODE', () => {
  withServers(2, { QUOTA_MODE: 'true' });

  test('a request is denied when all limits are used up, and takes what each has left', async () => {
    expect(await burst('tokens', 'quota')).toBe(100);
  });
});
