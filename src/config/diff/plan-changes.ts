import { describeDrop, describePlan, describePlans } from '../../policy/describe.js';
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
import type { Rule } from '../../policy/rule.js';
import { quantity } from '../../quantity.js';
import { isPlanAddress } from '../sources/plan-address.js';
import { isSame, type LocalChange } from './change.js';
import { ruleChanges } from './rule-changes.js';
import type { DiffContext } from './settings.js';

/** Two versions of a limit that may take values from plans, or deny blocked customers. */
type CustomerRule = readonly [before: Rule, after: Rule];

/** Returns whether the rows of a table are in Redis, so that any customer may have any plan. */
export function hasUnknownRows({ file, digest }: PlanTable): boolean {
  return isPlanAddress(file) && digest === '';
}

/** Returns the settings of `plans`, without its rows. */
export function planSettings(table: PlanTable): unknown {
  const { by, file, standard, maxDrop, maxDropFrom, readColumns, plans } = table;
  return [by, file, standard, maxDrop, maxDropFrom, readColumns, ...plans.map(describePlan)];
}

/** Describes `plans` and each plan of `define`. */
export function planText(table: PlanTable): string {
  return [describePlans(table), ...table.plans.map(describePlan)].join('; ');
}

/** Warns if a server that runs with the old rows would refuse the new ones (`max_drop`). */
export function dropWarning(was: PlanTable, is: PlanTable): readonly LocalChange[] {
  if (was.by !== is.by || was.file === '' || is.file === '') return [];
  let lost = 0;
  for (const row of rowsOf(was)) if (findRow(is, keyOfRow(was, row)) < 0) lost++;
  if (!dropsTooMany(is, lost, was.rowCount)) return [];
  const text =
    `rows of plans: ${describeDrop(is, lost, was.rowCount)}, so a running weir keeps its rows and refuses the table; ` +
    'raise "plans.max_drop" in the same change if the rows should go';
  return [{ setting: 'plans', effect: 'changes', tightens: false, text }];
}

type Comparison = keyof typeof EFFECTS;

const EFFECTS = {
  less: 'can now be denied more',
  more: 'can be allowed more',
  other: 'have other values',
} as const;

/** Counts the customers whose limits differ. Customers are never shown. */
export function rowsChange(
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
    if (count > 0) parts.push(`${quantity(count, 'customer')} ${text}`);
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

/** Returns a limit with the values of a row. */
function ruleOfRow(rule: Rule, values: Float64Array): Rule {
  const [planned = rule] = rulesOfPlan([rule], values);
  return { ...planned, plan: undefined, onStoreFailure: 'error' };
}
