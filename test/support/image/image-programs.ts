import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../process/tools.js';

/** Path of weir in the image. */
const HOME_IN_IMAGE = '/weir/';

/**
 * Changes the programs of the image's /bin (deploy/bin), copied to `folder`, to find weir at `home` instead of /weir. A
 * container engine would make `folder`'s parent the root of the file system instead.
 */
export function relocatePrograms(folder: string, home: string): void {
  for (const name of imagePrograms()) {
    const path = join(folder, name);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(HOME_IN_IMAGE, `'${home}'/`));
  }
}

/** Returns the names of the programs in the image's /bin. */
export function imagePrograms(): readonly string[] {
  return readdirSync(join(repositoryRoot, 'deploy/bin'));
}

/**
 * Creates a copy of the image's root below `root`, with a /bin that runs this checkout's build. Returns the folder of
 * the programs.
 */
export function copyImagePrograms(root: string): string {
  const bin = join(root, 'bin');
  mkdirSync(bin, { recursive: true });
  for (const name of imagePrograms()) {
    writeFileSync(join(bin, name), readFileSync(join(repositoryRoot, 'deploy/bin', name)));
    chmodSync(join(bin, name), 0o755);
  }
  relocatePrograms(bin, repositoryRoot);
  return bin;
}
