import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type ConfigProblem, WHOLE_FILE } from './config-problem.js';
import type { DomainPolicy, DomainStatus, PolicySet } from './policy.js';
import { type ParsedPolicy, parsePolicy } from './policy-file.js';
import { MAX_FILE_BYTES } from './yaml-document.js';

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
 * Loads policy files. Each path is a file, or a directory whose files ending in `.yaml` or `.yml` are taken, sorted by name;
 * directories in it and names that begin with a dot are left out (Kubernetes keeps `..data` there), as are files that a
 * policy names as `sha256_file`. Reads only; never throws: everything wrong is in `errors`.
 */
export function loadPolicies(paths: readonly string[]): LoadedPolicies {
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
  for (const { file, listed } of expandPaths(paths, errors)) {
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

/** The policy files that the paths name, each once. */
function expandPaths(
  paths: readonly string[],
  errors: ConfigProblem[],
): readonly { readonly file: string; readonly listed: boolean }[] {
  const found = new Map<string, { readonly file: string; readonly listed: boolean }>();
  const add = (file: string, listed: boolean): void => {
    if (!found.has(resolve(file))) found.set(resolve(file), { file, listed });
  };
  for (const path of paths) {
    try {
      if (!statSync(path).isDirectory()) add(path, false);
      else for (const name of policyNames(path)) add(join(path, name), true);
    } catch (error) {
      errors.push({ file: path, ...WHOLE_FILE, path: '', message: messageOf(error) });
    }
  }
  return [...found.values()];
}

/** Names of the policy files in a directory, sorted by code units so that every machine agrees. */
export function policyNames(directory: string): readonly string[] {
  return readdirSync(directory)
    .filter((name) => /\.ya?ml$/.test(name) && !name.startsWith('.'))
    .filter((name) => statSync(join(directory, name), { throwIfNoEntry: false })?.isDirectory() !== true)
    .sort();
}

/** Reads a file, but no pipe or device, which could block for ever, and nothing too large to be a policy. */
function readRegularFile(file: string): Uint8Array {
  let stats: ReturnType<typeof statSync>;
  try {
    stats = statSync(file);
    if (stats.isFile() && stats.size <= MAX_FILE_BYTES) return readFileSync(file);
  } catch (error) {
    throw new Error(messageOf(error, file));
  }
  if (!stats.isFile()) throw new Error(`"${file}" is not a regular file; name a file`);
  throw new Error(
    `"${file}" has ${stats.size} bytes, the most is ${MAX_FILE_BYTES}; split it into several files`,
  );
}

/** A sentence for what the file system said. */
function messageOf(error: unknown, file?: string): string {
  const { code, path, message } = error as NodeJS.ErrnoException;
  const name = file ?? path;
  if (code === 'ENOENT') return `"${name}" does not exist; check the path`;
  if (code === 'EACCES') return `"${name}" cannot be read (permission denied); check its owner and mode`;
  return code === undefined ? message : `"${name}" cannot be read (${code}); check the path`;
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
