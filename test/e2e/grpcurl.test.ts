import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { FIXED_CLOCK } from '../support/docs/example-runner.js';
import { runToEnd } from '../support/process/processes.js';
import { optionalToolPath, repositoryRoot } from '../support/process/tools.js';
import { startWeir } from '../support/weir/weir.js';

const CALL = 'envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const grpcurl = optionalToolPath('grpcurl');

// As a new user types it, without proto files or settings.
(grpcurl === undefined ? test.skip : test)(
  'the call of docs/concepts.md returns the answer that the page shows',
  async () => {
    const page = readFileSync(join(repositoryRoot, 'docs/concepts.md'), 'utf8');
    const command = /^grpcurl -plaintext -d '(.+)' \\\n {2}127\.0\.0\.1:8081 (\S+)$/m.exec(page);
    const answer = /^```json\n([\s\S]+?)^```$/m.exec(page);
    if (command === null || answer === null)
      throw new Error('docs/concepts.md has no grpcurl call with its answer');
    expect(command[2]).toBe(CALL);
    // A fixed clock makes every digit comparable.
    const weir = await startWeir({ env: FIXED_CLOCK });
    const { stdout } = await runToEnd(grpcurl as string, [
      ...['-plaintext', '-d', command[1] as string],
      ...[`127.0.0.1:${weir.grpcPort}`, CALL],
    ]);
    expect(stdout).toBe(answer[1]);
  },
);
