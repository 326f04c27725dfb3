import { describe, expect, test } from '@jest/globals';
import { RlsClient } from '../support/grpc/rls-client.js';
import { startWeir } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - key: k
    rate_limit: { token_bucket: { max_tokens: 100, fill_interval: 1h } }
`;

describe('RLS_CODEC', () => {
  /*
   * Domain d, one descriptor k=v, whose hits_addend comes as 5 and then, empty, again. By protobuf's rules the two are
   * merged; the reference codec keeps the last one alone, a peek.
   */
  const ask = Buffer.from('0a0164 120e 0a06 0a016b 120176 1a020805 1a00'.replaceAll(' ', ''), 'hex');

  test.each([
    ['is fast by default', {}, 95],
    ['fast takes the codec written by hand', { RLS_CODEC: 'fast' }, 95],
    ['reference takes @grpc/proto-loader', { RLS_CODEC: 'reference' }, 100],
  ])('%s', async (_name, env, remaining) => {
    const server = await startWeir({ env, policy: POLICY });
    const client = new RlsClient(server.grpcPort);
    try {
      const { response } = await client.send(ask);
      expect(response?.statuses).toMatchObject([{ limitRemaining: remaining }]);
    } finally {
      client.close();
      await server.stop();
    }
  });

  test('anything else ends the start with a line that names it', async () => {
    const server = await startWeir({ env: { RLS_CODEC: 'slow' }, untilHealthy: false });
    expect((await server.process.exited).code).not.toBe(0);
    expect(server.process.lines().join('\n')).toContain('RLS_CODEC: "slow" is not one of fast, reference');
  });
});
