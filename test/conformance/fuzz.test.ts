import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { runEngineCase } from '../fuzz/engine-case.js';
import { runHpackCase } from '../fuzz/hpack-case.js';
import { PAST_FAILURES } from '../fuzz/past-failures.js';
import { runToEnd } from '../support/process/processes.js';
import { repositoryRoot } from '../support/process/tools.js';

/** The same ones each time: a change never fails for a case that its predecessor did not meet. `npm run fuzz` draws. */
const CASES = ['--seed', '1', '--cases', '40000'];
/** For a machine that is busy. */
const TIMEOUT_MS = 120_000;

describe('mutated frames and header blocks', () => {
  test('what failed once does not fail again', () => {
    for (const seed of PAST_FAILURES) {
      runHpackCase(seed, { inputs: [] });
      runEngineCase(seed, { inputs: [] });
    }
  });

  test(
    'nothing is thrown, nothing hangs, nothing grows',
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
