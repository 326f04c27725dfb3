/* Tests that log lines name the request that they belong to, through a real Envoy. */
import { expect, test } from '@jest/globals';
import { LONG_TIMEOUTS, startStack } from '../support/envoy/stack.js';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';

const SERVICE = 'envoy_grpc: { cluster_name: weir }';
const INDENT = ' '.repeat(26);
const SENDS_ID = `${SERVICE}\n${INDENT}initial_metadata: [{ key: x-request-id, value: "%STREAM_ID%" }]`;

test.each([
  ['a number of the connection and the request, as Envoy sends no x-request-id by itself', []],
  ['the x-request-id that the upstream gets, if Envoy is configured to send it', [[SERVICE, SENDS_ID]]],
] as const)('%s', async (_name, changes) => {
  const stack = await startStack({
    weirEnv: { LOG_LEVEL: 'debug' },
    changes: [...LONG_TIMEOUTS, ...changes],
  });
  const headers = { 'x-tenant': 'acme', 'x-api-key': 'k' };
  const { status, body } = await httpRequest(stack.envoy.port, '/open/v4/user-chats', { headers });
  expect(status).toBe(200);
  const line = await waitFor('the line', () => stack.weir.log().find(({ msg }) => msg === 'decision'));
  const id = JSON.parse(body).headers['x-request-id'];
  expect(id).toMatch(/^[\da-f]{8}-[\da-f-]{27}$/);
  expect(line['request']).toEqual(changes.length > 0 ? id : expect.stringMatching(/^\d+\.\d+$/));
});
