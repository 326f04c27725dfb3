import { createHash } from 'node:crypto';
import { allSecretKeys } from '../../policy/compiled-policy.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import type { DomainStatus } from '../../policy/policy.js';
import { type DomainSpec, secretSources } from '../../policy/spec.js';
import { safePrefix } from '../../runtime/shown-address.js';
import { boundProblems, type ConfigProblem, type ProblemList } from '../yaml/config-problem.js';
import { type OpenedSource, type PolicySource, placeName } from './policy-source.js';
import { declaredSecrets, type TableFiles } from './read-derive.js';
import { type DomainContext, type LoadOptions, type ReadDomain, readDomain } from './read-domain.js';

/** State that one load leaves for the next, as plain data. */
export interface SourceHistory {
  /**
   * The domain that each policy file or resource last named. A file that cannot be parsed still counts for this domain.
   */
  readonly domainOf: ReadonlyMap<string, string>;
  /** Digest of the contents that each domain in effect was made from. */
  readonly digests: ReadonlyMap<string, string>;
}

/** The state of the latest load when another load starts, as plain data. Invalid domains keep their version in it. */
export interface PreviousLoad {
  /** The domains in effect, each with the secret keys that it declares. The policies themselves are not sent. */
  readonly secretKeys: ReadonlyMap<string, ReadonlySet<string>>;
  /** The rows of `plans` in effect, by domain; refused rows keep their values in them. */
  readonly plans: ReadonlyMap<string, PlanTable | undefined>;
  readonly history: SourceHistory;
}

/** The new version of a domain, or `kept` if the version in effect stays because the files are invalid or unchanged. */
export type ResolvedDomain = DomainSpec | 'kept';

/** One file or resource after it was opened. */
export interface LoadedSource {
  readonly file: string;
  readonly opened: OpenedSource;
  /** Digest of its contents; '' if it could not be read. */
  readonly digest: string;
}

export interface LoadProblems {
  readonly errors: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

/** Result of reading all sources, as plain data. */
export interface ResolvedDomains extends LoadProblems {
  /** The domains to put into effect. Domains marked `kept` do not change. */
  readonly specs: ReadonlyMap<string, ResolvedDomain>;
  /** {@link PolicySet.version}. */
  readonly version: string;
  /** The secret keys of all domains, which determine the names of buckets. */
  readonly secretKeys: ReadonlySet<string>;
  /** Whether a server must not start with these errors, even if other domains are valid. */
  readonly refusesStart: boolean;
  /** Every domain that a file names, or named when it was last valid, sorted by name. */
  readonly domains: readonly DomainStatus[];
  /** State for the next load. */
  readonly memory: SourceHistory;
}

/** The sources that name a domain, and the files that last named it and cannot be read now. */
interface Claim {
  readonly sources: PolicySource[];
  readonly broken: string[];
  readonly digests: string[];
}

/** The state before the first load. */
export const NO_PREVIOUS_LOAD: PreviousLoad = {
  secretKeys: new Map(),
  plans: new Map(),
  history: { domainOf: new Map(), digests: new Map() },
};

/**
 * Decides the version of each domain: the new one if all files that name the domain are valid, else the version in
 * effect, if any. A domain that no source names any more is removed. `lost` are files that may still exist but could
 * not be searched for, and `found` are problems from before.
 */
export function resolveDomains(
  loaded: readonly LoadedSource[],
  lost: readonly string[],
  files: TableFiles,
  options: LoadOptions,
  before: PreviousLoad = NO_PREVIOUS_LOAD,
  found: LoadProblems = { errors: [], warnings: [] },
): ResolvedDomains {
  const { claims, domainOf } = claimsOf(loaded, lost, before.history.domainOf);
  const stated = loaded.flatMap(({ opened: { source } }) => (source ? declaredSecrets(source.root) : []));
  const declared = allSecretKeys([new Set(stated), ...before.secretKeys.values()]);
  const tables = new Map<string, ProblemList>();
  const specs = new Map<string, ResolvedDomain>();
  const digests = new Map<string, string>();
  const ownSecretKeys: ReadonlySet<string>[] = [];
  const domains: DomainStatus[] = [];
  for (const [domain, claim] of claims) {
    const context = { secretKeys: declared, lastPlans: before.plans.get(domain) };
    const { spec, tableFiles, keptFile } = readClaim(domain, claim, files, options, context);
    for (const table of tableFiles) {
      const known = tables.get(table.file);
      if (known === undefined) tables.set(table.file, table);
      else known.addMissing(table);
    }
    if (domain === '') continue;
    const inEffect = before.secretKeys.get(domain);
    const lastDigest = before.history.digests.get(domain) ?? '';
    if (spec !== undefined) {
      // Kept rows have the digest of the file that they come from, so the domain is unchanged.
      const digestOfTable = (file: string): string =>
        file === keptFile ? (spec.plans?.digest ?? '') : files.digestOf(file);
      const tableDigests = tableFiles.map(({ file }) => `${baseName(file)}:${digestOfTable(file)}`);
      const digest = digestOf([...claim.digests, ...tableDigests]);
      // Keep the object of an unchanged domain, with everything it caches about earlier requests.
      specs.set(domain, inEffect !== undefined && lastDigest === digest ? 'kept' : spec);
      digests.set(domain, digest);
      ownSecretKeys.push(secretSources(spec.steps));
    } else if (inEffect !== undefined) {
      specs.set(domain, 'kept');
      digests.set(domain, lastDigest);
      ownSecretKeys.push(inEffect);
    }
    const keepsPlans = keptFile !== undefined && spec?.plans?.rowCount !== 0;
    const isKept = spec === undefined ? inEffect !== undefined : keepsPlans;
    const state = isKept ? 'kept' : spec === undefined ? 'absent' : 'ok';
    domains.push({
      domain,
      files: [...claim.sources.map(({ file }) => file), ...claim.broken].sort(),
      state,
    });
  }
  domains.sort((a, b) => (a.domain < b.domain ? -1 : 1));
  const lists: readonly ProblemList[] = [...loaded.map(({ opened }) => opened.problems), ...tables.values()];
  return {
    specs,
    version: versionOf(digests),
    secretKeys: allSecretKeys(ownSecretKeys),
    domains,
    memory: { domainOf, digests },
    refusesStart: lists.some(({ refusesStart }) => refusesStart),
    errors: boundProblems(
      [...found.errors, ...lists.flatMap(({ errors }) => errors)],
      lists.reduce((count, { errorCount }) => count + errorCount, found.errors.length),
      'error',
    ),
    warnings: boundProblems(
      [...found.warnings, ...lists.flatMap(({ warnings }) => warnings)],
      lists.reduce((count, { warningCount }) => count + warningCount, found.warnings.length),
      'warning',
    ),
  };
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
    if (domain !== undefined) claimOf(domain).broken.push(one.file);
    // Report the other errors of a file without a domain, too.
    if (source !== undefined) claimOf('').sources.push(source);
  }
  for (const file of lost) {
    const domain = before.get(file);
    if (domain === undefined || domainOf.has(file)) continue;
    domainOf.set(file, domain);
    claimOf(domain).broken.push(file);
  }
  return { claims, domainOf };
}

function readClaim(
  domain: string,
  claim: Claim,
  files: TableFiles,
  options: LoadOptions,
  context: DomainContext,
): ReadDomain {
  const { sources, broken } = claim;
  const readOne = (some: readonly PolicySource[]): ReadDomain => readDomain(some, files, options, context);
  const merges = options.mergeDomains === true && domain !== '';
  if (merges || sources.length + broken.length === 1) {
    // Nodes are added in the order of the file names, whatever their directories.
    const inOrder = [...sources].sort((a, b) => compareTexts(baseName(a.file), baseName(b.file)));
    const read = inOrder.length === 0 ? NOTHING : readOne(inOrder);
    return broken.length === 0 ? read : { ...read, spec: undefined };
  }
  // Several files name the domain, so none of them is loaded. Each is still checked on its own.
  if (domain !== '') reportDuplicates(domain, claim);
  const tableFiles = sources.flatMap((source) => readOne([source]).tableFiles);
  return { spec: undefined, tableFiles };
}

const NOTHING: ReadDomain = { spec: undefined, tableFiles: [] };

function reportDuplicates(fullName: string, { sources, broken }: Claim): void {
  const domain = safePrefix(fullName, 200);
  const remedy = 'define each domain in only one file, or set MERGE_DOMAIN_CONFIG=true';
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
        `the domain "${domain}" was last defined in ${unread}, which cannot be read now; correct ` +
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

/** Returns {@link PolicySet.version}: the first 12 hex digits of a digest over the domains and their contents. */
export function versionOf(digests: ReadonlyMap<string, string>): string {
  return digestOf([...digests].map(([domain, digest]) => `${digest}${domain}`)).slice(0, 12);
}
