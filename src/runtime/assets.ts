import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Finds files that ship with the compiled code: `proto/`, the bundled policy, Lua scripts. The build copies them below
 * `build/` under their path in the repository, so a process needs only `build/` and `node_modules/`. No other module
 * knows its own location on disk.
 */
const root = join(__dirname, '../..');

/**
 * Returns the absolute path of a shipped file or folder, given its path in the repository (`proto`, `package.json`).
 */
export function assetPath(pathInRepository: string): string {
  return join(root, pathInRepository);
}

/** The text of a shipped file. Throws if the build is incomplete. */
export function readAsset(pathInRepository: string): string {
  return readFileSync(assetPath(pathInRepository), 'utf8');
}

/** The version in package.json. */
export function version(): string {
  return (JSON.parse(readAsset('package.json')) as { version: string }).version;
}
