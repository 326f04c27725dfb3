import { dirname, resolve } from 'node:path';
import type { PolicySet } from '../../policy/compiled-policy.js';
import { sha256Hex } from '../../policy/redact.js';
import { messageOf } from '../../runtime/regular-file.js';
import { runToCompletion } from '../../runtime/turns.js';
import { comparablePath } from '../../runtime/working-directory.js';
import { isPlanAddress, planFile } from '../read/plans/read-plans.js';
import { openDocument, openFile, unreadable } from '../read/policy-source.js';
import { type TableFiles, tableNames } from '../read/read-derive.js';
import type { LoadOptions } from '../read/read-domain.js';
import {
  type LoadedSource,
  NO_PREVIOUS_LOAD,
  type PreviousLoad,
  type ResolvedDomains,
  resolveDomains,
  type SourceHistory,
} from '../read/resolve-domains.js';
import { buildBatches, inBatches, specItems } from '../threads/policy-transfer.js';
import { type ConfigProblem, ProblemList, WHOLE_FILE } from '../yaml/config-problem.js';
import type { YamlValue } from '../yaml/yaml-document.js';
import { fileIdentity, fingerprintOf, isFresh, isWrittenInPlace } from './fingerprint.js';
import { expandPaths, type PolicyPlace, pathOfPlace, readConfigFile } from './policy-paths.js';

type ConfigMaps = typeof import('../manifests/config-maps.js');
type NamedPart = import('../manifests/config-maps.js').NamedPart;
type OpenedPart = import('../manifests/config-maps.js').OpenedPart;

export type { LoadOptions } from '../read/read-domain.js';
export type { PreviousLoad, SourceHistory } from '../read/resolve-domains.js';

/** The result of a load without the policies. */
export interface LoadReport extends Omit<ResolvedDomains, 'specs' | 'version' | 'secretKeys'> {
  /**
   * Every file that was read or could not be read: policies and key tables, as named by the user or found in a
   * directory.
   */
  readonly files: readonly string[];
  /**
   * Digest of everything that was read, valid or not. Distinguishes a new attempt from the same content found again.
   */
  readonly contents: string;
  /** Addresses of tables of `plans` in Redis that the policies name. */
  readonly addresses: readonly string[];
  /** Fingerprint of the files from before they were read (fingerprint.ts); '' for sources that are not files. */
  readonly fingerprint: string;
}

/** Result of loading the files or resources of a configuration. */
export interface LoadedPolicies extends LoadReport {
  /**
   * The set to put into effect: the current version of valid domains, and the last valid version of invalid domains.
   */
  readonly policySet: PolicySet;
}

/** {@link LoadedPolicies} before the policies are built, as plain data. */
export type ReadPolicies = LoadReport & ResolvedDomains;

/** The previous load, whose versions invalid domains keep. */
export type PreviousPolicies = Pick<LoadedPolicies, 'policySet' | 'memory'>;

/** Returns what a load needs to know about the policies in effect. */
export function inEffectOf(previous: PreviousPolicies | undefined): PreviousLoad {
  if (previous === undefined) return NO_PREVIOUS_LOAD;
  const { policySet, memory } = previous;
  const inEffect = Array.from(
    policySet.domains,
    ([domain, { ownSecretKeys }]) => [domain, ownSecretKeys] as const,
  );
  const plans = Array.from(policySet.domains, ([domain, policy]) => [domain, policy.plans] as const);
  return { secretKeys: new Map(inEffect), plans: new Map(plans), history: memory };
}

/** Tells whether there are errors, and no domain is valid. An empty directory has no errors. */
export function isWithoutValidDomain({ errors, policySet }: LoadedPolicies): boolean {
  return errors.length > 0 && policySet.domains.size === 0;
}

/**
 * Tells whether the server must not start: no domain is valid, or a domain with a removed key would be unlimited. An
 * empty directory does not prevent the start. Neither does a domain with other errors next to a valid one.
 */
export function isRefusedAtStart(loaded: LoadedPolicies): boolean {
  return isWithoutValidDomain(loaded) || loaded.refusesStart;
}

/**
 * Loads policy files from the places in this thread; see {@link readPolicies}. An invalid domain keeps its version in
 * `previous`, the latest load of the same places.
 */
export function loadPolicies(
  places: readonly PolicyPlace[],
  options: LoadOptions = {},
  previous?: PreviousPolicies,
): LoadedPolicies {
  return buildPolicies(readPolicies(places, options, inEffectOf(previous)), previous?.policySet);
}

/**
 * Builds the policies from their specifications. `inEffect` holds the domains that are kept. Throws an Error if a kept
 * domain is missing there.
 */
export function buildPolicies(
  { specs, version, secretKeys, ...report }: ReadPolicies,
  inEffect: PolicySet | undefined,
): LoadedPolicies {
  const domains = runToCompletion(buildBatches(inBatches(specItems(specs, secretKeys)), { inEffect }));
  return { policySet: { domains, version }, ...report };
}

/**
 * Reads policy files from the places, except for files that a policy names as `sha256_file`. Never throws: all problems
 * are in `errors`. An invalid domain keeps the version of the latest load of the same places, or is absent if it has
 * none. Other domains are not affected.
 */
export function readPolicies(
  places: readonly PolicyPlace[],
  options: LoadOptions = {},
  before: PreviousLoad = NO_PREVIOUS_LOAD,
): ReadPolicies {
  const files = new FileReader(options.rows);
  const pathErrors: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  const identities = places.map((place) => fileIdentity(pathOfPlace(place), true));
  const lacking = options.emptyIsError === true ? pathErrors : warnings;
  const paths = runToCompletion(expandPaths(places, pathErrors, lacking));
  const opened = paths.flatMap(({ file, listed }) =>
    openPolicyFile(file, files, options).map((source) => ({ listed, ...source })),
  );
  // Key tables and tables of plans are often in the directory of the policies. Such a file is read like a policy, but
  // it is not one, so the resulting errors are dropped.
  const tables = new Set(
    opened.flatMap(({ opened: { source } }) =>
      source === undefined
        ? []
        : [...tableNames(source.root), ...planFile(source.root)].map((file) => resolve(file)),
    ),
  );
  const sources = opened.filter(({ file, listed, opened: { isKeyTable } }) => {
    if (!listed) return true;
    if (tables.has(resolve(file))) return false;
    if (!isKeyTable) return true;
    // No readable policy names this table. If there is an error, it belongs to the policy that should.
    const message =
      'no policy uses this key table; refer to it with "sha256_file" in a policy, or remove the file';
    warnings.push({ file, ...WHOLE_FILE, path: '', message });
    return false;
  });
  const lost = lostFiles(
    pathErrors.map(({ file }) => file),
    opened.flatMap(({ file, digest }) => (digest === '' ? [file] : [])),
    before.history,
  );
  const found = { errors: pathErrors, warnings };
  const resolved = resolveDomains(sources, lost, files, options, before, found);
  return { ...resolved, ...files.report(), fingerprint: fingerprintOf(identities, files.identities) };
}

/**
 * Reads documents that were parsed elsewhere, such as xDS resources, with the same checks as files. `name` takes the
 * place of a file's name. Documents cannot name other files: `sha256_file` is an error.
 */
export function readDocuments(
  documents: readonly { readonly name: string; readonly document: YamlValue }[],
  options: LoadOptions = {},
  before: PreviousLoad = NO_PREVIOUS_LOAD,
): ReadPolicies {
  const files = new FileReader(undefined, []);
  const sources = documents.map(({ name, document }): LoadedSource => {
    const digest = sha256Hex(JSON.stringify(canonical(document)));
    files.add(name, digest);
    return { file: name, opened: openDocument(document, new ProblemList(name)), digest };
  });
  return { ...resolveDomains(sources, [], files, options, before), ...files.report() };
}

/**
 * Loads parts of files that were opened elsewhere, in the way of {@link loadPolicies}. The only files that they can
 * name are their tables of `plans`.
 */
export function loadParts(parts: readonly OpenedPart[], options: LoadOptions): LoadedPolicies {
  const sources = parts.map(({ name, opened }): LoadedSource => ({ file: name, opened, digest: '' }));
  const tables = parts.flatMap(({ plans }) => plans ?? []);
  const files = new FileReader(undefined, tables);
  return buildPolicies({ ...resolveDomains(sources, [], files, options), ...files.report() }, undefined);
}

/** Returns a document without positions, which do not affect its meaning. */
function canonical(value: YamlValue): unknown {
  if (value.kind === 'scalar') return [value.plain, value.text];
  if (value.kind === 'list') return value.items.map(canonical);
  return Object.fromEntries(
    [...value.fields.values()].map((field) => [field.key, [field.keyPlain === true, canonical(field.value)]]),
  );
}

/**
 * Time without a write after which a server takes a file for complete, in milliseconds. Whoever writes a file in place
 * may pause between two writes.
 */
const SETTLE_MS = 100;
/** Maximum number of times that a file is read if it is written to meanwhile. */
const MAX_READS = 20;

/** Reads each file once per load. Reads a file again that is written to meanwhile. */
class FileReader implements TableFiles {
  private readonly files: string[] = [];
  /** Addresses of tables in Redis. */
  private readonly addresses = new Set<string>();
  /** Contents by path, or the error to report instead. */
  private readonly known = new Map<string, Uint8Array | Error>();
  private readonly digests = new Map<string, string>();
  /** Identity of each file from before it was read; '' if it did not exist. */
  readonly identities = new Map<string, string>();
  private readonly rows: LoadOptions['rows'];
  private readonly isOnlyParts: boolean;

  /** `parts`: for policies that do not come from files, all that they can name. */
  constructor(rows: LoadOptions['rows'], parts?: readonly NamedPart[]) {
    this.rows = rows;
    this.isOnlyParts = parts !== undefined;
    for (const part of parts ?? []) this.addPart(part);
  }

  read(file: string, maxBytes?: number): Uint8Array {
    const known = this.known.get(file);
    if (known instanceof Error) throw known;
    if (known !== undefined) return known;
    if (this.isOnlyParts) {
      throw new Error(
        `"${file}" is not read, because the policy does not come from a file; write its content into the ` +
          'policy',
      );
    }
    const bytes = isPlanAddress(file) ? this.readRows(file) : this.readFile(file, maxBytes);
    this.known.set(file, bytes);
    this.digests.set(file, sha256Hex(bytes));
    return bytes;
  }

  private readRows(address: string): Uint8Array {
    this.addresses.add(address);
    const blocks = this.rows?.get(address);
    if (blocks === undefined) throw new Error('weir has no rows from this address yet');
    return Buffer.concat(blocks);
  }

  private readFile(file: string, maxBytes?: number): Uint8Array {
    this.files.push(file);
    for (let reads = 0; reads < MAX_READS; reads++) {
      // Identify the file before reading it, so that a change during the read counts as a new file.
      const identity = fileIdentity(file, true);
      this.identities.set(file, identity);
      const bytes = readConfigFile(file, maxBytes);
      // Commands do not wait. Their users see when they have saved a file.
      if (this.rows !== undefined && isFresh(identity, SETTLE_MS)) pause(SETTLE_MS);
      if (!isWrittenInPlace(identity, fileIdentity(file, true))) return bytes;
    }
    throw new Error(`"${file}" changed while weir read it; rename a complete new file to this name`);
  }

  /** Returns what a report says about the files; they have no fingerprint if they are not from a file system. */
  report(): Pick<LoadReport, 'files' | 'contents' | 'addresses' | 'fingerprint'> {
    return {
      files: [...new Set(this.files)],
      contents: sha256Hex(JSON.stringify([...this.digests])),
      addresses: [...this.addresses],
      fingerprint: '',
    };
  }

  /** Adds a document that was read elsewhere. */
  add(file: string, digest: string): void {
    this.files.push(file);
    this.digests.set(file, digest);
  }

  /** Adds a part of a file that was read, which a policy names like a file. */
  addPart({ path, content }: NamedPart): void {
    this.known.set(path, content);
    if (!(content instanceof Error)) this.digests.set(path, sha256Hex(content));
  }

  digestOf(file: string): string {
    return this.digests.get(file) ?? '';
  }
}

/** Blocks the thread, which decides no requests yet, or never does. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
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
    // Loaded on demand, because a server does not need it.
    const { openConfigMaps } = require('../manifests/config-maps.js') as ConfigMaps;
    const parts = openConfigMaps(file, bytes);
    for (const { plans } of parts ?? []) if (plans !== undefined) reader.addPart(plans);
    if (parts !== undefined) return parts.map(({ name, opened }) => ({ file: name, opened, digest }));
  }
  return [{ file, opened: openFile(file, bytes), digest }];
}

/**
 * Returns the files of the previous load that cannot be searched for now. Their directories cannot be listed, or are
 * below paths that cannot be read and may have been directories, such as dangling links. For the directory `config`,
 * these files include siblings such as `config.yaml`.
 */
function lostFiles(
  unlisted: readonly string[],
  unread: readonly string[],
  memory: SourceHistory,
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
