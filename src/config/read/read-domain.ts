import type { LeaseSpec } from '../../policy/leases.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import { type Algorithm, DEFAULT_ALGORITHM, DEFAULT_HOLD_ENTRY } from '../../policy/policy.js';
import { nodeLabel } from '../../policy/policy-node.js';
import { isSecretKey } from '../../policy/redact.js';
import {
  type DomainSpec,
  inFileOrder,
  type NodeFields,
  type NodeSpec,
  secretSources,
} from '../../policy/spec.js';
import { matcherField, matcherName } from '../../policy/values/value-matcher.js';
import { nearest } from '../../runtime/nearest-name.js';
import { safePrefix } from '../../runtime/shown-address.js';
import type { ProblemList } from '../yaml/config-problem.js';
import type { FieldReader, Located } from './field-reader.js';
import { phaseOf, readMapping } from './field-values.js';
import { readPlanTable } from './plans/read-plan-table.js';
import { type PolicySource, placeName } from './policy-source.js';
import { DerivedEntries, declaredSecrets, type TableFiles } from './read-derive.js';
import { readMatcher, warnOfLiteral, warnOfMethod } from './read-matcher.js';
import { checkClassEntry, type PathNode } from './read-priorities.js';
import { type DescriptorValues, readRules } from './read-rules.js';
import { type RootSettings, readRootSettings } from './root-settings.js';

/** Bytes in shared memory, in blocks. */
export type PlanBytes = readonly Uint8Array[];

/** Options for loading policies, which come from the environment. */
export interface LoadOptions {
  /** `algorithm` of files that do not set it (DEFAULT_ALGORITHM). Default fixed_window. */
  readonly defaultAlgorithm?: Algorithm;
  /** `lease` of files that do not set it (LEASE_FOR and LEASE_MAX). Default: none. */
  readonly defaultLease?: LeaseSpec | undefined;
  /** Key of the entry that ends holds (HOLD_ENTRY), which a domain with holds cannot match. Default hold. */
  readonly holdEntry?: string;
  /** Whether a row of `plans` that is refused is an error, as in a check, instead of a warning. Default false. */
  readonly badRowsAreErrors?: boolean;
  /**
   * The rows of `plans` in Redis, by address, as far as a server has read them. In a server, all customers have the
   * limits of customers without a row if the table was never valid. Default: as in a command, such rows are not read,
   * and a domain whose table cannot be read is invalid.
   */
  readonly rows?: ReadonlyMap<string, PlanBytes>;
  /**
   * Whether to merge files with the same domain (MERGE_DOMAIN_CONFIG). If not, each domain must have one file. Default
   * false.
   */
  readonly mergeDomains?: boolean;
  /** Whether to read policies from the ConfigMaps of Kubernetes manifests. Default false. */
  readonly configMaps?: boolean;
  /** Whether a directory without policy files is an error instead of a warning. Default false. */
  readonly emptyIsError?: boolean;
}

/** Facts about other domains, and about the policies in effect. */
export interface DomainContext {
  /** The secret keys of all domains, whose values messages never show. Default: those of the files. */
  readonly secretKeys?: ReadonlySet<string>;
  /** The last valid rows of `plans`, if any. */
  readonly lastPlans?: PlanTable | undefined;
}

/** Result of reading the files of one domain. */
export interface ReadDomain {
  /** Absent if one of the files has an error. */
  readonly spec: DomainSpec | undefined;
  /** Files named by `sha256_file` and `plans`, with the problems of each. */
  readonly tableFiles: readonly ProblemList[];
  /** The file of `plans` if it is invalid, and the rows of its last valid version, or none, are in effect. */
  readonly keptFile?: string | undefined;
}

/**
 * Reads and checks all files of one domain. The nodes of later files follow those of earlier ones. Problems are added
 * to the list of their file, and the result has a specification only if none of them is an error. `files` reads the
 * files named by `sha256_file` and `plans`. Messages never show a value of `secretKeys`, the secret keys of all domains
 * (default: those of these files).
 */
export function readDomain(
  sources: readonly PolicySource[],
  files: TableFiles,
  options: LoadOptions = {},
  context: DomainContext = {},
): ReadDomain {
  const { defaultAlgorithm = DEFAULT_ALGORITHM, defaultLease, holdEntry = DEFAULT_HOLD_ENTRY } = options;
  const secretKeys = context.secretKeys ?? new Set(sources.flatMap(({ root }) => declaredSecrets(root)));
  const settings = readRootSettings(sources, files, defaultAlgorithm, defaultLease);
  const { steps } = settings.derived;
  const domain = sources[0]?.domain ?? '';
  const root = new TreeReader(settings, secretKeys, holdEntry).read(sources);
  const { badRowsAreErrors = false, rows } = options;
  const plans =
    settings.plans &&
    readPlanTable(settings.plans, {
      files,
      secretKeys,
      previous: context.lastPlans,
      badRowsAreErrors,
      isServer: rows !== undefined,
    });
  const tableFiles = [...settings.derived.tableFiles, ...(plans?.file === undefined ? [] : [plans.file])];
  for (const source of sources) source.root.problems.sort();
  const keptFile = plans?.isKept === true ? plans.file : undefined;
  const lists = [...sources.map((source) => source.root.problems), ...tableFiles].filter(
    (list) => list !== keptFile,
  );
  const bad = domain === '' || lists.some((list) => list.errors.length > 0);
  const spec = {
    domain,
    file: sources.map(({ file }) => file).join(', '),
    settings: settings.domain,
    steps,
    plans: plans?.table,
    root,
  };
  return { spec: bad ? undefined : spec, tableFiles, keptFile: keptFile?.file };
}

/** Settings that apply to a node and its child nodes unless they set their own. */
interface Inherited {
  readonly phase: NodeFields['phase'];
  readonly onUnmatched: NodeFields['onUnmatched'];
  readonly enforcePercent: number;
  /** The nodes from the first level to here. */
  readonly path: readonly PathNode[];
  /**
   * Whether a descriptor from the top to here has the entry that selects a row of `plans`: one bucket for each value,
   * or a shared one.
   */
  readonly planEntry: 'absent' | 'own' | 'shared';
}

/**
 * Number of patterns and regular expressions with one key on one level above which a warning says that they cost time.
 */
const MANY_PATTERNS = 200;

/** Maximum number of rule names that are compared to a misspelt name. Each comparison takes time. */
const MAX_COMPARED = 200;

/** A node with its position. */
interface LocatedNode {
  readonly fields: NodeFields;
  readonly reader: FieldReader;
}

/** The child nodes of one node, by everything that they match. */
class SiblingNodes {
  /** Created on demand, because most nodes have no child nodes. */
  private nodesByMatch: Map<string, LocatedNode> | undefined;
  /** Number of patterns and regular expressions for each key. */
  private patterns: Map<string, number> | undefined;

  /** Counts the patterns of a node. Returns whether the level now has many with its key, once for each key. */
  hasManyPatterns({ key, value, matcher }: NodeFields): boolean {
    const isPattern = matcher === undefined ? value.includes('*') : matcher.kind === 'regex';
    if (!isPattern) return false;
    this.patterns ??= new Map();
    const before = this.patterns.get(key) ?? 0;
    const count = before + (matcher?.items.length ?? 1);
    this.patterns.set(key, count);
    return before <= MANY_PATTERNS && count > MANY_PATTERNS;
  }

  /** Adds a node, unless an existing node matches the very same value, block or pattern. Returns that node. */
  add(added: LocatedNode): LocatedNode | undefined {
    this.nodesByMatch ??= new Map();
    const names = matchedBy(added.fields);
    for (const name of names) {
      const other = this.nodesByMatch.get(name);
      if (other !== undefined) return other;
    }
    for (const name of names) this.nodesByMatch.set(name, added);
    return undefined;
  }
}

/** Returns a unique string for each value, block or pattern that a node matches. */
function matchedBy({ key, value, matcher }: NodeFields): readonly string[] {
  const name = `${key.length}:${key}`;
  if (matcher === undefined) return [`${name}=${value}`];
  return matcher.items.map((item) => `${name}${matcher.kind}:${item}`);
}

/** Turns checked mappings into a tree, and keeps the state that the recursion shares. */
class TreeReader {
  private readonly settings: RootSettings;
  private readonly secretKeys: ReadonlySet<string>;
  /** Key of the entry that ends holds. */
  private readonly holdEntry: string;
  /** Descriptors with this key. */
  private readonly holdNodes: FieldReader[] = [];
  private hasHolds = false;
  private readonly derivedEntries: DerivedEntries;
  /** Names of all rules, which `replaces` may name. */
  private readonly names = new Set<string>();
  /** Every name in a `replaces` of the domain, to warn about names that no rule has. */
  private readonly replaced: (Located<string> & { readonly problems: ProblemList })[] = [];

  constructor(settings: RootSettings, secretKeys: ReadonlySet<string>, holdEntry: string) {
    this.settings = settings;
    this.secretKeys = secretKeys;
    this.holdEntry = holdEntry;
    this.derivedEntries = new DerivedEntries(settings.derived.steps, secretKeys);
  }

  read(sources: readonly PolicySource[]): NodeSpec {
    const { phase, onStoreFailure, onUnmatched } = this.settings;
    const fields: NodeFields = {
      key: '',
      value: '',
      matcher: undefined,
      shareThreshold: false,
      detailedMetric: false,
      valueToMetric: false,
      phase,
      onStoreFailure,
      onUnmatched,
      isList: false,
    };
    const siblings = new SiblingNodes();
    const above: Inherited = { ...this.settings, path: [], planEntry: 'absent' };
    const children = this.settings.descriptors.flatMap((items) =>
      this.readDescriptors(items, above, siblings),
    );
    const tree = { fields, rules: [], children };
    this.warnOfUnknownReplaces();
    if (this.settings.plans !== undefined)
      this.derivedEntries.checkKey(this.settings.plans.reader, 'by', this.settings.plans.by);
    this.refuseHoldEntry();
    for (const { root } of sources) this.warnOfUnreachable(root, tree);
    this.derivedEntries.checkRules(this.settings.derived.values);
    return tree;
  }

  /** Reports the nodes that are not valid. */
  private readDescriptors(
    items: readonly FieldReader[],
    above: Inherited,
    siblings = new SiblingNodes(),
  ): readonly NodeSpec[] {
    return items.flatMap((child) => this.readNode(child, above, siblings) ?? []);
  }

  private readNode(reader: FieldReader, above: Inherited, siblings: SiblingNodes): NodeSpec | undefined {
    const values = readMapping(reader, 'descriptor');
    const matched = readMatched(reader, values);
    this.derivedEntries.check(reader, matched, above.onUnmatched);
    const phase = phaseOf(values.phase) ?? above.phase;
    const { enforce_percent: enforcePercent = above.enforcePercent } = values;
    const { on_unmatched: onUnmatched = above.onUnmatched } = values;
    const { detailed_metric: detailedMetric, value_to_metric: valueToMetric } = values;
    // The first entry with the key selects the row.
    const isPlanEntry = above.planEntry === 'absent' && matched.key === this.settings.plans?.by;
    const planEntry = isPlanEntry ? entryOf(matched) : above.planEntry;
    const { domain, plans, lease } = this.settings;
    const base = {
      phase,
      enforcePercent,
      shadowMode: values.shadow_mode,
      quotaMode: values.quota_mode,
      onStoreFailure: this.settings.onStoreFailure,
      metadata: values.metadata,
    };
    const hasCustomer = planEntry !== 'absent';
    const defaults = { algorithm: domain.overrideAlgorithm, lease, plans, hasCustomer };
    const { rules, isList, onStoreFailure, replaced } = readRules(reader, values, base, defaults);
    for (const { name } of rules) this.names.add(name);
    this.hasHolds ||= rules.some(({ hold }) => hold !== undefined);
    if (matched.key === this.holdEntry) this.holdNodes.push(reader);
    const { problems } = reader;
    this.replaced.push(...replaced.map((located) => ({ ...located, problems })));
    const fields = { ...matched, detailedMetric, valueToMetric, phase, onStoreFailure, onUnmatched, isList };
    const isGood = fields.key !== '' && this.isNew(fields, reader, siblings);
    if (siblings.hasManyPatterns(fields)) warnOfPatterns(reader, fields.key);
    if (rules.some(({ plan }) => plan !== undefined)) this.checkPlanEntry(reader, planEntry);
    if (planEntry === 'absent' && rules.some(({ rate }) => rate !== undefined)) {
      plans?.withoutCustomer.push(placeName(reader.problems.file, reader.map.at));
    }
    const path = [...above.path, matched];
    const limits = values.rate_limits ?? (values.rate_limit === undefined ? [] : [values.rate_limit]);
    // Otherwise, some limits have errors.
    if (rules.length === limits.length) {
      const context = { path, rules, secretKeys: this.secretKeys, customer: plans?.by };
      for (const [i, rule] of rules.entries()) checkClassEntry(limits[i] as FieldReader, rule, context);
    }
    const inherited = { phase, onUnmatched, enforcePercent, path, planEntry };
    const children = this.readDescriptors(values.descriptors ?? [], inherited);
    return isGood ? { fields, rules, children } : undefined;
  }

  /** Checks that the limits of a descriptor can differ between customers. */
  private checkPlanEntry(reader: FieldReader, planEntry: Inherited['planEntry']): void {
    const by = this.settings.plans?.by ?? '';
    if (planEntry === 'absent') {
      reader.problems.error(
        reader.map.at,
        reader.path,
        `a limit here takes values from a plan, but no descriptor from the top to here has the key "${by}", which ` +
          '"plans.by" names; move the limit below such a descriptor',
      );
    } else if (planEntry === 'shared') {
      reader.problems.error(
        reader.map.at,
        reader.path,
        `all values of "${by}" share one bucket here, so its limit cannot come from a plan; remove "share_threshold"`,
      );
    }
  }

  private isNew(fields: NodeFields, reader: FieldReader, siblings: SiblingNodes): boolean {
    const nodesByMatch = siblings.add({ fields, reader });
    if (nodesByMatch === undefined) return true;
    const other = nodesByMatch.reader;
    const [at, first] = [nodeAt(reader, fields), nodeAt(other, nodesByMatch.fields)];
    const place = placeName(other.problems.file, first);
    const shown = duplicateMatch(fields, nodesByMatch.fields, this.secretKeys);
    const sameFile = other.problems === reader.problems;
    // An alias repeats a node at the position where it was defined.
    const isNamed = !sameFile || (first.line > 0 && (first.line !== at.line || first.column !== at.column));
    const message = sameFile
      ? `"${shown}" is defined twice at this level${isNamed ? `, first in ${place}` : ''}; merge the two ` +
        'descriptors, or remove one of them'
      : `"${shown}" is already defined at this level in ${place}, a file of the same domain; keep only ` +
        'one of the two descriptors';
    reader.problems.error(at, reader.path, message);
    return false;
  }

  private warnOfUnknownReplaces(): void {
    for (const { value, at, path, problems } of this.replaced) {
      if (this.names.has(value)) continue;
      const near = this.names.size > MAX_COMPARED ? undefined : nearest(value, this.names);
      const remedy = near === undefined ? 'correct the name, or remove the item' : `did you mean "${near}"?`;
      problems.warn(
        at,
        path,
        `no rule in this domain has the name "${safePrefix(value)}", so this item has no effect; ${remedy}`,
      );
    }
  }

  /** Refuses descriptors that never match because their entry ends holds. */
  private refuseHoldEntry(): void {
    if (!this.hasHolds) return;
    for (const reader of this.holdNodes) {
      reader.error(
        'key',
        `the entry "${this.holdEntry}" ends requests in a domain with holds, so this descriptor never matches; ` +
          'rename the key, or set HOLD_ENTRY to another key',
      );
    }
  }

  /** Warns about nodes for an API key, which are never reached because the key is replaced before matching. */
  private warnOfUnreachable(root: FieldReader, tree: NodeSpec): void {
    const secretKeys = secretSources(this.settings.derived.steps);
    if (root.field('derive') === undefined || secretKeys.size === 0) return;
    for (const { node } of inFileOrder(tree, ({ children }) => children)) {
      const { key } = node.fields;
      if (!secretKeys.has(key)) continue;
      root.warn(
        'derive',
        `descriptors with the key "${key}" never match, because "derive" replaces that entry; match the ` +
          'derived entry, or remove these descriptors',
      );
    }
  }
}

function warnOfPatterns(reader: FieldReader, key: string): void {
  reader.problems.warn(
    reader.map.at,
    reader.path,
    `this level has more than ${MANY_PATTERNS} patterns or regular expressions with the key ` +
      `"${safePrefix(key)}", which ` +
      'weir tries one after the other, up to MAX_MATCH_WORK for a request; write exact values, address blocks, ' +
      'or path ' +
      'rules of "derive" instead where you can',
  );
}

function nodeAt(reader: FieldReader, { matcher, value }: NodeFields): ReturnType<FieldReader['at']> {
  if (matcher !== undefined) return reader.at(matcherField(matcher));
  return reader.at(value === '' ? 'key' : 'value');
}

function entryOf({ shareThreshold }: Pick<NodeFields, 'shareThreshold'>): Inherited['planEntry'] {
  return shareThreshold ? 'shared' : 'own';
}

/** Returns the value, block or pattern that a sibling already matches. */
function duplicateMatch(
  { key, value, matcher }: NodeFields,
  nodesByMatch: NodeFields,
  secretKeys: ReadonlySet<string>,
): string {
  const others = new Set(nodesByMatch.matcher?.items);
  const item = matcher?.items.find((one) => others.has(one));
  return item === undefined ? nodeLabel(key, value, matcher, isSecretKey(key, secretKeys)) : safePrefix(item);
}

/** Descriptions of the nodes that can have `share_threshold`. */
const SHAREABLE_MATCHERS = 'a "value" that contains "*", a "value_cidr" or a "value_regex"';

/** Reads what a descriptor matches, and whether its values share a limit. */
function readMatched(
  reader: FieldReader,
  values: DescriptorValues,
): Pick<NodeFields, 'key' | 'value' | 'matcher' | 'shareThreshold'> {
  const { key = '', share_threshold: shareThreshold } = values;
  const matcher = readMatcher(reader, values);
  const value = matcher === undefined ? (values.value ?? '') : matcherName(matcher);
  if (key.includes('*')) {
    reader.warn(
      'key',
      '"*" has no special meaning in a key; write the pattern as "value", or remove the "*"',
    );
  }
  if (matcher === undefined) {
    warnOfLiteral(reader, key, value);
    warnOfMethod(reader, 'value', key, value);
  }
  if (shareThreshold && matcher === undefined && !value.includes('*')) {
    // envoyproxy/ratelimit accepts this if only the key has a "*".
    if (key.includes('*'))
      reader.warn(
        'share_threshold',
        `"share_threshold" has no effect without ${SHAREABLE_MATCHERS}; add one of them, or remove "share_threshold"`,
      );
    else
      reader.error(
        'share_threshold',
        `"share_threshold" needs ${SHAREABLE_MATCHERS}; add one of them, or remove "share_threshold"`,
      );
  }
  return { key, value, matcher, shareThreshold };
}
