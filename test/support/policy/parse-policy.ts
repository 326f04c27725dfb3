import { openFile } from '../../../src/config/read/policy-source.js';
import type { TableFiles } from '../../../src/config/read/read-derive.js';
import { type LoadOptions, readDomain } from '../../../src/config/read/read-domain.js';
import type { ProblemList } from '../../../src/config/yaml/config-problem.js';
import type { CompiledPolicy } from '../../../src/policy/compiled-policy.js';
import { buildPolicy } from './build-policy.js';

/** Result of parsing one policy file. */
export interface ParsedPolicy {
  /** Absent if the file contains an error. */
  readonly policy: CompiledPolicy | undefined;
  readonly problems: ProblemList;
  /** Files named by `sha256_file`, with their problems. */
  readonly tableFiles: readonly ProblemList[];
}

/**
 * Parses one policy file: reads the YAML, checks it completely and compiles it. Every problem of the file is collected;
 * a policy is returned only if none of them is an error. `readFile` reads the files named by `sha256_file`; relative
 * names are resolved against `file`.
 */
export function parsePolicy(
  file: string,
  bytes: Uint8Array,
  readFile: TableFiles['read'],
  options: LoadOptions = {},
): ParsedPolicy {
  const { source, problems } = openFile(file, bytes);
  if (source === undefined) return { policy: undefined, problems, tableFiles: [] };
  const { spec, tableFiles } = readDomain([source], { read: readFile, digestOf: () => '' }, options);
  return { policy: spec === undefined ? undefined : buildPolicy(spec), problems, tableFiles };
}
