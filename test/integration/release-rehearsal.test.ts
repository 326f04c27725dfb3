/*
 * Rehearses a release of this checkout (.ci/rehearse.mjs). The rehearsal damages what it published in several ways, and
 * fails unless the commands of docs/operate/verify.md refuse each of them.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { runToEnd, startProcess } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { optionalToolPath, repositoryRoot } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';

const TIMEOUT_MS = 600_000;
const missing = ['cosign', 'crane', 'helm'].filter((name) => optionalToolPath(name) === undefined);
const { version } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as {
  readonly version: string;
};

(missing.length === 0 ? describe : describe.skip)(
  `the rehearsal of a release${missing.length === 0 ? '' : ` (without ${missing.join(', ')})`}`,
  () => {
    let ended: Awaited<ReturnType<typeof runToEnd>>;
    beforeAll(async () => {
      ended = await runToEnd(process.execPath, ['.ci/release.mjs', '--rehearse'], {
        cwd: repositoryRoot,
        // The manual splits the options of the signer at spaces.
        env: { TMPDIR: dirname(new TempDir().write('a folder/.keep', '')) },
        timeoutMs: TIMEOUT_MS,
      });
    }, TIMEOUT_MS);

    test('succeeds, and says that nothing is published', () => {
      const last = /^rehearsed, not published: (\S+), image sha256:[0-9a-f]{64} \(\d+ s\)\n$/;
      expect(ended).toMatchObject({ code: 0, stdout: expect.stringMatching(last) });
      expect(last.exec(ended.stdout)?.[1]).toBe(version);
    });

    test.each([
      'run the stages of deploy/Dockerfile',
      'assemble the image for amd64 and arm64',
      'push the image by digest',
      'push the chart',
      'sign the image, each of its architectures, and the chart',
      'attest cyclonedx for the image and the chart',
      'attest slsaprovenance1 for the image and the chart',
      'sign the checksums',
      'run the commands of docs/operate/verify.md',
      'run weir from the pulled image',
      'serve with the installed npm package, and answer a call',
    ])('can %s', (step) => {
      expect(ended.stderr).toContain(`weir: ok: ${step} (`);
    });

    test.each([
      ['a changed byte in a layer of the image', 'crane validate'],
      ['an image with a changed byte, under a digest of its own', 'cosign verify $SIGNER "$IMAGE"'],
      ['the key of somebody else', 'cosign verify-blob'],
      ['another npm package', 'sha256sum'],
      ['an SBOM without a package', 'jq'],
      ['a chart without a signature', 'cosign verify $SIGNER "$CHART"'],
      ['an image without cyclonedx', 'cosign verify-attestation $SIGNER --type cyclonedx "$IMAGE"'],
      [
        'an image without slsaprovenance1',
        'cosign verify-attestation $SIGNER --type slsaprovenance1 "$IMAGE"',
      ],
      ['a chart that names another digest', 'diff'],
      ['another chart under the version in the registry', 'cmp'],
    ])('refuses %s', (damage, command) => {
      expect(ended.stderr).toContain(`weir: ok: refused: ${damage} (by ${command}) (`);
    });

    test.each([['--rehearse'], ['--rehearse', '--keep']])(
      '%s leaves neither a folder nor a registry when a signal ends it',
      async (...args) => {
        const folder = new TempDir();
        const rehearsal = startProcess(process.execPath, ['.ci/release.mjs', ...args], {
          cwd: repositoryRoot,
          env: { TMPDIR: folder.path },
        });
        const commands = async (): Promise<string> =>
          (await runToEnd('pgrep', ['-f', `registry serve .*${folder.path}`])).stdout;
        const left = (): string[] => readdirSync(folder.path).filter((name) => name.startsWith('weir-'));
        await waitFor('a registry', async () => (await commands()) !== '');
        expect(left()).toHaveLength(1);
        expect(await rehearsal.stop('SIGTERM')).toEqual({ code: 143, signal: null });
        expect(rehearsal.lines().at(-1)).toBe('weir: stopped by SIGTERM');
        expect([await commands(), left()]).toEqual(['', []]);
      },
      TIMEOUT_MS,
    );
  },
);
