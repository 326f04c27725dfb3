import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { assetPath } from '../../../src/assets.js';

/** The repository: build/ lies right below it. */
export const repositoryRoot = assetPath('..');

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** `WEIR_TEST_REDIS_SERVER` for `redis-server`: the variable that tells where it is. */
export function variableOf(name: string): string {
  return `WEIR_TEST_${name.toUpperCase().replaceAll('-', '_')}`;
}

/**
 * Fetches tools that are neither named by WEIR_TEST_<NAME> nor in .tools/ yet, for programs that only know from their
 * arguments what they need. Progress goes to stderr. Throws an Error where one cannot be had.
 */
export function fetchTools(names: readonly string[]): void {
  const wanted = names.filter((name) => (process.env[variableOf(name)] ?? '') === '');
  if (wanted.length === 0) return;
  execFileSync(process.execPath, ['.ci/tools.mjs', ...wanted], {
    cwd: repositoryRoot,
    stdio: ['ignore', 2, 2],
  });
}

/** As {@link toolPath}, but undefined for a tool that is not here: for tests that `npm test` names as skipped. */
export function optionalToolPath(name: string): string | undefined {
  const given = process.env[variableOf(name)];
  if (given !== undefined && given !== '') return given;
  const folders = [join(repositoryRoot, '.tools/bin'), ...(process.env['PATH'] ?? '').split(delimiter)];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/**
 * Path of a program that tests run beside weir: `redis-server`, `redis-server-old`, `valkey-server`, `envoy`,
 * `kubernetes-validate`, `grpcurl`, `h2spec`, `ghz`, `connectconformance`, `grpc-go-client`, `xds-server`, `python-
 * grpc` (a python3 that can import grpc), `python-hpack`, `node20`, `h2load`,
 * `nutcracker`. Taken from WEIR_TEST_<NAME>, then from what `npm test` fetched into .tools/, then from PATH. Throws a
 * sentence where it is missing.
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
