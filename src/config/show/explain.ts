import type { Entry } from '../../limiter/entry.js';
import type { CompiledPolicy, PolicySet } from '../../policy/compiled-policy.js';
import { type DeriveStep, UNKNOWN_KEY_PREFIX } from '../../policy/derive/derive.js';
import { MatchWork } from '../../policy/match-work.js';
import { type CustomerPlan, planOfCustomer } from '../../policy/plans/plan-nodes.js';
import { dependsOnRow } from '../../policy/plans/plan-rules.js';
import { type Algorithm, DEFAULT_HOLD_ENTRY } from '../../policy/policy.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import { redactEntries } from '../../policy/redact.js';
import type { DeniedResponse, HeaderFamilies, Rule } from '../../policy/rule.js';
import { canonicalAddress } from '../../policy/values/cidr.js';
import { longestBlock } from '../../policy/values/cidr-table.js';
import { firstMatch } from '../../policy/values/regex-list.js';
import { nearest } from '../../runtime/nearest-name.js';
import { listSome } from '../../runtime/texts.js';
import { describeDeriveRule, describeStep } from './dump-tree.js';
import { didYouMean, type KeyPath, pathText, rulePaths, whyUnmatched } from './why-unmatched.js';

/** Origin of an effective setting. */
export type Origin = 'rule' | 'file' | 'environment';

/** A setting of answers, own or inherited. */
interface Effective<Value> {
  /** Undefined if neither the rule nor the file sets it. */
  readonly value: Value | undefined;
  readonly from: Origin;
}

/** One rule that applies. */
export interface ExplainedRule {
  readonly rule: Rule;
  /**
   * Key of the rule's bucket without the store's prefix, and the number of its characters that name the domain and
   * first entry.
   */
  readonly key: string;
  readonly hashTagLength: number;
  /** Name of the rule in the statistics, before special characters are replaced. */
  readonly statName: string;
  /** Settings of answers that describe the rule; absent for a rule without a limit, which no answer describes. */
  readonly answer:
    | {
        readonly responseHeaders: Effective<HeaderFamilies>;
        readonly requestHeaders: Effective<HeaderFamilies>;
        /** Absent for a soft limit, which never denies. */
        readonly deniedResponse: Effective<DeniedResponse> | undefined;
      }
    | undefined;
}

/** Location of a bucket in Redis. */
export interface BucketPlace {
  readonly key: string;
  /** Slot of the Redis Cluster, 0 to 16,383. */
  readonly slot: number;
  /** Server of the slot, without credentials; absent if it was not looked up. */
  readonly node?: string;
}

/**
 * The decision for one descriptor, step by step. Never contains a secret: values of secret keys are redacted. Fields
 * have the names of `weir explain --json` (docs/reference/explain-json.md). Programs read it, so fields are added but
 * never renamed or removed.
 */
export interface Explanation {
  readonly domain: string;
  /** null if the domain is unknown. */
  readonly file: string | null;
  /** The entries as given. */
  readonly descriptor: readonly Entry[];
  /** The items of `derive`, in order. */
  readonly derive: readonly {
    /** Path of the item, such as `derive[0]`. */
    readonly path: string;
    /** Description of the item, such as `tenant from api_key: table of 3 API keys`. */
    readonly step: string;
    readonly applied: boolean;
    /** Result of the item, or why it had no effect. */
    readonly outcome: string;
  }[];
  /** The entries after `derive`, which are matched. */
  readonly matched_as: readonly Entry[];
  readonly levels: readonly {
    readonly entry: Entry;
    /** Nodes of this level with the entry's key, in the order in which they are tried. */
    readonly tried: readonly TriedNode[];
    /** The node that matched; null if none did, which ends the search. */
    readonly matched: string | null;
  }[];
  /** One sentence: what applies, or why no rule does. */
  readonly result: string;
  /** Changes that would make a rule apply, one sentence each; empty if a rule applies. */
  readonly to_match: readonly string[];
  /** Rules in file order. */
  readonly rules: readonly ExplainedRule[];
  /** The row of `plans`; undefined if the limits do not depend on it. */
  readonly plan: CustomerPlan | undefined;
  /** `algorithm` of limit overrides; null if the domain is unknown. */
  readonly overrides: Algorithm | null;
  /** null if the environment decides, or the domain is unknown. */
  readonly decision_metadata: boolean | null;
}

/**
 * Explains how a descriptor is decided. `wallMicros` decides which phases are current, and `holdEntry` is HOLD_ENTRY.
 */
export function explain(
  policySet: PolicySet,
  domain: string,
  given: readonly Entry[],
  holdEntry = DEFAULT_HOLD_ENTRY,
): Explanation {
  // Use the secret keys of all domains, so that a misspelt domain does not print an API key.
  const secretKeys = new Set([...policySet.domains.values()].flatMap((policy) => [...policy.secretKeys]));
  const shown = redactEntries(given, secretKeys);
  const nothing = {
    domain,
    file: null,
    descriptor: shown,
    derive: [],
    matched_as: shown,
    levels: [],
    result: '',
    to_match: [],
    rules: [],
    plan: undefined,
    overrides: null,
    decision_metadata: null,
  };
  const policy = policySet.domains.get(domain);
  if (policy === undefined) {
    const domains = [...policySet.domains.keys()];
    const known = domains.map((name) => `"${name}"`).join(', ') || 'none';
    return {
      ...nothing,
      result: `The domain is unknown: no limit. Known domains: ${known}.`,
      to_match: sentences(didYouMean(domain, domains)),
    };
  }
  const known = {
    ...nothing,
    file: policy.file,
    overrides: policy.overrideAlgorithm,
    decision_metadata: policy.decisionMetadata ?? null,
  };
  if (policy.hasHolds && given.some(({ key }) => key === holdEntry)) {
    const result =
      `The entry ${holdEntry} contains a hold token: the descriptor ends a request, and no limit applies ` +
      'to it.';
    return { ...known, result };
  }
  const { steps, entries } = explainSteps(policy, given);
  const { levels, last, missed } = explainWalk(policy.root, entries, secretKeys);
  const node = missed === undefined ? last : undefined;
  const match = policy.match(given);
  const isPlanned = node?.usesPlan || match.rules.some(dependsOnRow);
  return {
    ...known,
    derive: steps,
    matched_as: redactEntries(entries, secretKeys),
    levels,
    result: lackingClass(match.rules, node) ?? resultOf(match.rules, node, levels.length, entries.length),
    to_match: match.rules.length > 0 ? [] : remedies(policy, entries, last, missed).flatMap(sentences),
    rules: match.rules.map((rule, i) => ({
      rule,
      key: match.keys[i] as string,
      hashTagLength: match.hashTagLength,
      statName: match.statNames[i] as string,
      answer: rule.rate === undefined ? undefined : explainAnswer(rule, policy),
    })),
    plan: isPlanned ? planOfCustomer(policy.plans, entries) : undefined,
  };
}

/** With a capital letter and a full stop or question mark; none for ''. */
function sentences(text: string): readonly string[] {
  if (text === '') return [];
  return [`${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('?') ? '' : '.'}`];
}

function explainAnswer(rule: Rule, policy: CompiledPolicy): ExplainedRule['answer'] {
  return {
    responseHeaders: effective(rule.responseHeaders, policy.responseHeaders),
    requestHeaders: effective(rule.requestHeaders, policy.requestHeaders),
    deniedResponse:
      rule.onOver === undefined ? effective(rule.deniedResponse, policy.deniedResponse) : undefined,
  };
}

function effective<Value>(ofRule: Value | undefined, ofFile: Value | undefined): Effective<Value> {
  if (ofRule !== undefined) return { value: ofRule, from: 'rule' };
  return { value: ofFile, from: ofFile === undefined ? 'environment' : 'file' };
}

/** Returns the result for a descriptor that lacks only the entry which names the class of its caller. */
function lackingClass(rules: readonly Rule[], node: PolicyNode | undefined): string | undefined {
  const rule = rules.find(({ priorities }) => priorities !== undefined);
  if (rule === undefined || (node !== undefined && node.rules.length > 0)) return undefined;
  const paths = rules.map(({ path }) => path).join(', ');
  const applies = rules.length === 1 ? `The rule at ${paths} applies` : `The limits ${paths} apply together`;
  const { className, priorities } = rule;
  return `${applies} to the class ${className}, because the descriptor lacks only the entry ${priorities?.by}.`;
}

function resultOf(
  rules: readonly Rule[],
  node: PolicyNode | undefined,
  levels: number,
  entries: number,
): string {
  const [rule, ...others] = rules;
  if (rule !== undefined && others.length === 0) return `The rule at ${rule.path} applies.`;
  if (rule !== undefined)
    return (
      `The ${rules.length} limits at ${node?.label} apply together: the request takes from all of them ` +
      (rules.some(({ nextLimit }) => nextLimit !== '') ? '(from one limit of a chain) ' : '') +
      'or from none.'
    );
  if (entries === 0) return 'The descriptor has no entries: no limit.';
  if (node === undefined) return `Nothing in the policy matches entry ${levels}: no limit.`;
  return `The descriptor ends at ${node.label}, which has no rate_limit: no limit.`;
}

function explainSteps(
  policy: CompiledPolicy,
  given: readonly Entry[],
): { readonly steps: Explanation['derive']; readonly entries: readonly Entry[] } {
  let entries = given;
  const steps = policy.steps.map((step, i) => {
    const before = entries;
    entries = step.apply(before, new MatchWork());
    return {
      path: `derive[${i}]`,
      step: describeStep(step),
      applied: entries !== before,
      outcome: outcomeOf(step, before, entries),
    };
  });
  return { steps, entries };
}

function outcomeOf(step: DeriveStep, before: readonly Entry[], after: readonly Entry[]): string {
  if (step.kind === 'table') {
    if (after === before) return `the descriptor has no entry ${step.source}`;
    // Entries before the first source keep their positions, so the derived entry is at the position of the source.
    const value = after[before.findIndex(({ key }) => key === step.source)]?.value ?? '';
    const found = value.startsWith(UNKNOWN_KEY_PREFIX) ? 'not in the table' : 'in the table';
    const dropped = before.length - after.length;
    const more = dropped === 0 ? '' : `; further ${step.source} entries removed: ${dropped}`;
    return `the API key is ${found}: ${step.entry}=${value}${more}`;
  }
  const values = step.sourceValues(before);
  if (values === undefined) {
    const missing = step.sources.filter((source) => !before.some((entry) => entry.key === source));
    return `the descriptor has no entry ${missing.join(', ')}`;
  }
  const rule = step.firstRule(values, new MatchWork());
  if (rule === undefined) return 'no rule matches, so the entries stay unchanged';
  return describeDeriveRule(rule, step.sources);
}

function explainWalk(
  root: PolicyNode,
  entries: readonly Entry[],
  secretKeys: ReadonlySet<string>,
): {
  readonly levels: Explanation['levels'];
  readonly last: PolicyNode;
  readonly missed: Entry | undefined;
} {
  const levels: Explanation['levels'][number][] = [];
  let last = root;
  for (const entry of entries) {
    const next = last.find(entry.key, entry.value, new MatchWork());
    levels.push({
      entry: redactEntries([entry], secretKeys)[0] as Entry,
      tried: triedNodes(last, entry, next),
      matched: next?.label ?? null,
    });
    if (next === undefined) return { levels, last, missed: entry };
    last = next;
  }
  return { levels, last, missed: undefined };
}

/** Nodes that were compared to an entry, and the result. */
interface TriedNode {
  /** Label of the node, or of several nodes with the same result. */
  readonly node: string;
  readonly matched: boolean;
  readonly why: string;
}

/** The reasons for a result, by the kind of the node. */
interface Reasons {
  readonly failed: (value: string) => string;
  readonly matched: (items: readonly string[], value: string) => string;
}

/** The kinds of nodes in the order of {@link Level.find}. */
const KINDS: Readonly<Record<PolicyNode['kind'], Reasons>> = {
  exact: { failed: () => 'the value does not match', matched: () => 'the value matches' },
  cidr: {
    failed: (value) =>
      canonicalAddress(value) === undefined
        ? 'the value is not an IP address'
        : 'no block contains the address',
    matched: (items, value) => `${longestBlock(items, value)} contains the address`,
  },
  pattern: { failed: () => 'the pattern does not match', matched: () => 'the pattern matches' },
  regex: {
    failed: () => 'the regular expression does not match the whole value',
    matched: (items, value) => `${firstMatch(items, value) ?? ''} matches the whole value`,
  },
  any: { failed: () => '', matched: () => 'no value set: matches any value' },
};

/**
 * Returns the child nodes of `parent` with the entry's key, in the order of {@link Level.find}, up to the node `found`.
 */
function triedNodes(
  parent: PolicyNode,
  { key, value }: Entry,
  found: PolicyNode | undefined,
): readonly TriedNode[] {
  const nodes = parent.levels.get(key)?.nodes ?? [];
  const tried: TriedNode[] = [];
  for (const [kind, { failed, matched }] of Object.entries(KINDS)) {
    const same = nodes.filter((node) => node.kind === kind);
    const isInOrder = kind === 'pattern' || kind === 'regex';
    // An exact value and an address are looked up.
    const before = found?.kind !== kind ? same : isInOrder ? same.slice(0, same.indexOf(found)) : [];
    const groups = kind === 'pattern' ? before.map((node) => [node]) : [before];
    for (const group of groups) {
      if (group.length === 0) continue;
      const names = group.map(({ label }) => label);
      tried.push({ node: listSome(names, 5), matched: false, why: failed(value) });
    }
    if (found?.kind !== kind) continue;
    const why = matched(found.matcher?.items ?? [], value);
    return [...tried, { node: found.label, matched: true, why }];
  }
  return tried;
}

const MAX_PATHS_SHOWN = 3;
/** Maximum number of nodes searched for rules with other values. */
const MAX_NODES = 10_000;

/**
 * Returns changes that would make a rule apply to entries, after `derive`, that match no rule. `last` is the last node
 * that matched, and `missed` the entry that matched none of its child nodes. The texts have no full stop and never show
 * values of secret keys.
 */
function remedies(
  policy: CompiledPolicy,
  entries: readonly Entry[],
  last: PolicyNode,
  missed: Entry | undefined,
): readonly string[] {
  const keys = entries.map(({ key }) => key);
  const paths = rulePaths(policy.root);
  const found = [whyUnmatched(keys, paths, policy)];
  const others = rulesAt(policy.root, keys);
  if (others.length > 0) {
    const named = others.slice(0, MAX_PATHS_SHOWN).join(', ');
    found.push(`the rules with these keys are ${named}${others.length > MAX_PATHS_SHOWN ? ' and more' : ''}`);
  }
  const near = missed && nearValue(last, missed);
  if (near !== undefined) found.push(`the nearest value is ${near}: did you mean this value?`);
  const isLeaf = !paths.some((path) => keys.every((key, at) => path[at] === key));
  if (missed === undefined && keys.length > 0 && isLeaf) {
    found.push(`or add a rate_limit to ${pathText(keys)}`);
  }
  if (last.onUnmatched === 'ignore') {
    found.push('if no limit is intended, no change is needed: the policy sets on_unmatched: ignore here');
  }
  return found;
}

/** Returns the label of the exact value on a level that may have been meant instead of the entry's value. */
function nearValue(parent: PolicyNode, { key, value }: Entry): string | undefined {
  const nodes = parent.levels.get(key)?.nodes ?? [];
  const exact = nodes.filter(({ kind, isSecret }) => kind === 'exact' && !isSecret);
  const near = nearest(
    value,
    exact.map((node) => node.value),
  );
  return exact.find((node) => node.value === near)?.label;
}

/** Returns the paths of rules with these keys and other values. */
function rulesAt(root: PolicyNode, keys: KeyPath): readonly string[] {
  let nodes: readonly PolicyNode[] = [root];
  for (const key of keys) {
    nodes = nodes.flatMap((node) => node.levels.get(key)?.nodes ?? []).slice(0, MAX_NODES);
  }
  return nodes.flatMap(({ rules }) => rules.map(({ path }) => path));
}
