import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { loadPolicies } from '../../config/files/load-policies.js';
import { formatProblem } from '../../config/yaml/config-problem.js';
import { workingDirectoryHint } from '../../runtime/working-directory.js';
import { EXIT, type Io } from '../io.js';
import {
  RATELIMIT_CONFIG_CHECK_FLAGS as FLAGS,
  goUsageError,
  RATELIMIT_CONFIG_CHECK_HELP,
  readGoFlags,
} from './ratelimit-flags.js';

const COMMAND = 'ratelimit-config-check';

/** Runs `weir ratelimit-config-check`: prints results and errors to standard output, like the original. */
export async function runRatelimitConfigCheck(args: readonly string[], io: Io): Promise<number> {
  const flags = readGoFlags(COMMAND, args, FLAGS);
  if (flags === undefined) {
    io.out(RATELIMIT_CONFIG_CHECK_HELP);
    return EXIT.OK;
  }
  const directory = flags.values.get('config_dir')?.at(-1);
  if (directory === undefined)
    throw goUsageError(COMMAND, 'specify the directory of the policy files with -config_dir');
  io.out(`checking rate limit configs...\nloading config directory: ${directory}\n`);
  let files: readonly string[];
  try {
    files = readdirSync(directory)
      // Kubernetes mounts the files of a ConfigMap in `..data`, and symbolic links next to it point to them.
      .filter((name) => !name.startsWith('..'))
      .sort()
      .map((name) => join(directory, name));
  } catch (error) {
    io.out(
      `error opening directory ${directory}: ${(error as Error).message}${workingDirectoryHint(directory)}\n`,
    );
    return EXIT.FAILED;
  }
  for (const file of files) io.out(`opening config file: ${file}\n`);
  const mergeDomains = flags.values.get('merge_domain_configs')?.at(-1) === 'true';
  const { errors, warnings } = loadPolicies(files, { mergeDomains });
  for (const warning of warnings) io.out(`warning: ${formatProblem(warning)}\n`);
  for (const error of errors) io.out(`error loading rate limit configs: ${formatProblem(error)}\n`);
  if (errors.length > 0) return EXIT.FAILED;
  io.out('all rate limit configs ok\n');
  return EXIT.OK;
}
