/* HOLD_METADATA_KEY and HOLD_ENTRY: the keys with which weir and Envoy exchange the token of a request. */
import { expect, test } from '@jest/globals';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { startWeir } from '../support/weir/weir.js';

test('a server exchanges tokens under the keys that are set', async () => {
  const policy =
    'domain: d\ndescriptors: [{ key: k, rate_limit: { concurrency: { max: 1 } } }, { key: hold }]\n';
  const server = await startWeir({ policy, env: { HOLD_METADATA_KEY: 'lease', HOLD_ENTRY: 'lease-end' } });
  const client = new RlsClient(server.grpcPort);
  const ask = async (text: string) => (await client.ask('d', [descriptor([text])])).response;
  const token = (await ask('k=v'))?.dynamicMetadata?.['lease'];
  expect(token).toEqual(expect.stringMatching(/^.+$/));
  expect((await ask('k=v'))?.overallCode).toBe(2);
  await ask(`hold=${token}`);
  expect((await ask('k=v'))?.overallCode).toBe(2);
  await ask(`lease-end=${token}`);
  expect((await ask('k=v'))?.overallCode).toBe(1);
});
