import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../process/tools.js';

/** Where the image holds weir. */
const HOME_IN_IMAGE = '/weir/';

/**
 * Lets the programs of the image's /bin (deploy/bin), copied to `folder`, find weir at `home` in the place of /weir:
 * what a container engine would do by making `folder`'s parent the root of the file system.
 */
export function relocatePrograms(folder: string, home: string): void {
  for (const name of imagePrograms()) {
    const path = join(folder, name);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(HOME_IN_IMAGE, `'${home}'/`));
  }
}

/** Names of the programs that the image has in /bin. */
export function imagePrograms(): readonly string[] {
  return readdirSync(join(repositoryRoot, 'deploy/bin'));
}

/**
 * A stand-in of the image's root below `root`: /bin as there, running this checkout's build. Returns the folder of the
 * programs.
 */
export function standInPrograms(root: string): string {
  const bin = join(root, 'bin');
  mkdirSync(bin, { recursive: true });
  for (const name of imagePrograms()) {
    writeFileSync(join(bin, name), readFileSync(join(repositoryRoot, 'deploy/bin', name)));
    chmodSync(join(bin, name), 0o755);
  }
  relocatePrograms(bin, repositoryRoot);
  return bin;
}
