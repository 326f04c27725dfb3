import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { FIXED_CLOCK } from '../support/docs/example-runner.js';
import { runToEnd } from '../support/process/processes.js';
import { optionalToolPath, repositoryRoot } from '../support/process/tools.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const CALL = 'envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const grpcurl = optionalToolPath('grpcurl');

/** Runs the grpcurl call of docs/concepts.md as a new user types it, without proto files or settings. */
(grpcurl === undefined ? describe.skip : describe)('grpcurl against a fresh weir', () => {
  let weir: WeirServer;
  beforeAll(async () => {
    weir = await startWeir();
  });

  async function ask(...entries: { key: string; value: string }[]) {
    const request = JSON.stringify({ domain: 'open-api', descriptors: [{ entries }] });
    const address = `127.0.0.1:${weir.grpcPort}`;
    const { code, stdout, stderr } = await runToEnd(grpcurl as string, [
      '-plaintext',
      '-d',
      request,
      address,
      CALL,
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout) as { responseHeadersToAdd?: { key: string; value: string }[] };
  }

  test('returns OK, limit 100, remaining 99 and exactly three headers', async () => {
    const before = Math.floor(Date.now() / 1000);
    const answer = await ask(
      { key: 'tenant', value: 'acme' },
      { key: 'resource_group', value: 'user-chats' },
    );
    expect(answer).toMatchObject({
      overallCode: 'OK',
      statuses: [{ code: 'OK', currentLimit: { requestsPerUnit: 100 }, limitRemaining: 99 }],
    });
    expect(answer.responseHeadersToAdd).toEqual([
      { key: 'x-ratelimit-limit', value: '100' },
      { key: 'x-ratelimit-remaining', value: '99' },
      { key: 'x-ratelimit-reset', value: expect.stringMatching(/^\d+$/) },
    ]);
    const reset = Number(answer.responseHeadersToAdd?.[2]?.value);
    expect(reset).toBeGreaterThanOrEqual(before);
    expect(reset).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000) + 1);
  });

  test('the call of docs/concepts.md returns the answer that the page shows', async () => {
    const page = readFileSync(join(repositoryRoot, 'docs/concepts.md'), 'utf8');
    const command = /^grpcurl -plaintext -d '(.+)' \\\n {2}127\.0\.0\.1:8081 (\S+)$/m.exec(page);
    const answer = /^```json\n([\s\S]+?)^```$/m.exec(page);
    if (command === null || answer === null)
      throw new Error('docs/concepts.md has no grpcurl call with its answer');
    expect(command[2]).toBe(CALL);
    // A fixed clock makes every digit comparable.
    const fixed = await startWeir({ env: FIXED_CLOCK });
    const to = `127.0.0.1:${fixed.grpcPort}`;
    const { stdout } = await runToEnd(grpcurl as string, [
      '-plaintext',
      '-d',
      command[1] as string,
      to,
      CALL,
    ]);
    await fixed.stop();
    expect(stdout).toBe(answer[1]);
  });
});
