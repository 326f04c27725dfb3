import type { Rate } from '../../limiter/rate.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { describePlan, describePlans } from '../../policy/describe.js';
import {
  findRow,
  keyOfRow,
  type PlanTable,
  rowsOf,
  valuesAt,
  valuesIndexOf,
} from '../../policy/plans/plan-table.js';
import { rulesOfPlan } from '../../policy/plans/planned-rules.js';
import type { Rule } from '../../policy/rule.js';
import { quantity } from '../../quantity.js';
import { effectOf, isSame, type LocalChange } from './change.js';
import { rateNarrowings } from './compare-rates.js';
import { enforcedFrom } from './enforcement.js';

/** Returns the changes of `plans` and of its rows. Customers are only counted, never shown. */
export function planChanges(
  before: CompiledPolicy,
  after: CompiledPolicy,
  nowMicros: number,
): readonly LocalChange[] {
  const [was, is] = [before.plans, after.plans];
  if (was === undefined || is === undefined) {
    if (was === is) return [];
    const effect = was === undefined ? 'appears' : 'vanishes';
    const shown =
      is === undefined ? { before: describePlans(was as PlanTable) } : { after: describePlans(is) };
    const text = `plans, ${describePlans((is ?? was) as PlanTable)}`;
    return [{ setting: 'plans', effect, tightens: true, ...shown, text }];
  }
  return [settingsChange(was, is), rowChange(before, after, nowMicros)].filter(
    (change) => change !== undefined,
  );
}

function settingsChange(was: PlanTable, is: PlanTable): LocalChange | undefined {
  const settingsOf = ({ by, file, standard, maxDrop, plans }: PlanTable): object => {
    return { by, file, standard, maxDrop, plans: plans.map(describePlan) };
  };
  if (isSame(settingsOf(was), settingsOf(is))) return undefined;
  return { setting: 'plans', effect: 'changes', tightens: false, text: 'the definition of plans differs' };
}

/** Counts the customers whose limits differ. */
function rowChange(
  before: CompiledPolicy,
  after: CompiledPolicy,
  nowMicros: number,
): LocalChange | undefined {
  const compared = new ComparedRows(before, after, nowMicros);
  compared.compareAll();
  const { more, less, other } = compared;
  const standard = compared.standard();
  if (more + less + other === 0 && standard === undefined) return undefined;
  const counts = [
    standard === undefined ? '' : `customers without a row ${STANDARD_TEXTS[standard]}`,
    less > 0 ? `${customers(less)} can now be denied more` : '',
    more > 0 ? `${customers(more)} can be allowed more` : '',
    other > 0 ? `${customers(other)} have other values` : '',
  ];
  const text = `rows of plans: ${counts.filter((count) => count !== '').join(', ')}`;
  const tightens = less > 0 || standard === 'less';
  const effect = effectOf(tightens, more > 0 || standard === 'more');
  return { setting: 'plans', effect, tightens, text };
}

type Comparison = 'more' | 'less' | 'other';

const STANDARD_TEXTS: Readonly<Record<Comparison, string>> = {
  less: 'can now be denied more',
  more: 'can be allowed more',
  other: 'have other values',
};

function customers(count: number): string {
  return quantity(count, 'customer');
}

/** Compares the limits of all customers with a row, before and after. */
class ComparedRows {
  more = 0;
  less = 0;
  other = 0;
  readonly #was: PlanTable;
  readonly #is: PlanTable;
  readonly #pairs: readonly (readonly [Rule, Rule])[];
  readonly #nowMicros: number;
  /** Results by both rows of values. */
  readonly #known = new Map<string, Comparison | undefined>();

  constructor(before: CompiledPolicy, after: CompiledPolicy, nowMicros: number) {
    this.#was = before.plans as PlanTable;
    this.#is = after.plans as PlanTable;
    this.#nowMicros = nowMicros;
    const now = new Map(after.rules.map((rule) => [pathOf(rule), rule]));
    this.#pairs = before.rules.flatMap((rule) => {
      const other = now.get(pathOf(rule));
      const isPlanned = rule.plan !== undefined && other?.plan !== undefined && !rule.candidate;
      return isPlanned ? [[rule, other] as const] : [];
    });
  }

  compareAll(): void {
    const [was, is] = [this.#was, this.#is];
    for (const row of rowsOf(is)) this.#count(findRow(was, keyOfRow(is, row)), row);
    for (const row of rowsOf(was)) {
      if (findRow(is, keyOfRow(was, row)) < 0) this.#count(row, -1);
    }
  }

  /** Compares the limits of customers without a row. */
  standard(): Comparison | undefined {
    return this.#compare(valuesIndexOf(this.#was, -1), valuesIndexOf(this.#is, -1));
  }

  #count(before: number, after: number): void {
    const old = valuesIndexOf(this.#was, before);
    const now = valuesIndexOf(this.#is, after);
    const name = `${old} ${now}`;
    if (!this.#known.has(name)) this.#known.set(name, this.#compare(old, now));
    const found = this.#known.get(name);
    if (found !== undefined) this[found]++;
  }

  #compare(old: number, now: number): Comparison | undefined {
    const before = valuesAt(this.#was, old);
    const after = valuesAt(this.#is, now);
    const limits = this.#pairs.flatMap(([was, is]) => {
      const [one] = rulesOfPlan([was], before);
      const [two] = rulesOfPlan([is], after);
      return one === undefined || two === undefined ? [] : [[one, two] as const];
    });
    const from = (rule: Rule): number => enforcedFrom(rule, this.#nowMicros);
    const narrows = (one: Rate | undefined, two: Rate | undefined): boolean =>
      rateNarrowings(one, two).length > 0;
    if (limits.some(([was, is]) => narrows(was.rate, is.rate) || from(is) < from(was))) return 'less';
    if (limits.some(([was, is]) => narrows(is.rate, was.rate) || from(was) < from(is))) return 'more';
    const same = JSON.stringify([...before.subarray(1)]) === JSON.stringify([...after.subarray(1)]);
    return same ? undefined : 'other';
  }
}

function pathOf({ path, candidate }: Rule): string {
  return `${path}${candidate ? '~' : ''}`;
}
