import { expect, test } from '@jest/globals';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { startPausableProxy } from '../../support/redis/pausable-proxy.js';
import { startRedis } from '../../support/redis/redis-server.js';
import { startWeir } from '../../support/weir/weir.js';
import { isAllowed, REQUEST } from './poisson.js';

const POLICY = `
domain: shop
descriptors:
  - key: customer
    rate_limit:
      token_bucket: { max_tokens: 10000, tokens_per_fill: 1, fill_interval: 1s }
      lease: { for: 10s, max: 100 }
`;

test('G6: a hot key does not notice a pause of Redis while its process has tokens', async () => {
  const redis = await startRedis();
  const proxy = await startPausableProxy(redis.port);
  const { grpcPort } = await startWeir({ policy: POLICY, env: { REDIS_URL: `127.0.0.1:${proxy.port}` } });
  const client = new RlsClient(grpcPort);
  // Each lease now has 100 tokens. When a quarter is left, the next lease is requested.
  for (let i = 0; i < 400; i++) expect(isAllowed(await client.send(REQUEST))).toBe(true);
  proxy.pause('replies');
  for (let i = 0; i < 20; i++) expect(isAllowed(await client.send(REQUEST))).toBe(true);
  proxy.resume();
});
