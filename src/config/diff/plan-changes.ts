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
import { isPlanned, rulesOfPlan } from '../../policy/plans/planned-rules.js';
import type { Rule } from '../../policy/rule.js';
import { quantity } from '../../quantity.js';
import { asItsChain } from './chains.js';
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
    other > 0 ? `${customers(other)} ${other === 1 ? 'has' : 'have'} other values` : '',
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
  readonly #pairs: readonly PlannedPair[];
  readonly #nowMicros: number;
  /** Results by both rows of values. */
  readonly #known = new Map<string, Comparison | undefined>();

  constructor(before: CompiledPolicy, after: CompiledPolicy, nowMicros: number) {
    this.#was = before.plans as PlanTable;
    this.#is = after.plans as PlanTable;
    this.#nowMicros = nowMicros;
    const now = new Map(plannedRules(after).map(({ path, rules }) => [path, rules]));
    this.#pairs = plannedRules(before).flatMap(({ path, rules }) => {
      const other = now.get(path);
      return other === undefined ? [] : [{ path, before: rules, after: other }];
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
    const limits = this.#pairs.map(
      (pair) => [ruleAt(pair.path, pair.before, before), ruleAt(pair.path, pair.after, after)] as const,
    );
    if (limits.some(([was, is]) => this.#deniesMore(was, is))) return 'less';
    if (limits.some(([was, is]) => this.#deniesMore(is, was))) return 'more';
    const same = JSON.stringify([...before.subarray(1)]) === JSON.stringify([...after.subarray(1)]);
    return same ? undefined : 'other';
  }

  /** Returns whether the limit `is` could deny a request that `was` allows. A soft limit only denies if it blocks. */
  #deniesMore(was: Rule | undefined, is: Rule | undefined): boolean {
    const from = this.#enforcedFrom(is);
    if (from === Infinity) return false;
    return from < this.#enforcedFrom(was) || rateNarrowings(was?.rate, is?.rate).length > 0;
  }

  #enforcedFrom(rule: Rule | undefined): number {
    return rule === undefined ? Infinity : enforcedFrom(asItsChain(rule), this.#nowMicros);
  }
}

/** A limit with values from plans in both versions, and all limits of its node. */
interface PlannedPair {
  readonly path: string;
  readonly before: readonly Rule[];
  readonly after: readonly Rule[];
}

/** Returns the paths of all limits that a row may change, each with all rules of its node. */
function plannedRules({ root }: CompiledPolicy) {
  return [...root.nodesBelow(Infinity)].flatMap(({ rules }) =>
    rules.flatMap(({ path }, index) => (isPlanned(rules, index) ? [{ path, rules }] : [])),
  );
}

/** Returns a limit for a row of values; undefined if the row makes the customer unlimited. */
function ruleAt(path: string, rules: readonly Rule[], values: Float64Array): Rule | undefined {
  return rulesOfPlan(rules, values).find((rule) => rule.path === path);
}
