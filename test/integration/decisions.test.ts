/*
 * Sends concurrent gRPC requests to real servers. Buckets refill during a burst: weir allows exactly the capacity of a
 * full bucket, plus the tokens that refill between the first and the last answer, which the test computes.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { RlsClient, type RlsReply } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { startCluster } from '../support/redis/cluster.js';
import { startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const PER_SECOND = 10;

interface Burst {
  readonly ok: number;
  readonly overLimit: number;
  readonly firstSentAt: number;
  readonly firstAnsweredAt: number;
  readonly lastSentAt: number;
  readonly lastAnsweredAt: number;
}

function summarise(replies: readonly RlsReply[]): Burst {
  const codes = replies.map((reply) => reply.response?.overallCode);
  return {
    ok: codes.filter((code) => code === CODE.OK).length,
    overLimit: codes.filter((code) => code === CODE.OVER_LIMIT).length,
    firstSentAt: Math.min(...replies.map(({ sentAt }) => sentAt)),
    lastSentAt: Math.max(...replies.map(({ sentAt }) => sentAt)),
    firstAnsweredAt: Math.min(...replies.map(({ answeredAt }) => answeredAt)),
    lastAnsweredAt: Math.max(...replies.map(({ answeredAt }) => answeredAt)),
  };
}

/** Returns the tokens that can refill between two times in milliseconds. */
const tokensBetween = (from: number, to: number) => Math.floor(((to - from) / 1000) * PER_SECOND);

/** The store of the buckets. */
interface Place {
  readonly env: NodeJS.ProcessEnv;
  stop(): Promise<void>;
}

const inMemory = async (): Promise<Place> => ({ env: {}, stop: async () => {} });
const onRedis = async (): Promise<Place> => {
  const redis = await startRedis();
  return { env: { REDIS_URL: `127.0.0.1:${redis.port}` }, stop: () => redis.stop() };
};
const onCluster = async (): Promise<Place> => {
  const cluster = await startCluster({ replicas: 1 });
  return { env: { REDIS_URL: cluster.url, REDIS_TYPE: 'cluster' }, stop: () => cluster.stop() };
};

describe.each([
  { name: 'memory', count: 1, start: inMemory },
  { name: 'two servers on one Redis', count: 2, start: onRedis },
  { name: 'two servers on a Redis Cluster', count: 2, start: onCluster },
])('$name', ({ count, start }) => {
  let place: Place | undefined;
  const servers: WeirServer[] = [];
  const clients: RlsClient[] = [];

  beforeAll(async () => {
    place = await start();
    const { env } = place;
    while (servers.length < count) servers.push(await startWeir({ env }));
    // Each server gets several connections, like those of Envoy's worker threads.
    for (const { grpcPort } of servers) clients.push(new RlsClient(grpcPort), new RlsClient(grpcPort));
    await Promise.all(clients.map((client) => client.ask('open-api', [descriptor(['tenant=warm-up'])])));
  });
  afterAll(async () => {
    await place?.stop();
  });

  const burst = async (count: number, tenant: string): Promise<Burst> => {
    const asked = [descriptor([`tenant=${tenant}`, 'method=GET', 'path=/open/v5/user-chats'])];
    return summarise(
      await Promise.all(
        Array.from({ length: count }, (_, index) =>
          (clients[index % clients.length] as RlsClient).ask('open-api', asked),
        ),
      ),
    );
  };

  test('allows 100 of 200 concurrent requests on a full bucket, and 10 of 100 more a second later', async () => {
    const first = await burst(200, 'acme');
    expect(first.ok + first.overLimit).toBe(200);
    expect(first.ok).toBeGreaterThanOrEqual(100);
    expect(first.ok).toBeLessThanOrEqual(100 + tokensBetween(first.firstSentAt, first.lastAnsweredAt));
    // The bucket was empty at the last denial, and `ok` counts the tokens taken since.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const second = await burst(100, 'acme');
    expect(second.ok + second.overLimit).toBe(100);
    const all = first.ok + second.ok;
    // Refill began with the first decision, and a token can be incomplete at either end. Tokens that refill after the
    // last request do not count.
    expect(all).toBeGreaterThanOrEqual(100 + tokensBetween(first.firstAnsweredAt, second.lastSentAt) - 1);
    expect(all).toBeLessThanOrEqual(100 + tokensBetween(first.firstSentAt, second.lastAnsweredAt));
  });

  // Descriptors of two tenants can be on two servers of a cluster.
  test.each([
    ['one tenant', 'both', 'both'],
    ['two tenants', 'acme-of-two', 'initech-of-two'],
  ])('decides descriptors of %s all or nothing, for every caller', async (_, one, other) => {
    const wide = descriptor([`tenant=${one}`, 'resource_group=other-things']);
    const tight = descriptor([`tenant=${other}`, 'resource_group=user-chats']);
    const started = performance.now();
    const replies = await Promise.all(
      Array.from({ length: 300 }, (_, index) =>
        (clients[index % clients.length] as RlsClient).ask('open-api', [wide, tight]),
      ),
    );
    const { ok, lastAnsweredAt } = summarise(replies);
    expect(ok).toBeGreaterThanOrEqual(100);
    expect(ok).toBeLessThanOrEqual(100 + tokensBetween(started, lastAnsweredAt));
    // A peek reports the remaining tokens: exactly the allowed hits were taken, apart from the refill of the 1000.
    const peek = await (clients[0] as RlsClient).ask('open-api', [{ ...wide, hitsAddend: 0 }]);
    const left = peek.response?.statuses[0]?.limitRemaining ?? Number.NaN;
    expect(left).toBeGreaterThanOrEqual(1000 - ok);
    expect(left).toBeLessThanOrEqual(Math.min(1000, 1000 - ok + tokensBetween(started, peek.answeredAt) + 1));
  });
});
