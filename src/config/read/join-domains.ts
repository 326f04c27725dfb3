import { createHash } from 'node:crypto';
import type { Algorithm, DomainStatus } from '../../policy/policy.js';
import { type DomainSpec, keysBelow, secretSources } from '../../policy/spec.js';
import type { ProblemList } from '../yaml/config-problem.js';
import { type OpenedSource, type PolicySource, placeName, unreadable } from './policy-source.js';
import { declaredSecrets, type ReadFile } from './read-derive.js';
import { type ReadDomain, readDomain } from './read-domain.js';
import { allSecretKeys } from './secret-keys.js';

/** How policies are loaded. */
export interface LoadOptions {
  /** Files of one domain are merged, as MERGE_DOMAIN_CONFIG says; else a domain has one file. Default false. */
  readonly mergeDomains?: boolean;
  /** `algorithm` of files that do not say, as DEFAULT_ALGORITHM does. Default fixed_window. */
  readonly defaultAlgorithm?: Algorithm;
  /** Of a file that is a manifest of Kubernetes, the policies in its ConfigMaps are read. Default false. */
  readonly configMaps?: boolean;
  /** A directory without any policy file is an error; else a warning. Default false. */
  readonly nothingIsError?: boolean;
  /** Told before each file is read, if it is read in this thread: how many were, of how many. */
  readonly onFile?: (read: number, of: number) => void;
}

/** What a load leaves behind for the next one, as plain data. */
export interface LoadMemory {
  /** The domain that each policy file, or resource, last gave: what it stands for while it cannot be parsed. */
  readonly domainOf: ReadonlyMap<string, string>;
  /** A digest of the contents that each domain in force was made from. */
  readonly digests: ReadonlyMap<string, string>;
}

/**
 * What is in force where a load is asked for, as plain data: the latest load before this one, which bad domains fall
 * back to.
 */
export interface InForce {
  /** The domains in force, each with what it takes for secrets itself; their policies stay where they are. */
  readonly inForce: ReadonlyMap<string, ReadonlySet<string>>;
  readonly memory: LoadMemory;
}

/** What a domain is to be: as its files say, or `kept`: as it is in force, since they are bad, or did not change. */
export type SettledDomain = DomainSpec | 'kept';

/** One file or resource, opened. */
export interface LoadedSource {
  readonly file: string;
  readonly opened: OpenedSource;
  /** Of its contents; '' if it could not be read. */
  readonly digest: string;
}

/** What all sources together gave. */
export interface SettledDomains {
  /** What is to be in force; see {@link PolicySet}. */
  readonly specs: ReadonlyMap<string, SettledDomain>;
  readonly version: string;
  /** What they take for secrets, all together: names are made by it. */
  readonly secretKeys: ReadonlySet<string>;
  readonly domains: readonly DomainStatus[];
  readonly memory: LoadMemory;
  /** Files named by `sha256_file`, each once, with what was wrong in it. */
  readonly tableFiles: readonly ProblemList[];
}

/** The sources that name a domain, or that last did and cannot be parsed now. */
interface Claim {
  readonly sources: PolicySource[];
  readonly broken: LoadedSource[];
  readonly digests: string[];
}

/** What became of a {@link Claim}; `spec` is undefined where something is bad. */
interface ReadClaim {
  readonly claim: Claim;
  readonly spec: DomainSpec | undefined;
  /**
   * What the domain takes for secrets itself, now or as it is in force; undefined where it is neither good nor in
   * force.
   */
  readonly ownSecretKeys: ReadonlySet<string> | undefined;
  /** Of all that it was made from. */
  readonly digests: readonly string[];
}

/** No load before this one. */
export const NOTHING_IN_FORCE: InForce = {
  inForce: new Map(),
  memory: { domainOf: new Map(), digests: new Map() },
};

/**
 * Decides what each domain is to be: what its files say if everything that names it is good, else what is in force, if
 * anything is. What is wrong goes into the sources' problem lists. A domain that nothing names any more is gone. `lost`
 * are files that may still be there, but could not even be looked for. `tableDigest` tells the contents of a file that
 * `readFile` gave.
 */
export function joinDomains(
  loaded: readonly LoadedSource[],
  lost: readonly string[],
  options: LoadOptions & { readonly readFile: ReadFile; readonly tableDigest: (file: string) => string },
  before: InForce = NOTHING_IN_FORCE,
): SettledDomains {
  const { claims, domainOf } = claimsOf(loaded, lost, before.memory.domainOf);
  const tables = new Map<string, ProblemList>();
  const read = new Map<string, ReadClaim>();
  const declared = allSecretKeys([...before.inForce.values(), ...[...claims.values()].map(secretsOfClaim)]);
  for (const [domain, claim] of claims) {
    const { spec, tableFiles } = readClaim(domain, claim, options, declared);
    for (const table of tableFiles) if (!tables.has(table.file)) tables.set(table.file, table);
    if (domain === '') continue;
    const tableDigests = tableFiles.map(({ file }) => `${baseName(file)}:${options.tableDigest(file)}`);
    const ownSecretKeys = spec === undefined ? before.inForce.get(domain) : secretSources(spec.steps);
    read.set(domain, { claim, spec, ownSecretKeys, digests: [...claim.digests, ...tableDigests] });
  }
  const secretKeys = allSecretKeys([...read.values()].flatMap(({ ownSecretKeys }) => ownSecretKeys ?? []));
  const specs = new Map<string, SettledDomain>();
  const digests = new Map<string, string>();
  const statuses: DomainStatus[] = [];
  for (const [domain, { claim, spec, digests: parts }] of read) {
    const files = [...claim.sources, ...claim.broken].map(({ file }) => file).sort();
    const isInForce = before.inForce.has(domain);
    if (spec !== undefined) {
      const digest = digestOf([...parts, ...secretsOfOthers(spec, secretKeys)]);
      // What did not change stays the same object, with all that it remembers of earlier requests.
      const isSame = isInForce && before.memory.digests.get(domain) === digest;
      specs.set(domain, isSame ? 'kept' : spec);
      digests.set(domain, digest);
    } else if (isInForce) {
      // This set may never be in force: the policy learns of others' secrets once it is, see shareSecrets.
      specs.set(domain, 'kept');
      digests.set(domain, before.memory.digests.get(domain) ?? '');
    }
    const state = spec !== undefined ? 'ok' : isInForce ? 'kept' : 'absent';
    statuses.push({ domain, files, state });
  }
  statuses.sort((a, b) => (a.domain < b.domain ? -1 : 1));
  return {
    specs,
    version: versionOf(digests),
    secretKeys,
    domains: statuses,
    memory: { domainOf, digests },
    tableFiles: [...tables.values()],
  };
}

/**
 * Keys of its tree that only other domains take for secrets, as parts of its digest: the names of its buckets are made
 * from them, too, so when they change it is another policy, made here and not while decisions wait.
 */
function secretsOfOthers({ steps, root }: DomainSpec, secrets: ReadonlySet<string>): readonly string[] {
  const own = secretSources(steps);
  const foreign = [...secrets].filter((key) => !own.has(key));
  if (foreign.length === 0) return [];
  const keys = keysBelow(root);
  return foreign.filter((key) => keys.has(key)).map((key) => `secret:${key}`);
}

function secretsOfClaim({ sources }: Claim): ReadonlySet<string> {
  return new Set(sources.flatMap(({ root }) => declaredSecrets(root)));
}

function claimsOf(
  loaded: readonly LoadedSource[],
  lost: readonly string[],
  before: ReadonlyMap<string, string>,
): { readonly claims: ReadonlyMap<string, Claim>; readonly domainOf: ReadonlyMap<string, string> } {
  const claims = new Map<string, Claim>();
  const domainOf = new Map<string, string>();
  const claimOf = (domain: string): Claim => {
    const claim = claims.get(domain) ?? { sources: [], broken: [], digests: [] };
    claims.set(domain, claim);
    return claim;
  };
  for (const one of loaded) {
    const { source } = one.opened;
    const stated = source?.domain ?? '';
    const domain = stated === '' ? before.get(one.file) : stated;
    if (domain !== undefined) domainOf.set(one.file, domain);
    if (source !== undefined && stated !== '') {
      const claim = claimOf(stated);
      claim.sources.push(source);
      claim.digests.push(`${baseName(one.file)}:${one.digest}`);
      continue;
    }
    if (domain !== undefined) claimOf(domain).broken.push(one);
    // What else is wrong in a file without domain is told as well.
    if (source !== undefined) claimOf('').sources.push(source);
  }
  for (const file of lost) {
    const domain = before.get(file);
    if (domain === undefined || domainOf.has(file)) continue;
    domainOf.set(file, domain);
    claimOf(domain).broken.push({ file, opened: unreadable(file, ''), digest: '' });
  }
  return { claims, domainOf };
}

function readClaim(
  domain: string,
  claim: Claim,
  options: LoadOptions & { readonly readFile: ReadFile },
  secretKeys: ReadonlySet<string>,
): ReadDomain {
  const { sources, broken } = claim;
  const readOne = (files: readonly PolicySource[]): ReadDomain =>
    readDomain(files, options.readFile, options.defaultAlgorithm, secretKeys);
  const merges = options.mergeDomains === true && domain !== '';
  if (merges || sources.length + broken.length === 1) {
    // Nodes are added in the order of the files' names, wherever the files lie.
    const inOrder = [...sources].sort((a, b) => compareTexts(baseName(a.file), baseName(b.file)));
    const read = inOrder.length === 0 ? NOTHING : readOne(inOrder);
    return broken.length === 0 ? read : { ...read, spec: undefined };
  }
  // Several files, none of which counts: each is checked by itself.
  if (domain !== '') reportDuplicates(domain, claim);
  const tableFiles = sources.flatMap((source) => readOne([source]).tableFiles);
  return { spec: undefined, tableFiles };
}

const NOTHING: ReadDomain = { spec: undefined, tableFiles: [] };

function reportDuplicates(fullName: string, { sources, broken }: Claim): void {
  const domain = fullName.slice(0, 200);
  const remedy = 'put each domain into one file, or set MERGE_DOMAIN_CONFIG=true';
  sources.forEach(({ root }, i) => {
    const first = sources[0] as PolicySource;
    const [unread] = broken;
    if (i > 0) {
      const other = placeName(first.file, first.domainAt);
      root.error(
        'domain',
        `the domain "${domain}" is already defined in ${other}, so neither file is loaded; ${remedy}`,
      );
    } else if (unread !== undefined) {
      root.error(
        'domain',
        `the domain "${domain}" was last defined in ${unread.file}, which cannot be read now; correct ` +
          'or remove that file',
      );
    }
  });
}

function baseName(file: string): string {
  return file.slice(file.lastIndexOf('/') + 1);
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function digestOf(parts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const part of [...parts].sort()) hash.update(`${Buffer.byteLength(part)}:${part}`);
  return hash.digest('hex');
}

/** {@link PolicySet.version}: first 12 hex digits of a digest over the domains in force and what each was made from. */
export function versionOf(digests: ReadonlyMap<string, string>): string {
  return digestOf([...digests].map(([domain, digest]) => `${digest}${domain}`)).slice(0, 12);
}
