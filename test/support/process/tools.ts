import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { assetPath } from '../../../src/runtime/assets.js';

/** Path of the repository, the parent of build/. */
export const repositoryRoot = assetPath('..');

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns the variable with the path of a tool: `WEIR_TEST_REDIS_SERVER` for `redis-server`. */
export function variableOf(name: string): string {
  return `WEIR_TEST_${name.toUpperCase().replaceAll('-', '_')}`;
}

/**
 * Fetches tools that WEIR_TEST_<NAME> does not set and that are not in .tools/ yet, for programs whose arguments
 * determine which tools they need. Progress is written to stderr. Throws an Error if a tool is not available.
 */
export function fetchTools(names: readonly string[]): void {
  const wanted = names.filter((name) => (process.env[variableOf(name)] ?? '') === '');
  if (wanted.length === 0) return;
  execFileSync(process.execPath, ['.ci/tools.mjs', ...wanted], {
    cwd: repositoryRoot,
    stdio: ['ignore', 2, 2],
  });
}

/** Same as {@link toolPath}, but returns undefined for a missing tool: for tests that `npm test` lists as skipped. */
export function optionalToolPath(name: string): string | undefined {
  const given = process.env[variableOf(name)];
  if (given !== undefined && given !== '') return given;
  const folders = [join(repositoryRoot, '.tools/bin'), ...(process.env['PATH'] ?? '').split(delimiter)];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/**
 * Returns the path of a program that tests run next to weir: `redis-server`, `redis-server-old`, `valkey-server`,
 * `envoy`, `kubernetes-validate`, `grpcurl`, `h2spec`, `ghz`, `connectconformance`, `grpc-go-client`, `xds-server`,
 * `python-grpc` (a python3 that can import grpc), `node20`, `h2load`, `nutcracker`. The path comes from
 * WEIR_TEST_<NAME>, from .tools/ where `npm test` puts downloads, or from PATH, in this order. Throws an error if the
 * program is missing.
 */
export function toolPath(name: string): string {
  const path = optionalToolPath(name);
  if (path === undefined) {
    throw new Error(
      `${name} is missing: run \`node .ci/tools.mjs ${name}\`, or set ${variableOf(name)} to the path of one`,
    );
  }
  return path;
}
