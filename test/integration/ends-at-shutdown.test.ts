/* Ends of holds that could not reach Redis, when weir shuts down. */
import { beforeEach, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - key: customer
    rate_limit: { concurrency: { max: 2, expires_after: 1h } }
`;

let redis: RedisServer;
beforeEach(async () => {
  redis = await startRedis();
});

function start(grace: string): Promise<WeirServer> {
  return startWeir({
    policy: POLICY,
    env: { REDIS_URL: `127.0.0.1:${redis.port}`, REDIS_TIMEOUT: '100ms', SHUTDOWN_GRACE: grace },
  });
}

/** Starts two requests, and ends them while Redis does not answer. */
async function endWithoutRedis(server: WeirServer): Promise<void> {
  const client = new RlsClient(server.grpcPort);
  const ask = (entry: string) => client.ask('d', [descriptor([entry])], { timeoutMs: 5000 });
  const tokens = [];
  for (let i = 0; i < 2; i++) {
    const { response } = await ask('customer=a');
    tokens.push(String(response?.dynamicMetadata?.['hold']));
  }
  redis.pause();
  for (const token of tokens) expect((await ask(`hold=${token}`)).response?.overallCode).toBe(CODE.OK);
  client.close();
}

const lost = (server: WeirServer) =>
  server.log().flatMap(({ lostEnds }) => (lostEnds === undefined ? [] : [lostEnds]));

test('are sent before weir exits if Redis answers within SHUTDOWN_GRACE', async () => {
  const server = await start('60s');
  await endWithoutRedis(server);
  const stopped = server.stop();
  await server.process.waitForLine(/draining/);
  redis.resume();
  expect((await stopped).code).toBe(0);
  expect(lost(server)).toEqual([]);
  const next = await start('10s');
  const client = new RlsClient(next.grpcPort);
  const { response } = await client.ask('d', [descriptor(['customer=a'], { hitsAddend: 0 })]);
  expect(response?.statuses[0]?.limitRemaining).toBe(2);
});

test('are counted in the log if Redis does not answer', async () => {
  const server = await start('300ms');
  await endWithoutRedis(server);
  expect((await server.stop()).code).toBe(0);
  expect(lost(server)).toEqual([2]);
  redis.resume();
});
