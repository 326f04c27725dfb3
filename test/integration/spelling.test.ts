/* Checks the spelling of the manual, the messages and the comments with a dictionary. */
import { describe, expect, test } from '@jest/globals';
import { runToEnd } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { optionalToolPath, repositoryRoot, toolPath } from '../support/process/tools.js';

const CHECKED = ['README.md', 'CHANGELOG.md', 'docs', 'deploy', 'src', 'proto'];

const typos = (...paths: readonly string[]) =>
  runToEnd(toolPath('typos'), ['--config', '.ci/typos.toml', '--format', 'brief', ...paths], {
    cwd: repositoryRoot,
  });

(optionalToolPath('typos') === undefined ? describe.skip : describe)('spelling', () => {
  test('is correct in the manual, in messages and in the source', async () => {
    // Correct words that the dictionary lacks belong in .ci/typos.toml.
    expect(await typos(...CHECKED)).toMatchObject({ code: 0, stdout: '' });
  });

  test('is checked', async () => {
    const folder = new TempDir();
    try {
      const page = folder.write('page.md', 'Requests are recieved by Envoy.\n');
      expect((await typos(page)).stdout).toContain('`recieved` should be `received`');
    } finally {
      folder.remove();
    }
  });
});
