import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { type DeriveStep, RuleStep, TableStep } from '../../policy/derive/derive.js';
import { describeDecisionMetadata } from '../../policy/describe.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { quantity } from '../../quantity.js';
import { describeDeriveRule } from '../show/dump-tree.js';
import type { LocalChange, PolicyChange } from './change.js';
import { dropWarning, hasUnknownRows, planSettings, planText, rowsChange } from './plan-changes.js';
import { mayDeny, type PlacedChange } from './rule-changes.js';
import {
  ANSWER_SETTINGS,
  type DiffContext,
  failureSetting,
  phaseSetting,
  type Setting,
  settingChanges,
  unmatchedSetting,
} from './settings.js';
import { TreeChanges } from './tree-changes.js';

/**
 * Returns the changes between two sets of policies: domains in the order of the new files, then removed domains.
 * `nowMicros` (wall clock) decides which phases have ended; schedules are compared from that time on. Whatever cannot
 * be compared counts as tightening.
 */
export function diffPolicies(
  before: PolicySet,
  after: PolicySet,
  nowMicros: number,
): readonly PolicyChange[] {
  const changes: PolicyChange[] = [];
  for (const [domain, now] of after.domains) {
    const old = before.domains.get(domain);
    const found =
      old === undefined ? [wholeDomain('appears', now, nowMicros)] : domainChanges(old, now, nowMicros);
    for (const change of found) changes.push({ domain, path: '', ...change });
  }
  for (const [domain, old] of before.domains)
    if (!after.domains.has(domain))
      changes.push({ domain, path: '', ...wholeDomain('vanishes', old, nowMicros) });
  return changes;
}

function wholeDomain(effect: 'appears' | 'vanishes', policy: DomainPolicy, nowMicros: number): LocalChange {
  const context = contextOf(policy, policy, nowMicros);
  const tightens = effect === 'appears' && policy.rules.some((rule) => mayDeny(rule, context));
  const when = effect === 'appears' ? 'previously' : 'now';
  const verb = effect === 'appears' ? 'had' : 'have';
  const text = `the domain, with ${quantity(policy.rules.length, 'rule')}; its requests ${when} ${verb} no limit`;
  return { setting: 'domain', effect, tightens, text };
}

function contextOf(domainBefore: DomainPolicy, domainAfter: DomainPolicy, nowMicros: number): DiffContext {
  const rules = [...domainBefore.rules, ...domainAfter.rules];
  const tables = [domainBefore.plans, domainAfter.plans].filter((table) => table !== undefined);
  const isUnknown = tables.some(hasUnknownRows);
  return {
    ...{ domainBefore, domainAfter, nowMicros },
    replaced: new Set(rules.flatMap(({ replaces }) => replaces)),
    hasQuotas: rules.some(({ quotaMode }) => quotaMode),
    hasUnknownRows: isUnknown,
    mayBlock: isUnknown || tables.some(({ hasBlocked }) => hasBlocked),
  };
}

const ON_OVERRIDES = 'applies only to limits in requests; the effect on rules is listed below';

const DOMAIN_SETTINGS: readonly Setting<CompiledPolicy>[] = [
  { ...phaseSetting, reason: () => ON_OVERRIDES },
  { ...failureSetting, reason: () => ON_OVERRIDES },
  {
    name: 'algorithm',
    text: ({ overrideAlgorithm }) => overrideAlgorithm,
    isStricter: () => true,
    reason: () => ON_OVERRIDES,
  },
  ...ANSWER_SETTINGS,
  {
    name: 'decision_metadata',
    text: ({ decisionMetadata }) => describeDecisionMetadata(decisionMetadata),
  },
  {
    name: 'derive',
    value: ({ steps }) => steps.map(comparable),
    isStricter: () => true,
    reason: () => 'different limits may now apply to requests',
  },
  {
    name: 'plans',
    text: ({ plans }) => (plans === undefined ? 'none' : planText(plans)),
    value: ({ plans }) => plans && planSettings(plans),
    // A row of another customer may apply, and any row may if they are unknown.
    isStricter: ({ plans: was }, { plans: is }, { hasUnknownRows }) => hasUnknownRows || was?.by !== is?.by,
  },
];

function domainChanges(
  before: CompiledPolicy,
  after: CompiledPolicy,
  nowMicros: number,
): readonly (LocalChange & Partial<PlacedChange>)[] {
  const context = contextOf(before, after, nowMicros);
  const tree = new TreeChanges(context, new Set([...before.secretKeys, ...after.secretKeys]));
  const treeChanges = [...tree.below(before.root, after.root)];
  const isBoth = before.plans !== undefined && after.plans !== undefined;
  return [
    ...settingChanges(DOMAIN_SETTINGS, before, after, context),
    ...settingChanges([unmatchedSetting], before.root, after.root, context),
    ...(isBoth ? rowsChange(before.plans, after.plans, tree.customerRules, context) : []),
    ...(isBoth ? dropWarning(before.plans, after.plans) : []),
    ...treeChanges,
  ];
}

/** Returns what a step does, as plain data. The order of its sources has no effect. */
function comparable(step: DeriveStep): unknown {
  if (step instanceof TableStep) return [step.entry, step.source, Object.fromEntries(step.table)];
  if (!(step instanceof RuleStep)) return step;
  const sources = [...step.sources].sort();
  const places = sources.map((source) => step.sources.indexOf(source));
  const rules = step.rules.map(({ conditions, value }) =>
    describeDeriveRule({ conditions: places.map((place) => conditions[place]), value }, sources),
  );
  return [step.entry, sources, rules];
}
