import { openFile } from '../../../src/config/read/policy-source.js';
import type { ReadFile } from '../../../src/config/read/read-derive.js';
import { readDomain } from '../../../src/config/read/read-domain.js';
import type { ProblemList } from '../../../src/config/yaml/config-problem.js';
import { buildPolicy } from '../../../src/policy/build-policy.js';
import type { CompiledPolicy } from '../../../src/policy/compiled-policy.js';

/** What one policy file gave. */
export interface ParsedPolicy {
  /** Absent when the file holds an error. */
  readonly policy: CompiledPolicy | undefined;
  readonly problems: ProblemList;
  /** Files named by `sha256_file`, with what was wrong in each. */
  readonly tableFiles: readonly ProblemList[];
}

/**
 * Reads one policy file by itself: YAML, checked completely and compiled. Every problem of the file is collected; there
 * is a policy only if none of them is an error. `readFile` gets the files named by `sha256_file`, relative ones
 * resolved against `file`.
 */
export function parsePolicy(file: string, bytes: Uint8Array, readFile: ReadFile): ParsedPolicy {
  const { source, problems } = openFile(file, bytes);
  if (source === undefined) return { policy: undefined, problems, tableFiles: [] };
  const { spec, tableFiles } = readDomain([source], readFile);
  return { policy: spec === undefined ? undefined : buildPolicy(spec), problems, tableFiles };
}
