import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Files that ship beside the compiled code: `proto/`, the bundled policy, Lua scripts. The build copies them below
 * `build/` under the path they have in the repository, so that `build/` and `node_modules/` are all a process needs.
 * The only module that knows where it lies on disk.
 */
const root = join(__dirname, '..');

/** Absolute path of a shipped file or folder, given its path in the repository (`proto`, `package.json`). */
export function assetPath(pathInRepository: string): string {
  return join(root, pathInRepository);
}

/** Text of a shipped file. Throws when the build is incomplete. */
export function readAsset(pathInRepository: string): string {
  return readFileSync(assetPath(pathInRepository), 'utf8');
}

/** The version in package.json. */
export function version(): string {
  return (JSON.parse(readAsset('package.json')) as { version: string }).version;
}
