/*
 * Tests large requests, which keep Redis busy for long: they wait for each other, and other requests do not wait for
 * them.
 */
import { expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { RlsClient, type RlsReply } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { startWeir } from '../support/weir/weir.js';

const POLICY = `domain: d
on_store_failure: allow
descriptors:
  - { key: many, rate_limit: { unit: year, requests_per_unit: 1000000 } }
  - { key: watched, phase: monitoring, rate_limit: { unit: year, requests_per_unit: 1 } }
  - { key: few, rate_limit: { unit: year, requests_per_unit: 5 } }
`;
/** Few enough descriptors that the service does not let the requests wait for their turns. */
const WIDTH = 30;
const FLOOD = 60;
/** At most 600 limits wait, of which large requests may use half. */
const MOST_WAITING = 30;

function codes(replies: readonly RlsReply[]): (number | undefined)[] {
  return replies.map(({ response }) => response?.overallCode);
}

function countOf(all: readonly unknown[], one: unknown): number {
  return all.filter((other) => other === one).length;
}

/** The codes of all answers while Redis was paused, and the metrics of weir afterwards. */
interface Flooded {
  readonly small: readonly (number | undefined)[];
  readonly watched: readonly (number | undefined)[];
  readonly flood: readonly (number | undefined)[];
  readonly metrics: string;
}

/** Floods a new weir with large requests while Redis is paused. */
async function flooded(): Promise<Flooded> {
  const redis = await startRedis();
  const server = await startWeir({
    policy: POLICY,
    env: { REDIS_URL: `127.0.0.1:${redis.port}`, REDIS_TIMEOUT: '30s', REDIS_MAX_IN_FLIGHT: '600' },
  });
  const clients = Array.from({ length: 4 }, () => new RlsClient(server.grpcPort));
  const [floodClient, otherClient, smallClient, metricsClient] = clients as [
    RlsClient,
    RlsClient,
    RlsClient,
    RlsClient,
  ];
  const wide = (name: string) => Array.from({ length: WIDTH }, (_, i) => descriptor([`many=${name}${i}`]));
  const one = (client: RlsClient): Promise<RlsReply> => client.ask('d', [descriptor(['few=x'])]);
  expect(codes([await one(smallClient), await one(otherClient), await one(floodClient)])).toEqual([
    CODE.OK,
    CODE.OK,
    CODE.OK,
  ]);

  // New takes wait until Redis continues.
  redis.pause();
  const flood = Array.from({ length: FLOOD }, (_, n) => floodClient.ask('d', wide(`g${n}`)));
  const watched = Array.from({ length: FLOOD }, () =>
    metricsClient.ask(
      'd',
      Array.from({ length: WIDTH }, (_, i) => descriptor([`watched=${i}`])),
    ),
  );
  // Answered immediately, because the queue was full.
  const early: RlsReply[] = [];
  for (const reply of flood) void reply.then((given) => early.push(given));
  await waitFor('the answers for which there is no room', () => early.length >= FLOOD - MOST_WAITING);
  const calls = Array.from({ length: 30 }, () => one(smallClient));
  redis.resume();

  const answers = {
    small: codes(await Promise.all(calls)),
    watched: codes(await Promise.all(watched)),
    flood: codes(await Promise.all(flood)),
  };
  const metrics = await (await fetch(`http://127.0.0.1:${server.httpPort}/metrics`)).text();
  return { ...answers, metrics };
}

test('a flood of large requests takes no capacity from others, and bypasses no limit', async () => {
  let result = await flooded();
  // A Redis that has not replied for 250 ms counts as unavailable. A loaded machine may need several attempts.
  for (let again = 0; again < 9 && result.metrics.includes('reason="overloaded"'); again++)
    result = await flooded();
  const { small, watched, flood, metrics } = result;
  // Two of five tokens were left; a full queue allows no request.
  expect(countOf(small, CODE.OK)).toBe(2);
  // The queue was full for some of these, too, but no limit that they match can deny.
  expect(countOf(watched, CODE.OK)).toBe(FLOOD);
  const passed = countOf(flood, CODE.OK);
  expect(passed + countOf(flood, CODE.OVER_LIMIT)).toBe(FLOOD);
  // At most half of the queue, plus what Redis had received already.
  expect(passed).toBeGreaterThanOrEqual(1);
  expect(passed).toBeLessThanOrEqual(MOST_WAITING);
  expect(metrics).not.toMatch(/weir_store_errors_total\{[^}]*\} [1-9]/);
});
