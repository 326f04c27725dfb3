/*
 * Three weirs on one Redis, each with an Envoy, lease tokens of one limit while they and their Redis fail. The log of
 * the upstream shows whether the limit holds. With WEIR_TEST_FULL, each test runs for a minute.
 */
import { describe, expect, jest, test } from '@jest/globals';
import { largestBurst, mostInSecond } from './bounds.js';
import { send, startThreeServers, type ThreeServers } from './three-servers.js';

const SECONDS = process.env['WEIR_TEST_FULL'] === undefined ? 0 : 60;
/** Time between two faults, in milliseconds. */
const CALM_MS = 500;

jest.setTimeout((60 + 3 * SECONDS) * 1000);

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Faults of one server, and of Redis. */
const FAULTS: readonly ((servers: ThreeServers, index: number) => Promise<unknown>)[] = [
  (servers, index) => servers.replace(index),
  async ({ weirs }, index) => {
    const { process } = weirs[index]!;
    process.signal('SIGSTOP');
    await sleep(300);
    process.signal('SIGCONT');
  },
  async ({ redis }) => {
    redis.pause();
    await sleep(40);
    redis.resume();
  },
];

/** Causes each fault once, on one of the servers, and repeats this for {@link SECONDS} with the next server. */
async function disturb(servers: ThreeServers): Promise<void> {
  const end = performance.now() + SECONDS * 1000;
  let index = 0;
  do {
    for (const fault of FAULTS) {
      await sleep(CALM_MS);
      await fault(servers, index++ % servers.weirs.length);
    }
    await sleep(CALM_MS);
    index++;
  } while (performance.now() < end);
}

/**
 * Sends requests while faults occur. Resolves with the log of the upstream, the answers by status, and the number of
 * requests that the servers have saved Redis.
 */
async function runWithFaults(limit: string, perSecond: number, pauseMs: number) {
  const policy = `domain: shop\ndescriptors:\n  - key: customer\n    rate_limit: { ${limit} }\n`;
  const servers = await startThreeServers(policy);
  const { seen, envoyPorts } = servers;
  const statuses = await send({ ports: envoyPorts, perSecond, pauseMs, until: disturb(servers) });
  return { seen, statuses, saved: await servers.saved() };
}

describe('three servers that are killed or stopped, have wrong clocks, or wait for Redis', () => {
  const [CAPACITY, REFILL] = [200, 400];
  const bucket = `token_bucket: { max_tokens: ${CAPACITY}, tokens_per_fill: ${REFILL}, fill_interval: 1s }`;
  const FOR_SECONDS = 0.1;

  test.each([
    ['G2: allow at most C + r·t requests in every interval t', true, CAPACITY],
    ['G3: with exact: false, allow at most C + r·(t + d) requests', false, CAPACITY + REFILL * FOR_SECONDS],
  ])('%s', async (_, exact, most) => {
    const lease = `lease: { for: 100ms, max: 100, exact: ${exact} }`;
    // The bucket fills in each pause, so that the next burst can take all of it.
    const { seen, statuses, saved } = await runWithFaults(`${bucket}, ${lease}`, 1800, 500);
    const burst = largestBurst(seen, REFILL);
    expect(burst).toBeLessThanOrEqual(most);
    expect(burst).toBeGreaterThan(CAPACITY / 2);
    expect(statuses.get(429)).toBeGreaterThan(0);
    expect(saved).toBeGreaterThan(0);
  });

  test('G1: take no more tokens than the bucket holds', async () => {
    const [HELD, ALL] = [2000, 'token_bucket: { max_tokens: 2000, tokens_per_fill: 1, fill_interval: 1h }'];
    const { seen, saved } = await runWithFaults(`${ALL}, lease: { for: 100ms, max: 100 }`, 600, 0);
    expect(seen.length).toBeLessThanOrEqual(HELD);
    expect(seen.length).toBeGreaterThan(HELD / 2);
    expect(saved).toBeGreaterThan(0);
  });

  test('G4: allow no more requests in each window than its limit', async () => {
    const LIMIT = 570;
    const window = `unit: second, requests_per_unit: ${LIMIT}, lease: { for: 100ms, max: 100 }`;
    // The limit is used up shortly before its window ends, so leases live until then.
    const { seen, saved } = await runWithFaults(window, 600, 0);
    expect(mostInSecond(seen)).toBeLessThanOrEqual(LIMIT);
    expect(mostInSecond(seen)).toBeGreaterThan(LIMIT / 2);
    expect(saved).toBeGreaterThan(0);
  });
});
