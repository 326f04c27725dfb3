import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { type ConfigProblem, WHOLE_FILE } from './config-problem.js';
import type { DomainPolicy, DomainStatus, PolicySet } from './policy.js';
import { type ParsedPolicy, parsePolicy } from './policy-file.js';
import { expandPaths, messageOf, type PolicyPlace, readRegularFile } from './policy-paths.js';

/** What the files of a configuration gave. */
export interface LoadedPolicies {
  /** Domains of the good files; all of them only if `errors` is empty. */
  readonly policySet: PolicySet;
  readonly errors: readonly ConfigProblem[];
  /** Every domain that a file names, sorted by name. */
  readonly domains: readonly DomainStatus[];
  readonly warnings: readonly ConfigProblem[];
  /** Every file that was read or should have been: policies and key tables, as named by the user or found. */
  readonly files: readonly string[];
}

/** A configuration without any domain, as an empty directory gives it. */
export const NO_POLICIES: PolicySet = { domains: new Map(), version: versionOf([]) };

interface FileContent {
  readonly file: string;
  readonly bytes: Uint8Array;
}

/**
 * Loads policy files from the places named; files that a policy names as `sha256_file` are left out. Reads only; never throws:
 * everything wrong is in `errors`.
 */
export function loadPolicies(paths: readonly PolicyPlace[]): LoadedPolicies {
  const errors: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  const contents: FileContent[] = [];
  const files: string[] = [];
  const read = (file: string): Uint8Array => {
    files.push(file);
    const bytes = readRegularFile(file);
    contents.push({ file, bytes });
    return bytes;
  };
  const parsed: { readonly file: string; readonly listed: boolean; readonly result: ParsedPolicy }[] = [];
  for (const { file, listed } of expandPaths(paths, errors, warnings)) {
    try {
      parsed.push({ file, listed, result: parsePolicy(file, read(file), read) });
    } catch (error) {
      errors.push({ file, ...WHOLE_FILE, path: '', message: messageOf(error) });
    }
  }
  // A key table often lies in the policies' directory: it is no policy then, and what was said about it as one is dropped.
  const tables = new Set(
    parsed.flatMap(({ result }) => result.tableFiles.map((table) => resolve(table.file))),
  );
  const domains = new Map<string, DomainPolicy>();
  const reported = new Set<string>();
  for (const { file, listed, result } of parsed) {
    if (listed && tables.has(resolve(file))) continue;
    if (listed && result.isKeyTable) {
      // Named by no policy that could be read: the error, if there is one, is that policy's.
      const message = 'the file is a key table that no policy names; name it as "sha256_file" or remove it';
      warnings.push({ file, ...WHOLE_FILE, path: '', message });
      continue;
    }
    errors.push(...result.problems.errors);
    warnings.push(...result.problems.warnings);
    for (const table of result.tableFiles) {
      if (reported.has(table.file)) continue;
      reported.add(table.file);
      errors.push(...table.errors);
      warnings.push(...table.warnings);
    }
    addDomain(result, domains, errors);
  }
  return {
    policySet: { domains, version: versionOf(contents) },
    domains: [...domains.values()].map(({ domain, file }) => ({ domain, files: [file], state: 'ok' })),
    errors,
    warnings,
    files: [...new Set(files)],
  };
}

function addDomain(result: ParsedPolicy, domains: Map<string, DomainPolicy>, errors: ConfigProblem[]): void {
  const { policy } = result;
  if (policy === undefined) return;
  const other = domains.get(policy.domain);
  if (other === undefined) {
    domains.set(policy.domain, policy);
    return;
  }
  errors.push({
    file: policy.file,
    ...(result.domainAt ?? WHOLE_FILE),
    path: 'domain',
    message: `the domain "${policy.domain}" is already defined in ${other.file}; a domain has one file`,
  });
}

/** First 12 hex digits of the SHA-256 over names (without directories, which differ from host to host) and contents. */
function versionOf(contents: readonly FileContent[]): string {
  const hash = createHash('sha256');
  for (const { file, bytes } of contents) {
    const name = file.slice(file.lastIndexOf('/') + 1);
    hash.update(`${Buffer.byteLength(name)}:${name}${bytes.length}:`).update(bytes);
  }
  return hash.digest('hex').slice(0, 12);
}
