import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { runEngineCase } from '../fuzz/engine-case.js';
import { runHpackCase } from '../fuzz/hpack-case.js';
import { PAST_FAILURES } from '../fuzz/past-failures.js';
import { runToEnd } from '../support/process/processes.js';
import { repositoryRoot } from '../support/process/tools.js';

/** The seeds are fixed, so that a change of the code does not meet new cases. `npm run fuzz` draws new seeds. */
const CASES = ['--seed', '1', '--cases', '40000'];
/** Long enough for a busy machine. */
const TIMEOUT_MS = 120_000;

describe('mutated frames and header blocks', () => {
  test('past failures do not fail again', () => {
    for (const seed of PAST_FAILURES) {
      runHpackCase(seed, { inputs: [] });
      runEngineCase(seed, { inputs: [] });
    }
  });

  test(
    'cause no exceptions, no hangs and no memory growth',
    async () => {
      const run = join(repositoryRoot, 'build/test/fuzz/run.js');
      const { code, stdout, stderr } = await runToEnd(process.execPath, [run, ...CASES], {
        timeoutMs: TIMEOUT_MS,
      });
      if (code !== 0) throw new Error(`${stdout}\n${stderr}`);
      expect(stdout).toMatch(/^\d+ s: 40000 cases/m);
    },
    TIMEOUT_MS + 10_000,
  );
});
