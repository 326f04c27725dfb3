import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { type DeriveStep, RuleStep, TableStep } from '../../policy/derive/derive.js';
import {
  describeDecisionMetadata,
  describeDrop,
  describeHeaders,
  describePlan,
  describePlans,
  describeRequestHeaders,
} from '../../policy/describe.js';
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
import { rulesOfPlan } from '../../policy/plans/planned-rules.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { PolicySet } from '../../policy/policy-set.js';
import type { Rule } from '../../policy/rule.js';
import { quantity } from '../../quantity.js';
import { describeDeriveRule, describeStep } from '../show/dump-tree.js';
import { isPlanAddress } from '../sources/plan-address.js';
import { effectOf, isSame, type LocalChange, type PolicyChange, plain, shift } from './change.js';
import {
  bodyOf,
  contextOf,
  type DiffContext,
  failureChange,
  isEnforced,
  limitsOf,
  mayDenyMore,
  phaseChange,
} from './rule-changes.js';
import { type PlacedChange, TreeChanges, unmatchedChange } from './tree-changes.js';

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
  const rules = limitsOf(policy);
  const count = `the domain, with ${quantity(rules.length, 'rule')}`;
  const text =
    effect === 'appears'
      ? `${count}; its requests previously had no limit`
      : `${count}; its requests now have no limit`;
  const tightens = effect === 'appears' && rules.some((rule) => isEnforced(rule, nowMicros));
  return { setting: 'domain', effect, tightens, text };
}

const ON_OVERRIDES = 'applies only to limits in requests; the effect on rules is listed below';

function domainChanges(
  before: CompiledPolicy,
  after: CompiledPolicy,
  nowMicros: number,
): readonly (LocalChange & Partial<PlacedChange>)[] {
  const context = contextOf(before, after, nowMicros);
  const textChange = (setting: string, was: string, is: string, effect: LocalChange['effect'] = 'changes') =>
    was === is ? undefined : shift(setting, effect, was, is, effect === 'changes' ? '' : ON_OVERRIDES);
  const headers = [before, after].map(({ responseHeaders }) => describeHeaders(responseHeaders));
  const upstream = [before, after].map(({ requestHeaders }) => describeRequestHeaders(requestHeaders));
  const metadata = [before, after].map((policy) => describeDecisionMetadata(policy.decisionMetadata));
  const settings = [
    phaseChange(before.phase, after.phase, ON_OVERRIDES, nowMicros),
    failureChange(before.onStoreFailure, after.onStoreFailure, ON_OVERRIDES),
    textChange('algorithm', before.overrideAlgorithm, after.overrideAlgorithm, 'tightens'),
    textChange('response_headers', ...(headers as [string, string])),
    textChange('request_headers', ...(upstream as [string, string])),
    plain('denied_response', bodyOf(before.deniedResponse), bodyOf(after.deniedResponse)),
    textChange('decision_metadata', ...(metadata as [string, string])),
    unmatchedChange(before.root, after.root),
  ].filter((change) => change !== undefined);
  const secretKeys = new Set([...before.secretKeys, ...after.secretKeys]);
  return [
    ...settings,
    ...deriveChanges(before.steps, after.steps),
    ...planChanges(before, after, context),
    ...new TreeChanges(context, secretKeys).below(before.root, after.root),
  ];
}

/** Returns one change per `derive` step that differs, since it may select other limits. API keys are never shown. */
function deriveChanges(before: readonly DeriveStep[], after: readonly DeriveStep[]): readonly LocalChange[] {
  const changes: LocalChange[] = [];
  for (let i = 0; i < Math.max(before.length, after.length); i++) {
    const [old, now] = [before[i], after[i]];
    if (old !== undefined && now !== undefined && isSame(comparable(old), comparable(now))) continue;
    const shown = {
      ...(old && { before: describeStep(old) }),
      ...(now && { after: describeStep(now) }),
    };
    const steps = [...new Set(Object.values(shown))].join(' becomes ');
    const text = `derive[${i}]${old && now ? ' differs' : ''}: ${steps}; different limits may now apply to requests`;
    const effect = old === undefined ? 'appears' : now === undefined ? 'vanishes' : 'tightens';
    changes.push({ setting: 'derive', effect, tightens: true, ...shown, text });
  }
  return changes;
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

/** Returns the changes of `plans` and of its rows. Customers are only counted, never shown. */
function planChanges(
  before: CompiledPolicy,
  after: CompiledPolicy,
  context: DiffContext,
): readonly LocalChange[] {
  const [was, is] = [before.plans, after.plans];
  if (was === undefined || is === undefined) {
    const table = is ?? was;
    if (table === undefined) return [];
    const shown = describePlans(table);
    const text = `plans, ${shown}`;
    return [
      is === undefined
        ? { setting: 'plans', effect: 'vanishes', tightens: true, before: shown, text }
        : { setting: 'plans', effect: 'appears', tightens: true, after: shown, text },
    ];
  }
  const settingsOf = ({ file, standard, maxDrop, maxDropFrom, plans }: PlanTable): object => {
    return { file, standard, maxDrop, maxDropFrom, plans: plans.map(describePlan) };
  };
  const definition = { setting: 'plans', text: 'the definition of plans differs' };
  const changes: LocalChange[] = [];
  const limits = plannedLimits(before, after);
  // Rows in Redis are unknown here, so any customer may have a plan or a value that changed.
  const hasUnknownRows = [was, is].some(({ file, digest }) => isPlanAddress(file) && digest === '');
  const tightens = was.by !== is.by || hasUnknownRows;
  if (was.by !== is.by || !isSame(settingsOf(was), settingsOf(is)))
    changes.push({ ...definition, effect: tightens ? 'tightens' : 'changes', tightens });
  else if (hasUnknownRows && limits.some(([old, now]) => !isSame(plansIn(old), plansIn(now))))
    changes.push({ ...definition, text: FOR_UNKNOWN_ROWS, effect: 'tightens', tightens });
  return [...changes, rowsChange(was, is, limits, context), dropWarning(was, is)].filter(
    (change) => change !== undefined,
  );
}

/** Returns a warning if a server that runs with the old rows would refuse the new ones (`max_drop`). */
function dropWarning(was: PlanTable, is: PlanTable): LocalChange | undefined {
  if (was.by !== is.by || was.file === '' || is.file === '') return undefined;
  let lost = 0;
  for (const row of rowsOf(was)) if (findRow(is, keyOfRow(was, row)) < 0) lost++;
  if (!dropsTooMany(is, lost, was.rowCount)) return undefined;
  const text =
    `rows of plans: ${describeDrop(is, lost, was.rowCount)}, so a running weir keeps its rows and refuses the table; ` +
    'raise "plans.max_drop" in the same change if the rows should go';
  return { setting: 'plans', effect: 'changes', tightens: false, text };
}

const FOR_UNKNOWN_ROWS = 'limits with values from plans differ, and the rows in Redis are unknown';
const plansIn = (rules: readonly Rule[]): readonly Rule['plan'][] => rules.map(({ plan }) => plan);

/** The limits of a node before and after, which may take values from plans, or deny blocked customers. */
type PlannedLimits = readonly [before: readonly Rule[], after: readonly Rule[]];

/** Returns the limits of nodes with the same path in both policies. Others are added or removed. */
function plannedLimits(before: CompiledPolicy, after: CompiledPolicy): readonly PlannedLimits[] {
  const rulesByPath = ({ root }: CompiledPolicy) =>
    new Map(
      [...root.withDescendants()]
        .filter(({ hasCustomer }) => hasCustomer)
        .map((node) => [
          node
            .path()
            .map(({ label }) => label)
            .join('/'),
          limitsOf(node),
        ]),
    );
  const now = rulesByPath(after);
  return [...rulesByPath(before)].flatMap(([path, rules]) => {
    const other = now.get(path);
    return other === undefined ? [] : [[rules, other] as const];
  });
}

/** Counts the customers whose limits differ. */
function rowsChange(
  was: PlanTable,
  is: PlanTable,
  limits: readonly PlannedLimits[],
  context: DiffContext,
): LocalChange | undefined {
  const known = new Map<string, Comparison | undefined>();
  const compare = (before: number, after: number): Comparison | undefined => {
    const [old, now] = [valuesIndexOf(was, before), valuesIndexOf(is, after)];
    const name = `${old} ${now}`;
    if (!known.has(name))
      known.set(name, compareValues(valuesAt(was, old), valuesAt(is, now), limits, context));
    return known.get(name);
  };
  const counts = { less: 0, more: 0, other: 0 };
  const count = (found: Comparison | undefined): void => {
    if (found !== undefined) counts[found]++;
  };
  for (const row of rowsOf(is)) count(compare(findRow(was, keyOfRow(is, row)), row));
  for (const row of rowsOf(was)) if (findRow(is, keyOfRow(was, row)) < 0) count(compare(row, -1));
  const standard = compare(-1, -1);
  const parts = standard === undefined ? [] : [`customers without a row ${EFFECTS[standard]}`];
  for (const [each, text] of Object.entries(EFFECTS) as [Comparison, string][])
    if (counts[each] > 0) parts.push(`${quantity(counts[each], 'customer')} ${text}`);
  if (parts.length === 0) return undefined;
  const has = (one: Comparison): boolean => counts[one] > 0 || standard === one;
  const effect = effectOf(has('less'), has('more'));
  return { setting: 'plans', effect, tightens: has('less'), text: `rows of plans: ${parts.join(', ')}` };
}

type Comparison = keyof typeof EFFECTS;

const EFFECTS = {
  less: 'can now be denied more',
  more: 'can be allowed more',
  other: 'have other values',
} as const;

/** Compares the limits of one customer. */
function compareValues(
  before: Float64Array,
  after: Float64Array,
  limits: readonly PlannedLimits[],
  context: DiffContext,
): Comparison | undefined {
  const changesBlock = isSet(before, BLOCKED) !== isSet(after, BLOCKED);
  const rows = limits
    .filter((pair) => changesBlock || pair.some((rules) => rules.some(({ plan }) => plan !== undefined)))
    .map(([was, is]) => [withPlan(was, before), withPlan(is, after)] as const);
  if (rows.some(([was, is]) => mayDenyMore(was, is, false, context))) return 'less';
  if (rows.some(([was, is]) => mayDenyMore(is, was, false, context))) return 'more';
  // The first column only names the plan.
  return isSame([...before.subarray(1)].map(String), [...after.subarray(1)].map(String))
    ? undefined
    : 'other';
}

/** Returns the limits for a row of values, as limits that no longer depend on a row. */
function withPlan(rules: readonly Rule[], values: Float64Array): readonly Rule[] {
  return rulesOfPlan(rules, values).map((rule) => ({ ...rule, plan: undefined }));
}
