import { WINDOW_UNITS } from '../../../limiter/window-unit.js';
import { nearest } from '../../../nearest-name.js';
import {
  BLOCKED,
  type ColumnKind,
  FIRST_COLUMN,
  isSet,
  PHASE,
  PLAN,
  PLAN_FLAGS,
  UNLIMITED,
} from '../../../policy/plans/plan-table.js';
import { PHASES, type Phase } from '../../../policy/rule.js';
import { shownStart } from '../../../runtime/shown-address.js';
import { parseGoDuration } from '../../yaml/go-duration.js';
import { readPlain } from '../../yaml/yaml-scalar.js';
import { unitOf } from '../rates/unit-of.js';
import { readScalar } from '../scalar-kinds.js';

/** Matches numbers that YAML reads in another way than people and spreadsheets: `010`, `0x1F` and `1_000`. */
const NOT_DECIMAL = /^[-+]?0[0-9a-z_]|_/i;

/** The fields that can take a value from a plan, by their path in a limit. */
export const PLANNED_FIELDS: Readonly<Record<string, ColumnKind>> = {
  'token_bucket.max_tokens': 'count',
  'token_bucket.tokens_per_fill': 'count',
  'token_bucket.fill_interval': 'duration',
  requests_per_unit: 'count',
  unit: 'unit',
  burst: 'count',
  'concurrency.max': 'count',
  'hold.amount': 'count',
};

/** Returns the number that a table has for the text of a value; NaN if the text is not of this kind. */
export function numberOfText(kind: ColumnKind, text: string): number {
  if (kind === 'unit') {
    const unit = unitOf(text);
    return unit === undefined ? Number.NaN : WINDOW_UNITS.indexOf(unit);
  }
  if (kind === 'duration') {
    const nanos = parseGoDuration(text);
    return nanos === undefined ? Number.NaN : Number(nanos / 1000n);
  }
  const read = readScalar({ kind: 'count', min: 0, max: Number.MAX_SAFE_INTEGER }, { text, plain: true }, '');
  return read.problem === undefined ? read.value : Number.NaN;
}

/** Returns the text of a number in a table, the inverse of {@link numberOfText}; undefined without a value. */
export function textOfNumber(kind: ColumnKind, number: number): string | undefined {
  if (Number.isNaN(number)) return undefined;
  if (kind === 'unit') return WINDOW_UNITS[number];
  return kind === 'duration' ? `${number}us` : String(number);
}

/** The columns of a table: {@link PLAN_FLAGS}, and the values that the limits of the domain use. */
export class PlanColumns {
  readonly names: string[] = [];
  readonly kinds: ColumnKind[] = [];

  /** Adds the column of a value, unless it exists. Returns its index, or undefined if its kind is another. */
  add(name: string, kind: ColumnKind): number | undefined {
    const known = this.names.indexOf(name);
    if (known >= 0) return this.kinds[known] === kind ? known : undefined;
    this.kinds.push(kind);
    return this.names.push(name) - 1;
  }

  /** Names of all cells of a row. */
  get cells(): readonly string[] {
    return [...PLAN_FLAGS, ...this.names];
  }

  /** Returns the problem of a row with a number that is not decimal. */
  notDecimal(cells: readonly (string | undefined)[]): LimitProblem | undefined {
    for (const [i, kind] of this.kinds.entries()) {
      const cell = FIRST_COLUMN + i;
      const text = cells[cell];
      if (kind !== 'count' || text === undefined || !NOT_DECIMAL.test(text)) continue;
      const said = `"${this.names[i]}" is "${shownStart(text)}"`;
      return { cell, message: `${said}; write a decimal number without leading zeros and "_"` };
    }
    return undefined;
  }
}

/** A problem of a limit for the values of one row. */
export interface LimitProblem {
  /** The cell of the row, or -1. */
  readonly cell: number;
  readonly message: string;
}

/** Finds the first problem of a limit for the cells of a row; see {@link PlanColumns.cells}. */
export interface LimitCheck {
  check(cells: readonly (string | undefined)[]): LimitProblem | undefined;
}

/** Returns the end of a message about an unknown column or value. */
export function nearColumn(name: string, columns: readonly string[]): string {
  const near = nearest(name, columns);
  return near === undefined ? `the known columns are ${columns.join(', ')}` : `did you mean "${near}"?`;
}

/** Returns the numbers of the cells in PLAN_FLAGS, or the problem. */
export function flagsOf(
  cells: readonly (string | undefined)[],
  plans: readonly string[],
): readonly number[] | LimitProblem {
  const flags: number[] = new Array<number>(PLAN_FLAGS.length).fill(Number.NaN);
  const plan = cells[PLAN];
  if (plan !== undefined) flags[PLAN] = plans.indexOf(plan);
  for (const cell of [UNLIMITED, BLOCKED]) {
    const text = cells[cell];
    if (text === undefined) continue;
    const plain = readPlain(text);
    if (plain.kind !== 'boolean') {
      return { cell, message: `"${PLAN_FLAGS[cell]}" is "${shownStart(text)}"; write true or false` };
    }
    flags[cell] = plain.value ? 1 : 0;
  }
  if (isSet(flags, UNLIMITED) && isSet(flags, BLOCKED)) {
    return { cell: BLOCKED, message: 'a row cannot be both "unlimited" and "blocked"; remove one of them' };
  }
  const phase = cells[PHASE];
  if (phase !== undefined) {
    const index = PHASES.indexOf(phase as Phase);
    if (index < 0)
      return { cell: PHASE, message: `"${shownStart(phase)}" is not one of ${PHASES.join(', ')}` };
    flags[PHASE] = index;
  }
  return flags;
}
