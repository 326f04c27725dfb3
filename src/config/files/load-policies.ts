import { dirname, resolve } from 'node:path';
import { buildPolicy } from '../../policy/build-policy.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { sha256Hex } from '../../policy/names/sha256.js';
import type { DomainStatus } from '../../policy/policy.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { comparablePath } from '../../working-directory.js';
import {
  type InForce,
  joinDomains,
  type LoadedSource,
  type LoadMemory,
  type LoadOptions,
  NOTHING_IN_FORCE,
  type SettledDomain,
  type SettledDomains,
  versionOf,
} from '../read/join-domains.js';
import { type OpenedSource, openDocument, openFile, unreadable } from '../read/policy-source.js';
import { tableNames } from '../read/read-derive.js';
import { boundProblems, type ConfigProblem, ProblemList, WHOLE_FILE } from '../yaml/config-problem.js';
import type { YamlValue } from '../yaml/yaml-document.js';
import { fileIdentity, fingerprintOf } from './fingerprint.js';
import { expandPaths, messageOf, type PolicyPlace, pathOfPlace, readConfigFile } from './policy-paths.js';

type ConfigMaps = typeof import('../manifests/config-maps.js');

export type { InForce, LoadMemory, LoadOptions } from '../read/join-domains.js';

/** What a load tells beside the policies. */
export interface LoadReport {
  readonly errors: readonly ConfigProblem[];
  /** Every domain that a file names, or last named, sorted by name. */
  readonly domains: readonly DomainStatus[];
  readonly warnings: readonly ConfigProblem[];
  /** Every file that was read or should have been: policies and key tables, as named by the user or found. */
  readonly files: readonly string[];
  /** A digest of all that was read, good or bad: tells another attempt from the same one met again. */
  readonly contents: string;
  /** Of the files as they were before they were read (fingerprint.ts); '' where none were. */
  readonly fingerprint: string;
  /** For the next load. */
  readonly memory: LoadMemory;
}

/** What the files, or resources, of a configuration gave. */
export interface LoadedPolicies extends LoadReport {
  /** To be in force: of every good domain what it says now, of every bad one what it said when it was good. */
  readonly policySet: PolicySet;
}

/** {@link LoadedPolicies} before they are built: plain data. */
export interface ReadPolicies extends LoadReport {
  /** To be in force; `kept` are those that are. */
  readonly specs: ReadonlyMap<string, SettledDomain>;
  /** {@link PolicySet.version}. */
  readonly version: string;
  /** What the domains take for secrets, all together: names are made by it. */
  readonly secretKeys: ReadonlySet<string>;
}

/** The latest load before this one: what bad domains fall back to. */
export type PreviousPolicies = Pick<LoadedPolicies, 'policySet' | 'memory'>;

/** A configuration without any domain, as an empty directory gives it. */
export const NO_POLICIES: PolicySet = { domains: new Map(), version: versionOf(new Map()) };

/** What whoever reads policies must know of those in force. */
export function inForceOf(previous: PreviousPolicies | undefined): InForce {
  if (previous === undefined) return NOTHING_IN_FORCE;
  const { policySet, memory } = previous;
  const inForce = Array.from(
    policySet.domains,
    ([domain, { ownSecretKeys }]) => [domain, ownSecretKeys] as const,
  );
  return { inForce: new Map(inForce), memory };
}

/**
 * Whether a start must be refused: something is wrong, and no domain is good. An empty directory is fine, and so is a
 * bad domain beside a good one.
 */
export function isRefusedAtStart(loaded: LoadedPolicies): boolean {
  return loaded.errors.length > 0 && loaded.policySet.domains.size === 0;
}

/**
 * Loads policy files from the places named, in this thread; see {@link readPolicies}. A bad domain stays as `previous`,
 * the latest load of the same places, has it.
 */
export function loadPolicies(
  places: readonly PolicyPlace[],
  options: LoadOptions = {},
  previous?: PreviousPolicies,
): LoadedPolicies {
  return buildPolicies(readPolicies(places, options, inForceOf(previous)), previous?.policySet);
}

/** Builds what was read. `inForce` holds the domains that are kept; throws an Error where one is not there. */
export function buildPolicies(
  { specs, version, secretKeys, ...report }: ReadPolicies,
  inForce: PolicySet | undefined,
): LoadedPolicies {
  const domains = new Map<string, CompiledPolicy>();
  for (const [domain, spec] of specs) {
    const policy = spec === 'kept' ? inForce?.domains.get(domain) : buildPolicy(spec, secretKeys);
    if (policy === undefined) throw new Error(`the domain ${domain} to keep does not exist`);
    domains.set(domain, policy);
  }
  return { policySet: { domains, version }, ...report };
}

/**
 * Reads policy files from the places named; files that a policy names as `sha256_file` are left out. Reads only; never
 * throws: everything wrong is in `errors`. A bad domain is kept as it is in force, by the latest load of the same
 * places; else it is absent. The other domains do not suffer.
 */
export function readPolicies(
  places: readonly PolicyPlace[],
  options: LoadOptions = {},
  before: InForce = NOTHING_IN_FORCE,
): ReadPolicies {
  const reader = new FileReader();
  const pathErrors: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  const identities = places.map((place) => fileIdentity(pathOfPlace(place), true));
  const found = expandPaths(places, pathErrors, options.nothingIsError === true ? pathErrors : warnings);
  const opened = found.flatMap(({ file, listed }, at) => {
    options.onFile?.(at, found.length);
    return openPolicyFile(file, reader, options).map((source) => ({ listed, ...source }));
  });
  // A key table often lies in the policies' directory: it is no policy then, and what was said about it as one is
  // dropped.
  const tables = new Set(
    opened.flatMap(({ opened: { source } }) =>
      source === undefined ? [] : tableNames(source.root).map((file) => resolve(file)),
    ),
  );
  const sources = opened.filter(({ file, listed, opened: { isKeyTable } }) => {
    if (!listed) return true;
    if (tables.has(resolve(file))) return false;
    if (!isKeyTable) return true;
    // Named by no policy that could be read: the error, if there is one, is that policy's.
    const message = 'no policy uses this key table; name it as "sha256_file" in a policy, or remove it';
    warnings.push({ file, ...WHOLE_FILE, path: '', message });
    return false;
  });
  const lost = lostFiles(
    pathErrors.map(({ file }) => file),
    opened.flatMap(({ file, digest }) => (digest === '' ? [file] : [])),
    before.memory,
  );
  const readFile = (file: string): Uint8Array => reader.read(file);
  const tableDigest = (file: string): string => reader.digestOf(file);
  const joined = joinDomains(sources, lost, { ...options, readFile, tableDigest }, before);
  const fingerprint = fingerprintOf(identities, reader.identities);
  const read = { files: reader.files, contents: reader.contents, fingerprint };
  return withReport(joined, sources, { errors: pathErrors, warnings }, read);
}

/**
 * Reads documents that were parsed elsewhere, such as xDS resources, with the very checks of files. `name` stands where
 * a file's name does. They name no other files: `sha256_file` is an error.
 */
export function readDocuments(
  documents: readonly { readonly name: string; readonly document: YamlValue }[],
  options: LoadOptions = {},
  before: InForce = NOTHING_IN_FORCE,
): ReadPolicies {
  const sources = documents.map(
    ({ name, document }): LoadedSource => ({
      file: name,
      opened: openDocument(document, new ProblemList(name)),
      digest: sha256Hex(JSON.stringify(canonical(document))),
    }),
  );
  return readSources(sources, options, before);
}

/** Loads parts of files that were opened elsewhere, as {@link loadPolicies} loads files; they name no other files. */
export function loadParts(
  parts: readonly { readonly name: string; readonly opened: OpenedSource }[],
  options: LoadOptions,
): LoadedPolicies {
  const sources = parts.map(({ name, opened }): LoadedSource => ({ file: name, opened, digest: '' }));
  return buildPolicies(readSources(sources, options, NOTHING_IN_FORCE), undefined);
}

function readSources(sources: readonly LoadedSource[], options: LoadOptions, before: InForce): ReadPolicies {
  const readFile = (file: string): never => {
    throw new Error(
      `"${file}" is not read, because the policy does not come from a file; write the table under "sha256"`,
    );
  };
  const joined = joinDomains(sources, [], { ...options, readFile, tableDigest: () => '' }, before);
  const read = {
    files: sources.map(({ file }) => file),
    contents: sha256Hex(sources.map(({ digest }) => digest).join()),
    fingerprint: '',
  };
  return withReport(joined, sources, { errors: [], warnings: [] }, read);
}

function withReport(
  { tableFiles, ...joined }: SettledDomains,
  sources: readonly LoadedSource[],
  first: { readonly errors: readonly ConfigProblem[]; readonly warnings: readonly ConfigProblem[] },
  read: Pick<LoadReport, 'files' | 'contents' | 'fingerprint'>,
): ReadPolicies {
  const lists: readonly ProblemList[] = [...sources.map(({ opened }) => opened.problems), ...tableFiles];
  return {
    ...joined,
    errors: boundProblems(
      [...first.errors, ...lists.flatMap(({ errors }) => errors)],
      lists.reduce((count, { errorCount }) => count + errorCount, first.errors.length),
      'error',
    ),
    warnings: boundProblems(
      [...first.warnings, ...lists.flatMap(({ warnings }) => warnings)],
      lists.reduce((count, { warningCount }) => count + warningCount, first.warnings.length),
      'warning',
    ),
    files: [...new Set(read.files)],
    contents: read.contents,
    fingerprint: read.fingerprint,
  };
}

/** A document without positions, which say nothing about its meaning. */
function canonical(value: YamlValue): unknown {
  if (value.kind === 'scalar') return [value.plain, value.text];
  if (value.kind === 'list') return value.items.map(canonical);
  return Object.fromEntries(
    [...value.fields.values()].map((field) => [field.key, [field.keyPlain === true, canonical(field.value)]]),
  );
}

/** Reads each file once for one load. */
class FileReader {
  readonly files: string[] = [];
  private readonly known = new Map<string, Uint8Array>();
  private readonly digests = new Map<string, string>();
  /** What told each file from others before it was read; '' where there was none. */
  readonly identities = new Map<string, string>();

  /** Throws an Error with a sentence when the file cannot be read. */
  read(file: string): Uint8Array {
    this.files.push(file);
    const known = this.known.get(file);
    if (known !== undefined) return known;
    // Before it is read: what changes then is another file.
    this.identities.set(file, fileIdentity(file, true));
    const bytes = readConfigFile(file);
    this.known.set(file, bytes);
    this.digests.set(file, sha256Hex(bytes));
    return bytes;
  }

  /** Digest of a file that was read; '' of one that could not be. */
  digestOf(file: string): string {
    return this.digests.get(file) ?? '';
  }

  /** Digest of all files. */
  get contents(): string {
    return sha256Hex(JSON.stringify([...this.digests]));
  }
}

function openPolicyFile(file: string, reader: FileReader, { configMaps }: LoadOptions): LoadedSource[] {
  let bytes: Uint8Array;
  try {
    bytes = reader.read(file);
  } catch (error) {
    return [{ file, opened: unreadable(file, messageOf(error)), digest: '' }];
  }
  const digest = reader.digestOf(file);
  if (configMaps === true) {
    // A server has no use for it.
    const { openConfigMaps } = require('../manifests/config-maps.js') as ConfigMaps;
    const parts = openConfigMaps(file, bytes);
    if (parts !== undefined) return parts.map(({ name, opened }) => ({ file: name, opened, digest }));
  }
  return [{ file, opened: openFile(file, bytes), digest }];
}

/**
 * The files of the load before that cannot be looked for: at or below places and directories that cannot be listed, or
 * beside them, as `config.yaml` is beside `config`; and below what cannot be read, which may have been a directory,
 * such as a link that leads nowhere now.
 */
function lostFiles(
  unlisted: readonly string[],
  unread: readonly string[],
  memory: LoadMemory,
): readonly string[] {
  const gone = new Set([...unlisted, ...unread].map(comparablePath));
  const unlistedPaths = new Set(unlisted.map(comparablePath));
  const beside = [...unlistedPaths].map((path) => `${path}.`);
  return [...memory.domainOf.keys()].filter((file) => {
    const path = comparablePath(file);
    if (unlistedPaths.has(path) || beside.some((start) => path.startsWith(start))) return true;
    for (let above = dirname(path); above !== dirname(above); above = dirname(above)) {
      if (gone.has(above)) return true;
    }
    return false;
  });
}
