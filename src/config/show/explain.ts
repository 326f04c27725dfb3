import type { Entry } from '../../limiter/entry.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { type DeriveStep, UNKNOWN_KEY_PREFIX } from '../../policy/derive/derive.js';
import {
  describeDecisionMetadata,
  describeDenied,
  describeHeaders,
  describePhase,
  describeRule,
  headerFamilies,
} from '../../policy/describe.js';
import { MatchWork } from '../../policy/match-work.js';
import { type CustomerPlan, describeCustomerPlan, planOfCustomer } from '../../policy/plans/customer-plan.js';
import { dependsOnRow } from '../../policy/plans/planned-rules.js';
import { type Algorithm, DEFAULT_HOLD_ENTRY, type DomainPolicy } from '../../policy/policy.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { redactEntries } from '../../policy/redact.js';
import {
  type DeniedResponse,
  type HeaderFamilies,
  type Phase,
  phaseAt,
  type Rule,
} from '../../policy/rule.js';
import { printableLine } from '../../printable.js';
import { describeDeriveRule, describeStep } from './dump-tree.js';
import { type TriedNode, triedNodes } from './explain-level.js';
import { remedies } from './explain-unmatched.js';
import { shellText } from './shell-text.js';
import { didYouMean } from './why-unmatched.js';

/** A step of `derive` in an explanation. */
export interface ExplainedStep {
  /** Path of the step, such as `derive[0]`. */
  readonly path: string;
  /** Description of the step, such as `tenant from api_key: table of 3 API keys`. */
  readonly step: string;
  readonly applied: boolean;
  /** Result of the step, or why it had no effect. */
  readonly outcome: string;
}

/** A level of the tree in an explanation. */
export interface ExplainedLevel {
  readonly entry: Entry;
  /** Nodes of this level with the entry's key, in the order in which they are tried. */
  readonly tried: readonly TriedNode[];
  /** The node that matched; absent if none did, which ends the search. */
  readonly matched: string | undefined;
}

/** Origin of an effective setting; `environment` if neither the rule nor the file sets it. */
export type Origin = 'rule' | 'file' | 'environment';

/** Effective value of `response_headers` or `request_headers`. */
interface ExplainedHeaders {
  readonly value: HeaderFamilies | undefined;
  /** Families as listed in the policy; null if the environment decides. */
  readonly families: readonly string[] | null;
  readonly from: Origin;
}

/** Settings, own or inherited, of answers that describe a rule. */
export interface ExplainedAnswer {
  readonly responseHeaders: ExplainedHeaders;
  readonly requestHeaders: ExplainedHeaders;
  /** `value` is undefined if neither the rule nor the file sets it. */
  /** Undefined for a soft limit, which never denies. */
  readonly deniedResponse:
    | { readonly value: DeniedResponse | undefined; readonly from: Origin | 'nowhere' }
    | undefined;
}

/** Settings of the file that rules do not have. */
export interface ExplainedFile {
  /** Algorithm of limit overrides. */
  readonly overrideAlgorithm: Algorithm;
  /** null if the environment decides. */
  readonly decisionMetadata: boolean | null;
}

/** One rule that applies. */
export interface ExplainedRule {
  readonly rule: Rule;
  /** The current phase of the rule. */
  readonly phase: Phase;
  /**
   * Key of the rule's bucket without the store's prefix, and the number of its characters that name the domain and
   * first entry.
   */
  readonly key: string;
  readonly tagLength: number;
  /** Name of the rule in the statistics, before special characters are replaced. */
  readonly statName: string;
  /** Absent for a rule without a limit, which no answer describes. */
  readonly answer: ExplainedAnswer | undefined;
}

/** Location of a bucket in Redis. */
export interface BucketPlace {
  readonly key: string;
  /** Slot of the Redis Cluster, 0 to 16,383. */
  readonly slot: number;
  /** Server of the slot, without credentials; absent if it was not looked up. */
  readonly node?: string;
}

/** The decision for one descriptor, step by step. Never contains a secret: values of secret keys are redacted. */
export interface Explanation {
  readonly domain: string;
  /** The file of the domain; absent when the domain is unknown. */
  readonly file: string | undefined;
  /** Absent when the domain is unknown. */
  readonly settings: ExplainedFile | undefined;
  readonly given: readonly Entry[];
  readonly steps: readonly ExplainedStep[];
  /** The entries after `derive`, which are matched. */
  readonly entries: readonly Entry[];
  readonly levels: readonly ExplainedLevel[];
  /** Rules in file order. */
  readonly rules: readonly ExplainedRule[];
  /** The row of `plans`; undefined if the limits do not depend on it. */
  readonly plan: CustomerPlan | undefined;
  /** One sentence: what applies, or why no rule does. */
  readonly result: string;
  /** Changes that would make a rule apply, one sentence each; empty if a rule applies. */
  readonly toMatch: readonly string[];
}

/**
 * Explains how a descriptor is decided. `wallMicros` decides which phases are current, and `holdEntry` is HOLD_ENTRY.
 */
export function explain(
  policySet: PolicySet,
  domain: string,
  given: readonly Entry[],
  wallMicros: number,
  holdEntry = DEFAULT_HOLD_ENTRY,
): Explanation {
  // Use the secret keys of all domains, so that a misspelt domain does not print an API key.
  const secretKeys = new Set([...policySet.domains.values()].flatMap((policy) => [...policy.secretKeys]));
  const shown = redactEntries(given, secretKeys);
  const nothing = {
    domain,
    given: shown,
    steps: [],
    entries: shown,
    levels: [],
    rules: [],
    plan: undefined,
    toMatch: [],
  };
  const policy = policySet.domains.get(domain);
  if (policy === undefined) {
    const known = [...policySet.domains.keys()].map((name) => `"${name}"`).join(', ') || 'none';
    return {
      ...nothing,
      file: undefined,
      settings: undefined,
      result: `The domain is unknown: no limit. Known domains: ${known}.`,
      toMatch: sentences(didYouMean(domain, [...policySet.domains.keys()])),
    };
  }
  const known = {
    ...nothing,
    file: policy.file,
    settings: {
      overrideAlgorithm: policy.overrideAlgorithm,
      decisionMetadata: policy.decisionMetadata ?? null,
    },
  };
  if (policy.hasHolds && given.some(({ key }) => key === holdEntry)) {
    const result =
      `The entry ${holdEntry} contains a hold token: the descriptor ends a request, and no limit applies ` +
      'to it.';
    return { ...known, result };
  }
  const { steps, entries } = explainSteps(policy, given);
  const { levels, node } = explainWalk(policy.root, entries, secretKeys);
  const match = policy.match(given);
  return {
    ...known,
    steps,
    entries: redactEntries(entries, secretKeys),
    levels,
    rules: match.rules.map((rule, i) => ({
      rule,
      phase: phaseAt(rule.phase, wallMicros),
      key: match.keys[i] as string,
      tagLength: match.tagLength,
      statName: match.statNames[i] as string,
      answer: rule.rate === undefined ? undefined : explainAnswer(rule, policy),
    })),
    plan:
      node?.usesPlan || match.rules.some(dependsOnRow) ? planOfCustomer(policy.plans, entries) : undefined,
    result: resultOf(match.rules, node, levels.length, entries.length),
    toMatch: match.rules.length > 0 ? [] : remedies(policy, entries).flatMap(sentences),
  };
}

/** Returns the text as a sentence with a capital and a full stop or question mark; none for ''. */
function sentences(text: string): readonly string[] {
  if (text === '') return [];
  return [`${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('?') ? '' : '.'}`];
}

function explainAnswer(rule: Rule, policy: DomainPolicy): ExplainedAnswer {
  const denied = rule.deniedResponse ?? policy.deniedResponse;
  return {
    responseHeaders: explainHeaders(rule.responseHeaders, policy.responseHeaders),
    requestHeaders: explainHeaders(rule.requestHeaders, policy.requestHeaders),
    deniedResponse:
      rule.onOver === undefined
        ? { value: denied, from: originOf(rule.deniedResponse, policy.deniedResponse) ?? 'nowhere' }
        : undefined,
  };
}

function explainHeaders(
  ofRule: HeaderFamilies | undefined,
  ofFile: HeaderFamilies | undefined,
): ExplainedHeaders {
  const value = ofRule ?? ofFile;
  const families = value === undefined ? null : headerFamilies(value);
  return { value, families, from: originOf(ofRule, ofFile) ?? 'environment' };
}

function originOf(ofRule: object | undefined, ofFile: object | undefined): 'rule' | 'file' | undefined {
  if (ofRule !== undefined) return 'rule';
  return ofFile === undefined ? undefined : 'file';
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
      (rules.some(({ spillsTo }) => spillsTo !== '') ? '(from one limit of a chain) ' : '') +
      'or from none.'
    );
  if (entries === 0) return 'The descriptor has no entries: no limit.';
  if (node === undefined) return `Nothing in the policy matches entry ${levels}: no limit.`;
  return `The descriptor ends at ${node.label}, which has no rate_limit: no limit.`;
}

function explainSteps(
  policy: CompiledPolicy,
  given: readonly Entry[],
): { readonly steps: readonly ExplainedStep[]; readonly entries: readonly Entry[] } {
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
): { readonly levels: readonly ExplainedLevel[]; readonly node: PolicyNode | undefined } {
  const levels: ExplainedLevel[] = [];
  let node: PolicyNode | undefined = root;
  for (const entry of entries) {
    const parent: PolicyNode = node;
    const next = parent.find(entry.key, entry.value, new MatchWork());
    levels.push({
      entry: redactEntries([entry], secretKeys)[0] as Entry,
      tried: triedNodes(parent, entry, next),
      matched: next?.label,
    });
    node = next;
    if (node === undefined) break;
  }
  return { levels, node };
}

/**
 * Returns the explanation as text for a terminal. `placeOf` returns where the bucket of a rule is in Redis, if it has
 * one.
 */
export function renderExplanation(
  explanation: Explanation,
  wallMicros: number,
  placeOf: (rule: ExplainedRule) => BucketPlace | undefined = () => undefined,
): string {
  const lines = [
    `domain:     ${shellText(explanation.domain)}${explanation.file === undefined ? '' : ` (${explanation.file})`}`,
    `descriptor: ${renderEntries(explanation.given)}`,
  ];
  for (const step of explanation.steps)
    lines.push(`${step.path}:  ${step.step}`, `            ${step.outcome}`);
  if (explanation.steps.some((step) => step.applied)) {
    lines.push(`matched as: ${renderEntries(explanation.entries)}`);
  }
  explanation.levels.forEach((level, i) => {
    lines.push(`level ${i + 1}:    ${renderEntries([level.entry])}`);
    if (level.tried.length === 0) lines.push('            no rule uses this key at this level');
    for (const { node, matched, why } of level.tried)
      lines.push(`          ${matched ? '>' : ' '} ${node}: ${why}`);
  });
  lines.push(`result:     ${explanation.result}`);
  for (const sentence of explanation.toMatch) lines.push(`to match:   ${sentence}`);
  if (explanation.plan !== undefined) {
    lines.push(`plan:       ${describeCustomerPlan(explanation.plan, wallMicros)}`);
  }
  for (const explained of explanation.rules) {
    const { rule, key, statName } = explained;
    lines.push(...ruleLines(rule, wallMicros), ...answerLines(explained.answer));
    if (rule.rate !== undefined) lines.push(`bucket:     ${key}`);
    lines.push(`statistics: ${statName}`);
    lines.push(...placeLines(placeOf(explained)));
  }
  if (explanation.settings !== undefined) lines.push(...fileLines(explanation.settings));
  // Names and values from the command line and the policy may contain control characters.
  return `${lines.map(printableLine).join('\n')}\n`;
}

function placeLines(place: BucketPlace | undefined): readonly string[] {
  if (place === undefined) return [];
  const { key, slot, node } = place;
  return [
    `Redis key:  ${key}`,
    `slot:       ${slot} of a Redis Cluster`,
    ...(node === undefined ? [] : [`node:       ${node}`]),
  ];
}

function ruleLines(rule: Rule, wallMicros: number): readonly string[] {
  const text = describeRule(rule, wallMicros);
  const place = rule.statSuffix === '' ? '' : `${rule.path}: `;
  const lines = [`rule:       ${place}${text}`, `phase:      ${describePhase(rule.phase, wallMicros)}`];
  if (rule.rate?.reportedLimit === 0 && rule.onOver === undefined)
    lines.push('note:       a limit of 0 denies every request, however long the caller waits');
  return lines;
}

function answerLines(answer: ExplainedAnswer | undefined): readonly string[] {
  if (answer === undefined) return [];
  const { responseHeaders: headers, requestHeaders: upstream, deniedResponse: denied } = answer;
  const of = (from: string): string => (from === 'rule' || from === 'file' ? ` (set in the ${from})` : '');
  return [
    `headers:    ${describeHeaders(headers.value)}${of(headers.from)}`,
    ...(upstream.value === undefined
      ? []
      : [`upstream:   ${describeHeaders(upstream.value)}${of(upstream.from)}`]),
    ...(denied === undefined
      ? []
      : [`denied:     response ${describeDenied(denied.value)}${of(denied.from)}`]),
  ];
}

function fileLines({ overrideAlgorithm, decisionMetadata }: ExplainedFile): readonly string[] {
  return [
    `overrides:  a limit in the request is applied as a ${overrideAlgorithm.replace('_', ' ')}, instead of the ` +
      "policy's limits",
    `decision metadata: ${describeDecisionMetadata(decisionMetadata ?? undefined)}`,
  ];
}

function renderEntries(entries: readonly Entry[]): string {
  return (
    entries.map(({ key, value }) => (value === '' ? key : `${key}=${value}`)).join(', ') || '(no entries)'
  );
}
