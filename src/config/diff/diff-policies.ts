import type { CompiledPolicy, PolicySet } from '../../policy/compiled-policy.js';
import { type DeriveStep, RuleStep, TableStep } from '../../policy/derive/derive.js';
import {
  describeDecisionMetadata,
  describeDrop,
  describePlan,
  describePlans,
} from '../../policy/describe.js';
import { rulesOfPlan } from '../../policy/plans/plan-rules.js';
import {
  BLOCKED,
  dropsTooMany,
  findRow,
  isSet,
  keyOfRow,
  type PlanTable,
  rowsOf,
  valuesAt,
  valuesIndexOf,
} from '../../policy/plans/plan-table.js';
import type { Rule } from '../../policy/rule.js';
import { plural } from '../../runtime/texts.js';
import { isPlanAddress } from '../read/plans/read-plans.js';
import { describeDeriveRule } from '../show/dump-tree.js';
import {
  ANSWER_SETTINGS,
  type DiffContext,
  failureSetting,
  isSame,
  type LocalChange,
  type PolicyChange,
  phaseSetting,
  type Setting,
  settingChanges,
  unmatchedSetting,
} from './change.js';
import { mayDeny, type PlacedChange, ruleChanges } from './rule-changes.js';
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

function wholeDomain(effect: 'appears' | 'vanishes', policy: CompiledPolicy, nowMicros: number): LocalChange {
  const context = contextOf(policy, policy, nowMicros);
  const tightens = effect === 'appears' && policy.rules.some((rule) => mayDeny(rule, context));
  const when = effect === 'appears' ? 'previously' : 'now';
  const verb = effect === 'appears' ? 'had' : 'have';
  const text = `the domain, with ${plural(policy.rules.length, 'rule')}; its requests ${when} ${verb} no limit`;
  return { setting: 'domain', effect, tightens, text };
}

function contextOf(
  domainBefore: CompiledPolicy,
  domainAfter: CompiledPolicy,
  nowMicros: number,
): DiffContext {
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

/** Two versions of a limit that may take values from plans, or deny blocked customers. */
type CustomerRule = readonly [before: Rule, after: Rule];

/** Returns whether the rows of a table are in Redis, so that any customer may have any plan. */
function hasUnknownRows({ file, digest }: PlanTable): boolean {
  return isPlanAddress(file) && digest === '';
}

/** Returns the settings of `plans`, without its rows. */
function planSettings(table: PlanTable): unknown {
  const { by, file, standard, maxDrop, maxDropFrom, readColumns, plans } = table;
  return [by, file, standard, maxDrop, maxDropFrom, readColumns, ...plans.map(describePlan)];
}

/** Describes `plans` and each plan of `define`. */
function planText(table: PlanTable): string {
  return [describePlans(table), ...table.plans.map(describePlan)].join('; ');
}

/** Warns if a server that runs with the old rows would refuse the new ones (`max_drop`). */
function dropWarning(was: PlanTable, is: PlanTable): readonly LocalChange[] {
  if (was.by !== is.by || was.file === '' || is.file === '') return [];
  let lost = 0;
  for (const row of rowsOf(was)) if (findRow(is, keyOfRow(was, row)) < 0) lost++;
  if (!dropsTooMany(is, lost, was.rowCount)) return [];
  const text =
    `rows of plans: ${describeDrop(is, lost, was.rowCount)}, so a running weir keeps its rows and refuses the table; ` +
    'raise "plans.max_drop" in the same change if the rows are removed on purpose';
  return [{ setting: 'plans', effect: 'changes', tightens: false, text }];
}

type Comparison = keyof typeof EFFECTS;

const EFFECTS = {
  less: 'can now be denied more',
  more: 'can be allowed more',
  other: 'have other values',
} as const;

/** Counts the customers whose limits differ. Customers are never shown. */
function rowsChange(
  was: PlanTable,
  is: PlanTable,
  rules: readonly CustomerRule[],
  context: DiffContext,
): readonly LocalChange[] {
  const known = new Map<string, Comparison | undefined>();
  const compare = (before: number, after: number): Comparison | undefined => {
    const [old, now] = [valuesIndexOf(was, before), valuesIndexOf(is, after)];
    const name = `${old} ${now}`;
    if (!known.has(name))
      known.set(name, compareValues(valuesAt(was, old), valuesAt(is, now), rules, context));
    return known.get(name);
  };
  const found = [...rowsOf(is)].map((row) => compare(findRow(was, keyOfRow(is, row)), row));
  for (const row of rowsOf(was)) if (findRow(is, keyOfRow(was, row)) < 0) found.push(compare(row, -1));
  const standard = compare(-1, -1);
  const parts = standard === undefined ? [] : [`customers without a row ${EFFECTS[standard]}`];
  for (const [each, text] of Object.entries(EFFECTS)) {
    const count = found.filter((one) => one === each).length;
    if (count > 0) parts.push(`${plural(count, 'customer')} ${text}`);
  }
  if (parts.length === 0) return [];
  const all = new Set([...found, standard]);
  const effect = all.has('less') ? 'tightens' : all.has('more') ? 'loosens' : 'changes';
  const text = `rows of plans: ${parts.join(', ')}`;
  return [{ setting: 'plans', effect, tightens: all.has('less'), text }];
}

/** Compares the limits of one customer. */
function compareValues(
  before: Float64Array,
  after: Float64Array,
  rules: readonly CustomerRule[],
  context: DiffContext,
): Comparison | undefined {
  const changesBlock = isSet(before, BLOCKED) !== isSet(after, BLOCKED);
  const changes = rules
    .filter((pair) => changesBlock || pair.some(({ plan }) => plan !== undefined))
    .flatMap(([old, now]) =>
      // The rows say who is blocked.
      ruleChanges(ruleOfRow(old, before), ruleOfRow(now, after), { ...context, mayBlock: false }),
    );
  if (changes.some(({ tightens }) => tightens)) return 'less';
  if (changes.some(({ effect }) => effect === 'loosens')) return 'more';
  // The first column only names the plan.
  return isSame([...before.subarray(1)].map(String), [...after.subarray(1)].map(String))
    ? undefined
    : 'other';
}

function ruleOfRow(rule: Rule, values: Float64Array): Rule {
  const [planned = rule] = rulesOfPlan([rule], values);
  return { ...planned, plan: undefined, onStoreFailure: 'error' };
}
