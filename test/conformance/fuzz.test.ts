import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { runEngineCase } from '../fuzz/engine-case.js';
import { runHpackCase } from '../fuzz/hpack-case.js';
import { PAST_FAILURES } from '../fuzz/past-failures.js';
import { runToEnd } from '../support/process/processes.js';
import { repositoryRoot } from '../support/process/tools.js';

/** Each time new ones; `npm run test:matrix` adds as many. */
const SECONDS = 10;
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
    `${SECONDS} s of new ones: nothing is thrown, nothing hangs, nothing grows`,
    async () => {
      const run = join(repositoryRoot, 'build/test/fuzz/run.js');
      const { code, stdout, stderr } = await runToEnd(process.execPath, [run, '--seconds', String(SECONDS)], {
        timeoutMs: TIMEOUT_MS,
      });
      process.stdout.write(`fuzz: ${stdout.split('\n')[0]}\n`);
      if (code !== 0) throw new Error(`${stdout}\n${stderr}`);
      expect(stdout).toMatch(/^\d+ s: [1-9]\d* cases/m);
    },
    TIMEOUT_MS + 10_000,
  );
});
