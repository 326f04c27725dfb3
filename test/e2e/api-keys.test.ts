import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { withChanges } from '../support/envoy/envoy.js';
import { SECURITIES, type Stack, startStack } from '../support/envoy/stack.js';
import { headerOf, httpRequest } from '../support/process/http-client.js';
import { repositoryRoot } from '../support/process/tools.js';

const KEYS = { first: 'acme-key-1', second: 'acme-key-2', stranger: 'nobody-knows-this-one' };
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const POLICY = withChanges(readFileSync(join(repositoryRoot, 'deploy/policies/open-api.yaml'), 'utf8'), [
  ['sha256: {}', `sha256: { "${sha256(KEYS.first)}": acme, "${sha256(KEYS.second)}": acme }`],
]);

describe.each(SECURITIES)('in %s', (security) => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startStack({
      security,
      policy: POLICY,
      envoyFile: 'deploy/envoy/envoy-api-key.yaml',
    });
  });

  async function remaining(key: string, path = '/open/v5/user-chats'): Promise<number> {
    const answer = await httpRequest(stack.envoy.port, path, { headers: { 'x-api-key': key } });
    expect(answer.status).toBe(200);
    return Number(headerOf(answer, 'x-ratelimit-remaining'));
  }

  test('shares a bucket between two keys of one tenant, and gives an unknown key its own', async () => {
    const started = performance.now();
    for (let turn = 0; turn < 20; turn += 1) await remaining(turn % 2 === 0 ? KEYS.first : KEYS.second);
    const left = await remaining(KEYS.second);
    const came = Math.floor((performance.now() - started) / 100) + 1;
    expect(left).toBeGreaterThanOrEqual(79);
    expect(left).toBeLessThanOrEqual(Math.min(99, 79 + came));
    await expect(remaining(KEYS.stranger)).resolves.toBe(99);
  });

  test('answers 401 to a request without a key', async () => {
    const answer = await httpRequest(stack.envoy.port, '/open/v5/user-chats');
    expect(answer.status).toBe(401);
  });

  test('writes no key to the log', () => {
    const log = stack.weir.process.lines().join('\n');
    for (const key of Object.values(KEYS)) expect(log).not.toContain(key);
  });
});
