import { execFileSync } from 'node:child_process';
import type { TempDir } from '../process/temp-dir.js';
import { repositoryRoot } from '../process/tools.js';

/** The last commit with all features; see docs/versions.md. */
const COMMIT = '0c7654cc';
/** Paths that a server of the first edition is built from. */
const SOURCES = ['package.json', 'package-lock.json', 'tsconfig.json', '.ci', 'src', 'proto', 'deploy'];
const MAX_ARCHIVE_BYTES = 256 * 1024 * 1024;

/** Returns why the first edition cannot be built here, or undefined. */
export function firstEditionMissing(): string | undefined {
  try {
    execFileSync('git', ['cat-file', '-e', `${COMMIT}^{commit}`], { cwd: repositoryRoot, stdio: 'ignore' });
    return undefined;
  } catch {
    return `commit ${COMMIT} is not in this checkout; fetch the full history, for example with git fetch --unshallow`;
  }
}

/** Builds the first edition in a folder, with the packages of its own lock file. Returns the compiled command. */
export function buildFirstEdition(folder: TempDir): string {
  const archive = execFileSync('git', ['archive', COMMIT, ...SOURCES], {
    cwd: repositoryRoot,
    maxBuffer: MAX_ARCHIVE_BYTES,
  });
  execFileSync('tar', ['x', '-C', folder.path], { input: archive });
  execFileSync(process.execPath, ['.ci/prepare.mjs', '--serving'], {
    cwd: folder.path,
    stdio: ['ignore', process.stderr.fd, 'inherit'],
  });
  return folder.join('build/src/main.js');
}
